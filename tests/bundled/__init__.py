"""The workflows that come with Interlock, each driven from its start to its end."""
