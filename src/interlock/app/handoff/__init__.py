"""Hand-off files: migrate one into notes and a session, and write one from a session. Nothing else
reads or writes HANDOFF.md.
"""
