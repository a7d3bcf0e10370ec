"""Unattended work: what a driver says to a model, within which limits, and what comes next.
Nothing here calls a model or runs a tool: that is `interlock.driver`.
"""
