"""The entry point: runs the MCP server, or the command that was typed."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    # Agents start this and wait for it: it must not pay for the rest of the command line.
    if sys.argv[1:] == ["mcp"] or (sys.argv[1:3] == ["mcp", "--toolsets"] and sys.argv[4:] == []):
        # Nothing that importing makes is garbage: looking for some takes a twentieth of the start.
        gc.disable()
        from interlock.cli.mcp import serve  # noqa: PLC0415

        gc.enable()
        sys.exit(serve(*sys.argv[3:]))
    from interlock.cli.commands import run_cli  # noqa: PLC0415

    sys.exit(run_cli(sys.argv[1:]))
