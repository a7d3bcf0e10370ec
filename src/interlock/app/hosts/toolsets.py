"""The toolsets that the user's configuration asks for, if it names any."""

from pathlib import Path

from interlock.workspace.projects.settings import toolsets_in


def configured_toolsets(home: Path) -> tuple[str, ...] | None:
    """The toolsets in the user's `config.toml`; None for all.

    Raises:
        SettingsBroken: the file cannot be used.
    """
    return toolsets_in(home / "config.toml")
