"""Forges, where a team keeps its repositories: what unattended work asks of their REST APIs."""
