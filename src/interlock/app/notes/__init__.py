"""Notes of a project: write, find, read, check. Notes that are written from the log are published
by `protocol`.
"""
