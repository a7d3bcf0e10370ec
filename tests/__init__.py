"""Tests of Interlock. What is real in use is real here: SQLite, processes, pipes, git."""
