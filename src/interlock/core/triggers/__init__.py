"""Triggers: what may start unattended work by itself, and what it then is."""
