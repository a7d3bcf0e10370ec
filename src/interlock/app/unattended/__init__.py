"""Unattended work as the user and the driver see it: ask for it, watch it, control it, report it.
The driver itself is `interlock.driver`.
"""
