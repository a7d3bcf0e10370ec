"""Notes: what a note says, what it is called, how it is found and changed. Files and indexes are
adapters.
"""
