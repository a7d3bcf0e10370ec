"""The session protocol: the mode, work and status that bind an agent from the start of a session to
its end. The runs of a session are in `session`.
"""
