"""Agent clients without a person: how they are started, and how their output reads."""
