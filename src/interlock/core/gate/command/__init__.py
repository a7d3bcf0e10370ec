"""A shell command: how its text is read, and what the programs in it do."""
