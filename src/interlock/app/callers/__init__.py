"""Callers: whose session a call belongs to, whether an agent or the user makes it, and by what it
is recognised when it comes again.
"""
