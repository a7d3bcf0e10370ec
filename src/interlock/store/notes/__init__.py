"""The index of one notes folder: rebuilt from the files whenever it cannot be trusted. The files
are in `workspace`.
"""
