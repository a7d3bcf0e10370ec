"""Several agents in one project: who is there, who holds what, and where two of them meet.

Decides only: boards, times and new names come in, events and refusals go out.
"""
