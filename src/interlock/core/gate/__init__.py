"""The gate: whether a tool call may happen. Where modes are changed is `protocol`."""
