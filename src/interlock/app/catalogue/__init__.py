"""The catalogue: workflow files that can be started, where they come from, new ones. Running one
is in `runs`.
"""
