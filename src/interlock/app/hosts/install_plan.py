"""Plan the change of each file of the client for an install or uninstall. Writes nothing."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from interlock.agents.hosts.host import SERVER, Host, JsonPart, OwnFile, TomlPart
from interlock.agents.hosts.own_entries import (
    has_own_shell,
    is_own_server,
    own_entries,
    server_in,
    shell_in,
)
from interlock.core.canonical import Json
from interlock.workspace.files import file_replacement, json_patch, toml_patch
from interlock.workspace.files.json_patch import UnusableJson
from interlock.workspace.files.toml_patch import UnusableToml
from interlock.workspace.machine import install_manifest
from interlock.workspace.machine.install_manifest import Install, InstalledFile

Part: TypeAlias = JsonPart | TomlPart | OwnFile

UNCONFINED = "commands are asked about, instead of running where they cannot write."
REPAIR_HINT = "Nothing was written. Correct the file or move it away, and repeat."


_MARKS = (
    *(b"Written by `interlock install", b"# Part of Interlock,"),
    *(rb"/launch\" hook ", rb"\"$L\" hook ", b'"name": "interlock",\n  "version"'),
)
"""Texts by which a file of ours is known where no notes tell."""


class FileChange(msgspec.Struct, frozen=True):
    """The planned change of one file."""

    path: Path
    before: bytes | None
    after: bytes | None
    """None: the file is deleted."""
    what: str
    mode: int | None = None
    """None: the file keeps its own."""


class InstallRefusal(msgspec.Struct, frozen=True):
    """Nothing was written."""

    what: str
    hint: str


class _File(NamedTuple):
    content: bytes | None
    text: str
    values: dict[str, Json]


class FilePlan(NamedTuple):
    change: FileChange | None = None
    entry: InstalledFile | None = None
    note: str = ""


def put_part(host: Host, part: Part, old: Install | None) -> FilePlan | InstallRefusal:
    """Plan to put a part of an install where it belongs; what is so already stays as it is."""
    match part:
        case JsonPart():
            return _put_json(host, part, old)
        case TomlPart():
            return _put_toml(part, old)
        case _:
            return put_text(
                *(Path(part.path), content_of_own_file(part), part.what, old),
                is_watched=part.is_watched,
                mode=0o755 if part.is_executable else None,
            )


def take_part(host: Host, part: Part, old: Install | None) -> FilePlan | InstallRefusal:
    """Plan to take a part of an install out; what the user has changed since stays."""
    match part:
        case JsonPart():
            return _take_json(host, part, old)
        case TomlPart():
            return _take_toml(part, old)
        case _:
            return take_text(Path(part.path), content_of_own_file(part), old)


def content_of_own_file(part: OwnFile) -> str:
    if isinstance(part.content, str):
        return part.content
    return msgspec.json.format(msgspec.json.encode(part.content), indent=2).decode() + "\n"


def _put_json(host: Host, part: JsonPart, old: Install | None) -> FilePlan | InstallRefusal:
    path = Path(part.path)
    file = _open(path)
    if isinstance(file, InstallRefusal):
        return file
    addition, notes = _what_may_be_added(host, part, file.values)
    expected = install_manifest.digest_entries(addition, own_entries(host, addition))
    present = install_manifest.digest_entries(file.values, own_entries(host, file.values))
    note = " ".join(notes)
    if expected == present:
        if not own_entries(host, addition):
            return FilePlan(note=note)
        return FilePlan(entry=_known_entry(path, file, present, old), note=note)
    plan = _plan_insertion(host, part, file, old)
    return plan if isinstance(plan, InstallRefusal) else plan._replace(note=note)


def _what_may_be_added(
    host: Host, part: JsonPart, values: Mapping[str, Json]
) -> tuple[dict[str, Json], list[str]]:
    """The entries that are put in, and notes about what others have in their place."""
    addition: dict[str, Json] = dict(part.addition)
    notes: list[str] = []
    for key, value in part.addition.items():
        if (
            key == part.servers
            and server_in(values, key) is not None
            and (key, SERVER) not in own_entries(host, values)
        ):
            del addition[key]
            notes.append(
                f"`{part.path}` has a server `{SERVER}` that Interlock did not put there; it stays"
                " as it is."
            )
        elif key == "env" and not has_own_shell(values) and shell_in(values) is not None:
            del addition[key]
            notes.append(
                f"`{part.path}` names a shell (`{shell_in(values)}`), which stays: {UNCONFINED}"
            )
        elif key == "statusLine" and values.get(key) and (key,) not in own_entries(host, values):
            del addition[key]
            notes.append(f"`{part.path}` has a status line, which stays as it is.")
        elif not isinstance(value, dict | list) and key in values:
            del addition[key]  # the version of the file: it has one already
    return addition, notes


def _plan_insertion(
    host: Host, part: JsonPart, file: _File, old: Install | None
) -> FilePlan | InstallRefusal:
    path = Path(part.path)
    known = old.entry(path) if old else None
    base, _ = _without_ours(host, part, file, known)
    rest = json_patch.read(base)
    assert not isinstance(rest, UnusableJson), "it could be read with us in it"
    addition, _ = _what_may_be_added(host, part, rest)
    edit = json_patch.insert(base, addition)
    if isinstance(edit, UnusableJson):
        return _refuse(path, edit.what)
    after = edit.text.encode()
    values = json_patch.read(edit.text)
    assert not isinstance(values, UnusableJson), "what was written can be read"
    entry = _new_entry(path, file.content, base, after, known)
    return FilePlan(
        FileChange(path, file.content, after, part.what),
        msgspec.structs.replace(
            entry,
            is_watched="hooks" in addition,
            splices=edit.splices,
            made=edit.created_paths,
            entries=install_manifest.digest_entries(values, own_entries(host, values)),
        ),
    )


def _new_entry(
    path: Path, content: bytes | None, base: str, after: bytes, known: InstalledFile | None
) -> InstalledFile:
    existed = content is not None and (known is None or known.existed)
    made = [str(directory) for directory in file_replacement.missing_directories(path)]
    return InstalledFile(
        path=str(path),
        existed=existed,
        before=install_manifest.digest(base.encode()) if existed else "",
        after=install_manifest.digest(after),
        directories=(*(known.directories if known else ()), *made),
    )


def _put_toml(part: TomlPart, old: Install | None) -> FilePlan | InstallRefusal:
    path = Path(part.path)
    file = _open_toml(path)
    if isinstance(file, InstallRefusal):
        return file
    known = old.entry(path) if old else None
    table = toml_patch.find_table(file.values, part.table)
    if table is not None and not is_own_server(table):
        note = (
            f"`{path}` has a server `{SERVER}` that Interlock did not put there; it stays as it is."
        )
        return FilePlan(note=note)
    expected = toml_patch.find_table(tomllib.loads(part.text), part.table)
    # Whatever else the user has set for our server stays.
    if table is not None and {**table, **expected} == table:
        digest = install_manifest.digest(file.content or b"")
        entry = known or InstalledFile(str(path), existed=True, before="", after=digest)
        return FilePlan(entry=msgspec.structs.replace(entry, entries=table_digest(table)))
    base = file.text if table is None else toml_patch.remove_table(file.text, part.table)
    after = None if base is None else toml_patch.append_table(base, part.text)
    if base is None or after is None:
        return _refuse(path, "cannot take another table at its end")
    entry = _new_entry(path, file.content, base, after.encode(), known)
    change = FileChange(path, file.content, after.encode(), part.what)
    return FilePlan(change, msgspec.structs.replace(entry, entries=table_digest(expected)))


def _take_toml(part: TomlPart, old: Install | None) -> FilePlan | InstallRefusal:
    path = Path(part.path)
    known = old.entry(path) if old else None
    file = _open_toml(path)
    if isinstance(file, InstallRefusal):
        return file
    if not is_own_server(toml_patch.find_table(file.values, part.table)):
        return FilePlan()
    rest = toml_patch.remove_table(file.text, part.table)
    if rest is None:
        return _refuse(path, f"has the table `{part.table}` where it cannot be taken out")
    if known and not known.existed and not rest.strip():
        return FilePlan(FileChange(path, file.content, None, "removed: it was not there before"))
    what = "ours was taken out, and what was changed since stays"
    if known and install_manifest.digest(rest.encode()) == known.before:
        what = "as it was before"
    return FilePlan(FileChange(path, file.content, rest.encode(), what))


def table_digest(table: object) -> str:
    """The digest of a table of ours."""
    return install_manifest.digest(msgspec.json.encode(table, order="deterministic"))


def put_script(path: Path, text: str, what: str, *, mode: int = 0o700) -> FilePlan | InstallRefusal:
    """Scripts of the data home have no entries of their own: all its installs need them."""
    content, after = _read(path), text.encode()
    if isinstance(content, InstallRefusal):
        return content
    if content == after and os.access(path, os.X_OK if mode & 0o100 else os.R_OK):
        return FilePlan()
    return FilePlan(FileChange(path, content, after, what, mode=mode))


def put_text(
    path: Path,
    text: str,
    what: str,
    old: Install | None,
    *,
    is_watched: bool = False,
    mode: int | None = None,
) -> FilePlan | InstallRefusal:
    known = old.entry(path) if old else None
    content = _read(path)
    if isinstance(content, InstallRefusal):
        return content
    after = text.encode()
    made = [str(directory) for directory in file_replacement.missing_directories(path)]
    entry = InstalledFile(
        path=str(path),
        existed=False,
        before="",
        after=install_manifest.digest(after),
        directories=(*(known.directories if known else ()), *made),
        is_watched=is_watched,
    )
    if content == after and (not mode or os.access(path, os.X_OK)):
        return FilePlan(entry=entry)
    is_ours = known is not None and (
        is_watched or known.after == install_manifest.digest(content or b"")
    )
    is_ours = is_ours or content == after or any(mark in (content or b"") for mark in _MARKS)
    if content is not None and not is_ours:
        note = f"`{path}` is there already, and Interlock did not write it; it stays as it is."
        return FilePlan(entry=known, note=note)
    return FilePlan(FileChange(path, content, after, what, mode=mode), entry)


def _take_json(host: Host, part: JsonPart, old: Install | None) -> FilePlan | InstallRefusal:
    path = Path(part.path)
    known = old.entry(path) if old else None
    file = _open(path)
    if isinstance(file, InstallRefusal):
        return file
    if file.content is None:
        return FilePlan()
    rest, is_by_name = _without_ours(host, part, file, known)
    if rest == file.text:
        return FilePlan()
    if known and not known.existed and json_patch.is_blank(rest):
        return FilePlan(FileChange(path, file.content, None, "removed: it was not there before"))
    after = rest.encode()
    what = "ours was taken out, and what was changed since stays"
    if known and install_manifest.digest(after) == known.before:
        what = "as it was before"
    elif is_by_name:
        what = "not as it was left, so our entries were found by what they say and taken out"
    return FilePlan(FileChange(path, file.content, after, what))


def take_text(path: Path, text: str, old: Install | None) -> FilePlan | InstallRefusal:
    known = old.entry(path) if old else None
    content = _read(path)
    if isinstance(content, InstallRefusal):
        return content
    if content is None:
        return FilePlan()
    if content == text.encode() or (known and known.after == install_manifest.digest(content)):
        return FilePlan(FileChange(path, content, None, "removed: it was not there before"))
    return FilePlan(note=f"`{path}` was changed since, so it stays." if known else "")


def take_script(path: Path) -> FilePlan | InstallRefusal:
    content = _read(path)
    if isinstance(content, InstallRefusal):
        return content
    if content is None:
        return FilePlan()
    return FilePlan(FileChange(path, content, None, "removed: no client needs it any more"))


def _without_ours(
    host: Host, part: JsonPart, file: _File, known: InstalledFile | None
) -> tuple[str, bool]:
    """The text without our entries, and whether those had to be found by their content."""
    rest = json_patch.cut_splices(file.text, known.splices) if known and known.splices else None
    is_by_name = rest is None
    rest = file.text if rest is None else rest
    values = json_patch.read(rest)
    assert not isinstance(values, UnusableJson), "it could be read with us in it"
    doomed = [*own_entries(host, values)]
    if known and known.made is not None and is_by_name:
        # Scalars, like the version of a file, are ours only if we put them there.
        doomed += [
            (key,)
            for key, value in part.addition.items()
            if not isinstance(value, dict | list)
            and values.get(key) == value
            and ({(), (key,)} & set(known.made))
        ]
    if not doomed:
        return rest, False
    return json_patch.remove(rest, doomed, known.made if known else None), is_by_name


def _open(path: Path) -> _File | InstallRefusal:
    content = _read(path)
    if isinstance(content, InstallRefusal):
        return content
    text = json_patch.decode(content or b"")
    if isinstance(text, UnusableJson):
        return _refuse(path, text.what)
    values = json_patch.read(text)
    return (
        _refuse(path, values.what)
        if isinstance(values, UnusableJson)
        else _File(content, text, values)
    )


def _open_toml(path: Path) -> _File | InstallRefusal:
    content = _read(path)
    if isinstance(content, InstallRefusal):
        return content
    found = toml_patch.read(content or b"")
    return _refuse(path, found.what) if isinstance(found, UnusableToml) else _File(content, *found)


def _read(path: Path) -> bytes | InstallRefusal | None:
    try:
        return file_replacement.content_of(path)
    except OSError as error:
        return InstallRefusal(f"`{path}` cannot be read: {error.strerror}", REPAIR_HINT)


def _refuse(path: Path, what: str) -> InstallRefusal:
    return InstallRefusal(f"`{path}` {what}", REPAIR_HINT)


def _known_entry(path: Path, file: _File, entries: str, old: Install | None) -> InstalledFile:
    """The entry for a file in which everything is as it should be."""
    known = old.entry(path) if old else None
    after = install_manifest.digest(file.content or b"")
    entry = known or InstalledFile(str(path), existed=True, before="", after=after)
    return msgspec.structs.replace(entry, entries=entries, is_watched="hooks" in file.values)
