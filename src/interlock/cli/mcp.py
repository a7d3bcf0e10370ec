"""`interlock mcp`: the server that an agent client starts."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.hosts.project_use import project_use
from interlock.app.hosts.toolsets import announce_server, configured_toolsets
from interlock.cli.terminal import EXIT_DONE, EXIT_MISUSE, EXIT_REFUSED, print_error
from interlock.mcp.instant import Opening
from interlock.mcp.stdio import failure_reply
from interlock.mcp.stdio import serve as serve_stdio
from interlock.mcp.tools import TOOLSETS, NoSuchToolset, Tools, tools_of


def serve(toolsets: str | None = None, opening: Opening | None = None) -> int:
    """Serve until the client closes its end. Clients show stderr when this fails.

    `toolsets`: their names with commas between; None for those of the settings. Where they are
    named, all of their tools are listed; else those that the project uses.
    `opening`: the connection, if the client was answered already. Then what keeps us from the
    store is the answer to its calls, until that is repaired.
    """
    home = data_home()
    try:
        started = _start(home, toolsets)
    except (SettingsBroken, StoreFailure) as failure:
        hint = getattr(failure, "hint", "Correct the file, or move it away.")
        print_error(str(failure), hint)
        started = _start_when_repaired(home, toolsets, opening) if opening else EXIT_REFUSED
    if isinstance(started, int):
        return started
    app, names = started
    look = partial(project_use, app, Path.cwd()) if names is None else None
    served = tuple(TOOLSETS) if names is None else names
    announcement = announce_server(app, served, is_chosen=toolsets is not None)
    serve_stdio(app, resolve_tools(served) or (), opening, look)
    if announcement:
        announcement.withdraw()
    app.close()
    return EXIT_DONE


def _start(home: Path, toolsets: str | None) -> tuple[App, tuple[str, ...] | None] | int:
    """The opened store with the toolsets that are named; the exit code if one does not exist.

    Raises:
        SettingsBroken, StoreFailure: nothing can be served now.
    """
    names = split_toolsets(toolsets) if toolsets is not None else configured_toolsets(home)
    if resolve_tools(names or ()) is None:
        return EXIT_MISUSE
    app = open_app(home)
    return app, None if names is None else tuple(names)


def _start_when_repaired(
    home: Path, toolsets: str | None, opening: Opening
) -> tuple[App, tuple[str, ...] | None] | int:
    """Answer each call with the failure until it is gone; the exit code if the client leaves."""
    while line := opening.next_unanswered(opening.read):
        try:
            return _start(home, toolsets)
        except (SettingsBroken, StoreFailure) as failure:
            opening.skip_line(failure_reply(line, failure))
    return EXIT_REFUSED


def split_toolsets(toolsets: str) -> list[str]:
    return [name.strip() for name in toolsets.split(",")]


def resolve_tools(names: Sequence[str]) -> Tools | None:
    """The tools of these toolsets; None, and an error printed, if one does not exist."""
    tools = tools_of(names)
    if not isinstance(tools, NoSuchToolset):
        return tools
    available = ", ".join(TOOLSETS)
    hint = f"There are: {available}. Write commas between them; without any, all are served."
    print_error(f"There is no toolset `{tools.name}`", hint)
    return None
