"""MCP over stdio: a line in, a line out, until the client closes its end."""

import os
import sys
from typing import BinaryIO

from interlock.app.context import App
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import Tools

LINE_BYTES_MAX = 16 * 1024 * 1024  # far above any real call; a bound on what one call may cost


def serve(app: App, tools: Tools) -> None:
    """Answer until end of input. stdout carries the protocol and nothing else."""
    protocol = McpProtocol(app, tools)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # From here on a stray print goes to the log and cannot break the protocol.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        while line := _read_line(sys.stdin.buffer):
            reply = None if line.isspace() else protocol.answer(line)
            if reply is not None:
                replies.write(reply + b"\n")
                replies.flush()
    except BrokenPipeError:
        # The client is gone. The work whose reply it missed is recorded all the same.
        os._exit(0)  # an ordinary exit would try to flush once more, and complain


def _read_line(requests: BinaryIO) -> bytes:
    line = requests.readline(LINE_BYTES_MAX)
    if len(line) == LINE_BYTES_MAX:
        while rest := requests.readline(LINE_BYTES_MAX):
            if rest.endswith(b"\n"):
                break
        return b"(a line of more than 16 MiB)\n"  # is answered as what it is: not JSON
    return line
