"""The notes of a project: write, find, read and check them. Notes that are generated from the log
are published by `protocol`.
"""
