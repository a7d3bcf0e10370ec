"""Agents: what each agent client must be told so that it works with Interlock."""
