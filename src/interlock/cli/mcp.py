"""`interlock mcp`: the server that an agent client starts."""

import signal
from collections.abc import Sequence
from pathlib import Path

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.hosts.toolsets import announce_server, configured_toolsets, is_coordinated
from interlock.cli.terminal import EXIT_DONE, EXIT_MISUSE, EXIT_REFUSED, print_error
from interlock.mcp.stdio import serve as serve_stdio
from interlock.mcp.tools import TOOLSETS, NoSuchToolset, Tools, default_toolsets, tools_of


def serve(toolsets: str | None = None) -> int:
    """Serve until the client closes its end. Clients show stderr when this fails.

    `toolsets`: their names with commas between; None for those of the settings, or all.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)  # end at once: an append happens whole or not at all
    home = data_home()
    try:
        names = split_toolsets(toolsets) if toolsets is not None else configured_toolsets(home)
        if resolve_tools(names or ()) is None:
            return EXIT_MISUSE
        app = open_app(home)
        if names is None:
            names = default_toolsets(is_coordinated=is_coordinated(app, Path.cwd()))
    except SettingsBroken as broken:
        print_error(str(broken), "Correct the file, or move it away.")
        return EXIT_REFUSED
    except StoreFailure as failure:
        print_error(str(failure), failure.hint)
        return EXIT_REFUSED
    announcement = announce_server(app, tuple(names), is_chosen=toolsets is not None)
    serve_stdio(app, resolve_tools(names) or ())
    if announcement:
        announcement.withdraw()
    app.close()
    return EXIT_DONE


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
