"""Interlock over MCP: the tools an agent calls, and the protocol they are called through. What a
tool does is in `app`.
"""
