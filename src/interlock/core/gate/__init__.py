"""The gate: whether a tool call may happen. Modes are changed in `core.protocol`."""
