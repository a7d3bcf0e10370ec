"""Which toolsets the user wants served, if anything is said about that."""

from pathlib import Path

from interlock.workspace.projects.settings import toolsets_in


def configured_toolsets(home: Path) -> tuple[str, ...] | None:
    """Those in the user's `config.toml`; None for all.

    Raises:
        SettingsBroken: the file cannot be used.
    """
    return toolsets_in(home / "config.toml")
