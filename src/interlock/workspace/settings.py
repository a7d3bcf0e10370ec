"""Settings that people write: the user's `config.toml` and a project's."""

from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from interlock.core.preferences import Wish
from interlock.workspace.failures import SettingsBroken


def preferences_in(path: Path) -> Wish:
    """The `[preferences]` of a file; nothing if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return _section(path, "preferences", Wish)


Bindings: TypeAlias = dict[str, str | dict[str, str]]


def bindings_in(path: Path) -> Bindings:
    """What `[bindings]` puts into slots: of every workflow, or of one (`[bindings.id]`).

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return _section(path, "bindings", Bindings)


def bound_to(workflow: str, bindings: Bindings) -> dict[str, str]:
    own = bindings.get(workflow)
    for_all = {slot: text for slot, text in bindings.items() if isinstance(text, str)}
    return for_all | (own if isinstance(own, dict) else {})


def _section(path: Path, name: str, wanted: Any) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        import tomllib  # noqa: PLC0415 (most people have no such file)

        found: dict[str, Any] = tomllib.loads(text)
        return msgspec.convert(found.get(name, {}), wanted)
    except (FileNotFoundError, NotADirectoryError):
        return msgspec.convert({}, wanted)
    except (OSError, ValueError, RecursionError) as error:  # not TOML, or not of this shape
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
