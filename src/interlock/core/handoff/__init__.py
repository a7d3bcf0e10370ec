"""Hand-off files: what a HANDOFF.md says, which notes it becomes, and how a session is written up
as one.
"""
