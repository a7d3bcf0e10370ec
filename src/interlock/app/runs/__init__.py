"""Runs: start one, advance it, show it again, answer its approvals. What only looks at what is
recorded is in `sessions`.
"""
