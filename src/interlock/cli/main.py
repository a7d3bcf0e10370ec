"""The entry point: runs the MCP server, answers a hook, or runs the command that was typed."""

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    # Agents start the first two and wait for them: they must not pay for the command line.
    arguments = sys.argv[1:]
    if arguments == ["mcp"] or (arguments[:2] == ["mcp", "--toolsets"] and arguments[3:] == []):
        from interlock.mcp.instant import answer_while_loading  # noqa: PLC0415

        toolsets = arguments[2] if arguments[2:] else None
        opening = answer_while_loading(_import_server, toolsets)
        from interlock.cli.mcp import serve  # noqa: PLC0415

        sys.exit(serve(toolsets, opening))
    if arguments[:2] == ["hook", "--host"] and arguments[3::2] == ["--event", "--home"]:
        _prepare_imports()
        from interlock.cli.hook import answer_hook  # noqa: PLC0415

        sys.exit(answer_hook(*arguments[2::2]))
    from interlock.cli.commands import run_cli  # noqa: PLC0415

    sys.exit(run_cli(arguments))


def _import_server() -> None:
    _prepare_imports()
    import interlock.cli.mcp  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]

    gc.enable()


def _prepare_imports() -> None:
    # Nothing that importing makes is garbage: looking for some takes a twentieth of the start.
    gc.disable()
    # msgspec looks for `typing_extensions` and does without it; with what it imports in turn, it
    # takes half as long as starting Python.
    missing: dict[str, object] = {"typing_extensions": None}
    sys.modules.update(missing)  # pyright: ignore[reportArgumentType, reportCallIssue]
    import msgspec  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]

    del sys.modules["typing_extensions"]
