"""The sandbox: run a command where the kernel keeps it from changing anything else.

It stands alone, as the fast hook does: only the standard library, nothing of Interlock, and of the
standard library only what is quickly imported, because an agent waits for it before each command.
"""
