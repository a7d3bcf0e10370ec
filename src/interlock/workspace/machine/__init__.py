"""The files of this machine in the data home outside the store: grants, clients, lines of hooks,
installed files. None of them is shared with a team.
"""
