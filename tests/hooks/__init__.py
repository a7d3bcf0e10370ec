"""Hooks of agent clients, over what the clients really send."""
