"""Hand-off files: reading a HANDOFF.md, the notes it becomes, and writing up a session as one."""
