"""Interlock over MCP: the tools an agent calls, and the protocol they are called through. The
work behind a tool is done by `app`.
"""
