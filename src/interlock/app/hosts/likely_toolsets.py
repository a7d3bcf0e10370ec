"""Guess which tools a server will list, from facts that cost no imports.

`toolsets` and `project_use` decide later, with the settings and the store. A client that was shown
too few tools is notified.
"""

import os

from interlock.core.strict_json import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CONFIG, NOTES = ".interlock/config.toml", ".interlock/notes"


def likely_toolsets(
    home: str, directory: str, environment: "Mapping[str, str]"
) -> tuple[str | None, str]:
    """Return the toolsets that the user configured, with commas between; and the likely use of the
    project, on which the listing depends where none are configured.

    A configuration that cannot be used is reported with the first call.
    """
    config = _read_config(os.path.join(home, "config.toml"))
    names: list[Any] | None = as_object(config.get("mcp")).get("toolsets")
    is_usable = isinstance(names, list) and all(isinstance(name, str) for name in names)
    root = _opted_in_root(directory)
    use = use_key(
        is_opted_in=bool(root),
        is_coordinated=bool(environment.get("INTERLOCK_STORE") or "store" in config),
        has_notes=any(
            name.endswith(".md") for _, _, files in os.walk(f"{root}/{NOTES}") for name in files
        ),
    )
    return ",".join(names) if names is not None and is_usable else None, use


def use_key(*, is_opted_in: bool, is_coordinated: bool, has_notes: bool) -> str:
    """Name a use of a project in one word."""
    if not is_opted_in:
        return "outside"
    return f"inside{'+coordination' * is_coordinated}{'+notes' * has_notes}"


def _read_config(path: str) -> "dict[str, Any]":
    if not os.path.exists(path):
        return {}
    import tomllib  # noqa: PLC0415 (it takes as long to import as Python to start)

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError, RecursionError):
        return {}


def _opted_in_root(directory: str) -> str:
    """Return the opted-in project around a directory; empty if there is none."""
    here = os.path.realpath(directory)
    while not os.path.lexists(f"{here}/{CONFIG}"):
        above = os.path.dirname(here)
        if above == here or os.path.isdir(f"{here}/.git"):
            return ""
        here = above
    return here
