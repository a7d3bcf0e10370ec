"""Callers: whose session a call belongs to, whether an agent or the user makes it, and the key that
recognises a repeated call.
"""
