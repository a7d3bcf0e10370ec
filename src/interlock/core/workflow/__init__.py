"""Workflows: the file an author writes, its compiled form, and the position of a run in it.

The records of a run are in `session`.
"""
