"""Workflows: the file an author writes, what it compiles to, and the prompts it becomes."""
