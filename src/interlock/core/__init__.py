"""The core decides and never does: no clock, no chance, no files. What reads or writes is in an
adapter.
"""
