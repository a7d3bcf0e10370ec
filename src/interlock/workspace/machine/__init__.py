"""What this machine remembers in the data home outside the store: grants, clients, hook lines,
installed files. Nothing of it is shared with a team.
"""
