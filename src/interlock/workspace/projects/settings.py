"""Settings that people write: the user's `config.toml` and a project's."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias, cast

import msgspec
from msgspec import Meta

from interlock.core.gate.notice import NoticeLimit
from interlock.core.gate.rules import Rule, RuleClass, wrongly_advisory_rules
from interlock.core.gate.trust import UserPolicy
from interlock.core.preferences import Wish
from interlock.workspace.failures import SettingsBroken


def preferences_in(path: Path) -> Wish:
    """The `[preferences]` of a file; nothing if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return _section(path, "preferences", Wish)


class _McpSection(msgspec.Struct, frozen=True):
    toolsets: tuple[str, ...] | None = None


def toolsets_in(path: Path) -> tuple[str, ...] | None:
    """The `toolsets` of `[mcp]`; None if nothing is said about them.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    found: _McpSection = _section(path, "mcp", _McpSection)
    return found.toolsets


class NotesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `[notes]` says, in a project's config or in the user's."""

    folder: str = ""
    """In the project, for its notes."""
    budget: Annotated[int, Meta(ge=200, le=20_000)] | None = None
    """Tokens of what an agent is told when a session starts."""
    folders: dict[str, str] = {}
    """Only the user's counts: for a project (by its directory) a folder anywhere on the disk."""


def notes_in(path: Path) -> NotesSettings:
    """
    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return _section(path, "notes", NotesSettings)


Bindings: TypeAlias = dict[str, str | dict[str, str]]


def bindings_in(path: Path) -> Bindings:
    """What `[bindings]` puts into slots: of every workflow, or of one (`[bindings.id]`).

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return _section(path, "bindings", Bindings)


def bindings_for(workflow: str, bindings: Bindings) -> dict[str, str]:
    own = bindings.get(workflow)
    for_all = {slot: text for slot, text in bindings.items() if isinstance(text, str)}
    return for_all | (own if isinstance(own, dict) else {})


class _UserGateSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: dict[Rule, RuleClass] = {}
    notice_after: Annotated[int, Meta(ge=2)] = NoticeLimit().denials
    notice_minutes: Annotated[int, Meta(ge=1, le=24 * 60)] = NoticeLimit().minutes


def user_policy_in(path: Path) -> UserPolicy:
    """What the user's `[gate]` chooses for every project; the defaults if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    found: _UserGateSection = _section(path, "gate", _UserGateSection)
    if firm := wrongly_advisory_rules(found.rules):
        raise SettingsBroken(f"`{path}` cannot be used: the rule `{firm[0]}` cannot be advisory")
    return UserPolicy(found.rules, NoticeLimit(found.notice_after, found.notice_minutes))


def store_url_in(path: Path) -> str:
    """The URL of the store that the user's file names; nothing where it names none.

    Raises:
        SettingsBroken: the file is there but is not what it should be, and may name one.
    """
    try:
        found: str | None = _value(path, "store", str | None, default=None)
    except SettingsBroken:
        # Whatever else is wrong is said where it matters. Nobody's sessions may go to another
        # store than before, though, because of a mistake in some other line.
        if _mentions_store(path):
            raise
        return ""
    if found is None and _names_store(_tables(path)):
        raise SettingsBroken(
            f"`{path}` cannot be used: `store` must stand above the first [section]"
        )
    return found or ""


def _names_store(found: Any) -> bool:
    """Whether a database is named as the store in some section, where nobody would look for it."""
    match found:
        case {"store": str(url)} if url.startswith(("postgresql://", "postgres://")):
            return True
        case dict():
            return any(map(_names_store, cast("dict[str, Any]", found).values()))
        case list():
            return any(map(_names_store, cast("list[Any]", found)))
        case _:
            return False


def _mentions_store(path: Path) -> bool:
    try:
        return "store" in path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return True


def _section(path: Path, name: str, shape: Any) -> Any:
    return _value(path, name, shape, default={})


def _value(path: Path, name: str, shape: Any, *, default: Any) -> Any:
    found = _tables(path)
    try:
        return msgspec.convert(found.get(name, default), shape)
    except (ValueError, RecursionError) as error:  # not of this shape
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error


def _tables(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        import tomllib  # noqa: PLC0415 (most people have no such file)

        return tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:  # not TOML
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
