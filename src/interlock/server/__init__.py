"""The server: MCP over HTTP, REST, live updates and the console. What a request does is in `app`."""
