"""The core decides and never acts: no clock, no randomness, no files. Adapters do what reads or
writes.
"""
