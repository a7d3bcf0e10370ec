"""Agent clients that work without a person: how each is started, and how its output reads."""
