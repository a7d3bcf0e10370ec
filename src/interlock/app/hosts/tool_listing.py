"""The tool listing of an MCP server: the request for it, and the count in the answer."""

import msgspec

LISTING = b"".join(
    msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "interlock-doctor", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
)
"""The input of a server that is asked for its tools."""


class _Tools(msgspec.Struct, frozen=True):
    tools: list[msgspec.Raw]


class _Reply(msgspec.Struct, frozen=True):
    id: int
    result: _Tools


def tools_in(out: bytes) -> int:
    """Return the number of tools in the output of a server; 0 where it did not list them."""
    for line in out.splitlines():
        try:
            reply = msgspec.json.decode(line, type=_Reply)
        except msgspec.MsgspecError:
            continue
        return len(reply.result.tools)
    return 0
