"""What a user puts into the files of a client by hand: exactly this makes it start our server."""

from inline_snapshot import snapshot

from interlock.agents.hosts.registry import NAMES, host_named

FOR_A_COMMAND: dict[str, object] = snapshot(
    {
        "claude-code": [
            (
                ".mcp.json of the project (alwaysLoad shows the tools at once)",
                {
                    "mcpServers": {
                        "interlock": {
                            "type": "stdio",
                            "command": "/opt/interlock",
                            "args": ["mcp"],
                            "env": {"INTERLOCK_HOME": "/data"},
                            "alwaysLoad": True,
                        }
                    }
                },
            )
        ],
        "codex": [
            (
                "~/.codex/config.toml",
                """\
[mcp_servers.interlock]
command = "/opt/interlock"
args = ["mcp"]
env = { INTERLOCK_HOME = "/data" }
""",
            )
        ],
        "gemini": [
            (
                "~/.gemini/settings.json",
                {
                    "mcpServers": {
                        "interlock": {
                            "command": "/opt/interlock",
                            "args": ["mcp"],
                            "env": {"INTERLOCK_HOME": "/data"},
                            "trust": True,
                        }
                    }
                },
            )
        ],
        "opencode": [
            (
                "opencode.json of the project",
                {
                    "mcp": {
                        "interlock": {
                            "type": "local",
                            "command": ["/opt/interlock", "mcp"],
                            "environment": {"INTERLOCK_HOME": "/data"},
                            "enabled": True,
                        }
                    }
                },
            )
        ],
        "cursor": [
            (
                "~/.cursor/mcp.json",
                {
                    "mcpServers": {
                        "interlock": {
                            "type": "stdio",
                            "command": "/opt/interlock",
                            "args": ["mcp"],
                            "env": {"INTERLOCK_HOME": "/data"},
                        }
                    }
                },
            )
        ],
        "copilot": [
            (
                "~/.copilot/mcp-config.json",
                {
                    "mcpServers": {
                        "interlock": {
                            "type": "local",
                            "command": "/opt/interlock",
                            "args": ["mcp"],
                            "env": {"INTERLOCK_HOME": "/data"},
                            "tools": ["*"],
                        }
                    }
                },
            ),
            (
                ".vscode/mcp.json",
                {
                    "servers": {
                        "interlock": {
                            "type": "stdio",
                            "command": "/opt/interlock",
                            "args": ["mcp"],
                            "env": {"INTERLOCK_HOME": "/data"},
                        }
                    }
                },
            ),
        ],
    }
)
"""Where each is put, and what."""
FOR_AN_ADDRESS: dict[str, object] = snapshot(
    {
        "claude-code": (
            ".mcp.json of the project",
            {
                "mcpServers": {
                    "interlock": {
                        "type": "http",
                        "url": "http://127.0.0.1:7777/mcp",
                        "headers": {"Authorization": "Bearer ${TOKEN}"},
                        "alwaysLoad": True,
                    }
                }
            },
        ),
        "codex": (
            "~/.codex/config.toml",
            """\
[mcp_servers.interlock]
url = "http://127.0.0.1:7777/mcp"
bearer_token_env_var = "TOKEN"\
""",
        ),
        "gemini": (
            "~/.gemini/settings.json",
            {
                "mcpServers": {
                    "interlock": {
                        "httpUrl": "http://127.0.0.1:7777/mcp",
                        "headers": {"Authorization": "Bearer $TOKEN"},
                        "trust": True,
                    }
                }
            },
        ),
        "opencode": (
            "opencode.json of the project",
            {
                "mcp": {
                    "interlock": {
                        "type": "remote",
                        "url": "http://127.0.0.1:7777/mcp",
                        "headers": {"Authorization": "Bearer {file:/data/secret}"},
                        "enabled": True,
                    }
                }
            },
        ),
        "cursor": (
            "~/.cursor/mcp.json",
            {
                "mcpServers": {
                    "interlock": {
                        "url": "http://127.0.0.1:7777/mcp",
                        "headers": {"Authorization": "Bearer ${env:TOKEN}"},
                    }
                }
            },
        ),
        "copilot": (
            ".vscode/mcp.json, which asks for the content of /data/secret",
            {
                "inputs": [
                    {
                        "type": "promptString",
                        "id": "interlock",
                        "description": "The content of /data/secret",
                        "password": True,
                    }
                ],
                "servers": {
                    "interlock": {
                        "type": "http",
                        "url": "http://127.0.0.1:7777/mcp",
                        "headers": {"Authorization": "Bearer ${input:interlock}"},
                    }
                },
            },
        ),
    }
)
"""The same for a server that runs already."""


def test_the_entries_of_every_client_that_starts_a_server() -> None:
    server, variables = ["/opt/interlock", "mcp"], {"INTERLOCK_HOME": "/data"}

    entries = {name: host_named(name).manual_entries(server, variables) for name in NAMES}

    assert entries == FOR_A_COMMAND


def test_the_entry_of_every_client_for_a_server_at_an_address() -> None:
    place = ("http://127.0.0.1:7777/mcp", "TOKEN", "/data/secret")

    entries = {name: host_named(name).manual_http_entry(*place) for name in NAMES}

    assert entries == FOR_AN_ADDRESS
