"""Settings that people write: the user's `config.toml` and a project's."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Meta

from interlock.core import visible_text
from interlock.core.gate.notice import NoticeLimit
from interlock.core.gate.rules import Rule, RuleClass, wrongly_advisory_rules
from interlock.core.gate.trust import UserPolicy
from interlock.core.preferences import Wish
from interlock.core.session.requirements import (
    BUILT_IN_IDS,
    CommandVerifier,
    FileVerifier,
    Level,
    Requirement,
    VerdictVerifier,
    Verifier,
)
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.files.toml_text import parse_toml

CONFIG_BYTES_MAX = 256 * 1024  # it may come with a clone, and a link in it may lead to anything


def preferences_in(path: Path) -> Wish:
    """Return the `[preferences]` of a file; none if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(path, "preferences", Wish)


class _McpSection(msgspec.Struct, frozen=True):
    toolsets: tuple[str, ...] | None = None


def toolsets_in(path: Path) -> tuple[str, ...] | None:
    """Return the `toolsets` of `[mcp]`; None if they are not set.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    section: _McpSection = section_in(path, "mcp", _McpSection)
    return section.toolsets


class NotesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `[notes]`, of a project's config or of the user's."""

    folder: str = ""
    """The folder in the project for its notes."""
    budget: Annotated[int, Meta(ge=200, le=20_000)] | None = None
    """The tokens for what an agent is told when a session starts."""
    folders: dict[str, str] = {}
    """By the directory of a project, a folder anywhere on the disk. Only the user's count."""


def notes_in(path: Path) -> NotesSettings:
    """Return the `[notes]` of a file; the defaults if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(path, "notes", NotesSettings)


class _UnattendedSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    proof: tuple[str, ...] | str = ()


def proofs_in(path: Path) -> tuple[str, ...]:
    """Return the commands that prove unattended work: `proof` of `[unattended]`, one or several.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    section: _UnattendedSection = section_in(path, "unattended", _UnattendedSection)
    return (section.proof,) if isinstance(section.proof, str) else section.proof


class RetentionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's section `[retention]`: for how many days something is kept."""

    compaction_days: Annotated[int, Meta(ge=1, le=36_500)] = 30
    """The notes of histories that were compacted."""
    archived_days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    """Sessions after they were archived; None: for ever."""


def retention_in(path: Path) -> RetentionSettings:
    """Return the `[retention]` of a file; the defaults if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(path, "retention", RetentionSettings)


class OutsideServices(msgspec.Struct, frozen=True):
    """The user's `[coordination]`: systems of others to take part in. A project cannot name any.

    Other keys of that section belong to others, so none is forbidden here.
    """

    mail_url: str = ""
    """The MCP endpoint of an Agent Mail server; empty: none is used."""
    mail_token: str = ""
    mail_down: Literal["warn", "halt"] = "warn"
    """Whether work stops when the server cannot be reached."""
    beads: bool = False
    beads_command: str = "bd"


def outside_services_in(path: Path) -> OutsideServices:
    """Return the outside services of the user's file; none if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(path, "coordination", OutsideServices)


_VERIFIERS = ("command", "file", "verdict")
_REQUIREMENT_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class _ProjectRequirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    level: Level
    step: str
    command: str = ""
    file: str = ""
    verdict: str = ""
    remedy: str = ""


class _ProtocolSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    commit: bool = False
    requirements: tuple[_ProjectRequirement, ...] = ()
    reviewers: Annotated[tuple[str, ...], Meta(max_length=20)] = ()


class ProtocolSettings(msgspec.Struct, frozen=True):
    """The section `[protocol]` of a project's config. It can only ask for more."""

    commits: bool = False
    """Whether the session's own files are committed when a session ends."""
    requirements: tuple[Requirement, ...] = ()
    reviewers: tuple[str, ...] = ()
    """The agents that must review every feature."""


def protocol_in(path: Path) -> ProtocolSettings:
    """Return the `[protocol]` of a project's config; the defaults if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    section: _ProtocolSection = section_in(path, "protocol", _ProtocolSection)
    ids = [one.id for one in section.requirements]
    for one in section.requirements:
        if fault := _requirement_fault(one, ids):
            name = visible_text.make_visible(one.id)
            raise SettingsBroken(f"`{path}` cannot be used: the requirement `{name}` {fault}")
    added = tuple(map(_requirement, section.requirements))
    return ProtocolSettings(section.commit, added, section.reviewers)


def _requirement_fault(added: _ProjectRequirement, ids: list[str]) -> str:
    if not _REQUIREMENT_ID.fullmatch(added.id):
        return "must have an id of letters, digits, - and _"
    if added.id in BUILT_IN_IDS or ids.count(added.id) > 1:
        return "has an id that another one has"
    if not added.step.strip():
        return "must say in `step` what is to be done"
    verifiers = [name for name in _VERIFIERS if getattr(added, name).strip()]
    if len(verifiers) != 1:
        return f"must have exactly one of {', '.join(f'`{name}`' for name in _VERIFIERS)}"
    parts = Path(added.file).parts
    if added.file and (Path(added.file).is_absolute() or ".." in parts or "\0" in added.file):
        return "must name a `file` in the project"
    return ""


def _requirement(added: _ProjectRequirement) -> Requirement:
    verifier: Verifier = VerdictVerifier(added.verdict.strip())
    if added.command:
        verifier = CommandVerifier(added.command.strip())
    elif added.file:
        verifier = FileVerifier(added.file.strip())
    return Requirement(added.id, added.level, "end", added.step, added.remedy, verifier)


Bindings: TypeAlias = dict[str, str | dict[str, str]]


def bindings_in(path: Path) -> Bindings:
    """Return what `[bindings]` puts into slots: of every workflow, or of one (`[bindings.id]`).

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(path, "bindings", Bindings)


def bindings_for(workflow: str, bindings: Bindings) -> dict[str, str]:
    """Return the texts for the slots of a workflow; its own count more than those for all."""
    own = bindings.get(workflow)
    for_all = {slot: text for slot, text in bindings.items() if isinstance(text, str)}
    return for_all | (own if isinstance(own, dict) else {})


class _UserGateSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: dict[Rule, RuleClass] = {}
    notice_after: Annotated[int, Meta(ge=2)] = NoticeLimit().denials
    notice_minutes: Annotated[int, Meta(ge=1, le=24 * 60)] = NoticeLimit().minutes
    network_commands: tuple[Annotated[str, Meta(min_length=1)], ...] = ()


def user_policy_in(path: Path) -> UserPolicy:
    """Return the policy of the user's `[gate]` for every project; the defaults if there is no file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    section: _UserGateSection = section_in(path, "gate", _UserGateSection)
    if wrong_rules := wrongly_advisory_rules(section.rules):
        raise SettingsBroken(
            f"`{path}` cannot be used: the rule `{wrong_rules[0]}` cannot be advisory"
        )
    limit = NoticeLimit(section.notice_after, section.notice_minutes)
    return UserPolicy(section.rules, limit, section.network_commands)


class _ApprovalsSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    expire_days: Annotated[int, Meta(ge=0, le=3_650)] = 7


def approval_expiry_days_in(path: Path) -> int:
    """Return after how many days an approval expires that has no deadline; 0 is never.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    section: _ApprovalsSection = section_in(path, "approvals", _ApprovalsSection)
    return section.expire_days


def store_url_in(path: Path) -> str:
    """Return the URL of the store that the user's file names; empty if it names none.

    Raises:
        SettingsBroken: the file is there but is not what it should be, and may name one.
    """
    try:
        url: str | None = _value(path, "store", str | None, default=None)
    except SettingsBroken:
        # Other mistakes are reported where they matter. Nobody's sessions may go to another store
        # than before, though, because of a mistake in some other line.
        if _mentions_store(path):
            raise
        return ""
    if url is None and _names_store(_tables(path)):
        raise SettingsBroken(
            f"`{path}` cannot be used: `store` must stand above the first [section]"
        )
    return url or ""


def _names_store(value: Any) -> bool:
    """Whether some section names a database as the store, where it would not be noticed."""
    match value:
        case {"store": str(url)} if url.startswith(("postgresql://", "postgres://")):
            return True
        case dict():
            return any(map(_names_store, cast("dict[str, Any]", value).values()))
        case list():
            return any(map(_names_store, cast("list[Any]", value)))
        case _:
            return False


def _mentions_store(path: Path) -> bool:
    try:
        return "store" in read_regular_file(path, CONFIG_BYTES_MAX).decode("utf-8")
    except (OSError, ValueError):
        return True


def section_in(path: Path, name: str, shape: Any) -> Any:
    """Return a section of a file in its shape; an empty one if there is none.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return _value(path, name, shape, default={})


def _value(path: Path, name: str, shape: Any, *, default: Any) -> Any:
    tables = _tables(path)
    try:
        return msgspec.convert(tables.get(name, default), shape)
    except (ValueError, RecursionError) as error:  # it does not have this shape
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error


def _tables(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_regular_file(path, CONFIG_BYTES_MAX))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:  # not TOML
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
