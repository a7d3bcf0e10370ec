"""Guess which toolsets a server will list, from facts that cost no imports.

`toolsets` decides later, with the settings and the store. A client that was shown another listing
is notified.
"""

import os

from interlock.core.strict_json import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CONFIG = ".interlock/config.toml"


def likely_toolsets(
    home: str, directory: str, environment: "Mapping[str, str]"
) -> tuple[str | None, bool]:
    """Return the toolsets that the user configured, with commas between; and whether there is
    likely to be coordination, on which the default depends.

    A configuration that cannot be used is reported with the first call.
    """
    config = _read_config(os.path.join(home, "config.toml"))
    names: list[Any] | None = as_object(config.get("mcp")).get("toolsets")
    is_usable = isinstance(names, list) and all(isinstance(name, str) for name in names)
    is_shared = environment.get("INTERLOCK_STORE") or "store" in config
    is_coordinated = bool(is_shared) or os.path.lexists(f"{_top(directory)}/{CONFIG}")
    return ",".join(names) if names is not None and is_usable else None, is_coordinated


def _read_config(path: str) -> "dict[str, Any]":
    if not os.path.exists(path):
        return {}
    import tomllib  # noqa: PLC0415 (it takes as long to import as Python to start)

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError, RecursionError):
        return {}


def _top(directory: str) -> str:
    """Return the top of the worktree around a directory, or the directory that has opted in."""
    here = os.path.realpath(directory)
    above = [here]
    while (parent := os.path.dirname(above[-1])) != above[-1]:
        above.append(parent)
    for marker in (".git", CONFIG):
        for folder in above:
            if os.path.lexists(f"{folder}/{marker}"):
                return folder
    return here
