"""The session protocol: what binds an agent from the start of a session to its end. The runs of a
session are in `session`.
"""
