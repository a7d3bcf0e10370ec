"""The gate: whether a tool call may happen."""
