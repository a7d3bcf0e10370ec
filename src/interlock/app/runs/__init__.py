"""Runs: start one, advance it, show it again, answer its approvals. Use cases that only look at
what is recorded are in `sessions`.
"""
