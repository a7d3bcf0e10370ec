"""The server: MCP over HTTP, REST, live updates and the console. What it does is in
`app`.
"""
