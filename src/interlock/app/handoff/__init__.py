"""Hand-off files: take one over into notes and a session, write one from a session. Nothing else
reads or writes HANDOFF.md.
"""
