"""The index of one notes folder: rebuilt from the files whenever it is not to be trusted. The files
are in `workspace`.
"""
