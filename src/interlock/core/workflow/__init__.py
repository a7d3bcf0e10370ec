"""Workflows: the file an author writes, what it compiles to, and where a run stands in it. What is
recorded of a run is in `session`.
"""
