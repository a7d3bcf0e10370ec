"""The server: MCP over HTTP, REST, live updates and the console. The work behind
it is done by `app`.
"""
