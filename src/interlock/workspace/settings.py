"""Settings that people write: the user's `config.toml` and a project's."""

from pathlib import Path
from typing import Any

import msgspec

from interlock.core.preferences import Wish
from interlock.workspace.failures import SettingsBroken


def preferences_in(path: Path) -> Wish:
    """The `[preferences]` of a file; nothing if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    try:
        text = path.read_text(encoding="utf-8")
        import tomllib  # noqa: PLC0415 (most people have no such file)

        found: dict[str, Any] = tomllib.loads(text)
        return msgspec.convert(found.get("preferences", {}), Wish)
    except (FileNotFoundError, NotADirectoryError):
        return Wish()
    except (OSError, ValueError) as error:  # not TOML, not UTF-8, or not of this shape
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
