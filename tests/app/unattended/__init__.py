"""Unattended work: orders, the desk of the driver, the gate before a client."""
