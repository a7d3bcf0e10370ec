"""Plan the change of each file of the client for an install or uninstall. Writes nothing."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code import JsonPath, Scope
from interlock.agents.hosts.claude_code_shell import shell_script
from interlock.agents.hosts.launcher import Program
from interlock.core.canonical import Json
from interlock.workspace.files import file_replacement, json_patch
from interlock.workspace.files.json_patch import UnusableJson
from interlock.workspace.machine import install_manifest
from interlock.workspace.machine.install_manifest import Install, InstalledFile

UNCONFINED = "commands are asked about, instead of running where they cannot write."
REPAIR_HINT = "Nothing was written. Correct the file or move it away, and repeat."


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


class Job(NamedTuple):
    """A JSON file of the client, and the function that finds our entries in it."""

    path: Path
    ours: Callable[[Mapping[str, Json]], list[JsonPath]]


class _File(NamedTuple):
    content: bytes | None
    text: str
    values: dict[str, Json]


class FilePlan(NamedTuple):
    change: FileChange | None = None
    entry: InstalledFile | None = None
    note: str = ""


def put_settings(
    job: Job, program: Program, scope: Scope, old: Install | None
) -> FilePlan | InstallRefusal:
    file = _open(job.path)
    if isinstance(file, InstallRefusal):
        return file
    script = note = ""
    if program.shell and scope == "user":
        script = shell_script(program.home, program.shell)
        foreign = (
            None if claude_code.has_own_shell(file.values) else claude_code.shell_in(file.values)
        )
        reason = "" if script else f"The path `{program.home}` contains the name of a shell"
        if foreign is not None:
            script, reason = "", f"`{job.path}` names a shell (`{foreign}`), which stays"
        note = f"{reason}: {UNCONFINED}" if reason else ""
    addition = claude_code.settings(program.home, scope, script)
    if claude_code.has_settings(file.values, addition):
        return FilePlan(entry=_known_entry(job, file, old), note=note)
    what = f"{len(claude_code.HOOKS)} hooks{', the shell for commands' if script else ''}"
    plan = _plan_insertion(job, file, addition, old, what)
    return plan if isinstance(plan, InstallRefusal) else plan._replace(note=note)


def put_server(job: Job, home: str, old: Install | None) -> FilePlan | InstallRefusal:
    file = _open(job.path)
    if isinstance(file, InstallRefusal):
        return file
    if claude_code.has_server(file.values, home):
        return FilePlan(entry=_known_entry(job, file, old))
    if claude_code.server_in(file.values) is not None and not job.ours(file.values):
        return FilePlan(
            note=f"`{job.path}` has a server `{claude_code.NAME}` that Interlock did not put there;"
            " it stays as it is."
        )
    return _plan_insertion(
        job, file, claude_code.servers(home), old, f"the MCP server `{claude_code.NAME}`"
    )


def _plan_insertion(
    job: Job, file: _File, addition: Mapping[str, Json], old: Install | None, what: str
) -> FilePlan | InstallRefusal:
    known = old.entry(job.path) if old else None
    base, _ = _without_ours(job, file, known)
    edit = json_patch.insert(base, addition)
    if isinstance(edit, UnusableJson):
        return _refuse_unusable(job.path, edit)
    existed = file.content is not None and (known is None or known.existed)
    after = edit.text.encode()
    values = json_patch.read(edit.text)
    assert not isinstance(values, UnusableJson), "what was written can be read"
    made = [str(directory) for directory in file_replacement.missing_directories(job.path)]
    return FilePlan(
        FileChange(job.path, file.content, after, what),
        InstalledFile(
            path=str(job.path),
            existed=existed,
            before=install_manifest.digest(base.encode()) if existed else "",
            after=install_manifest.digest(after),
            splices=edit.splices,
            made=edit.created_paths,
            directories=(*(known.directories if known else ()), *made),
            entries=install_manifest.digest_entries(values, job.ours(values)),
        ),
    )


def put_script(path: Path, text: str, what: str) -> FilePlan | InstallRefusal:
    """Scripts of the data home have no entries of their own: all its installs need them."""
    content, after = _read(path), text.encode()
    if isinstance(content, InstallRefusal):
        return content
    if content == after and os.access(path, os.X_OK):
        return FilePlan()
    return FilePlan(FileChange(path, content, after, what, mode=0o700))


def put_text(path: Path, text: str, old: Install | None) -> FilePlan | InstallRefusal:
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
    )
    if content == after:
        return FilePlan(entry=entry)
    if content is not None and (known is None or known.after != install_manifest.digest(content)):
        note = f"`{path}` holds a command that Interlock did not put there; it stays as it is."
        return FilePlan(entry=known, note=note)
    return FilePlan(FileChange(path, content, after, f"the command `/{path.stem}`"), entry)


def take_json(job: Job, old: Install | None) -> FilePlan | InstallRefusal:
    known = old.entry(job.path) if old else None
    file = _open(job.path)
    if isinstance(file, InstallRefusal):
        return file
    if file.content is None:
        return FilePlan()
    rest, is_by_name = _without_ours(job, file, known)
    if rest == file.text:
        return FilePlan()
    if known and not known.existed and json_patch.is_blank(rest):
        return FilePlan(
            FileChange(job.path, file.content, None, "removed: it was not there before")
        )
    after = rest.encode()
    what = "ours was taken out, and what was changed since stays"
    if known and install_manifest.digest(after) == known.before:
        what = "as it was before"
    elif is_by_name:
        what = "not as it was left, so our entries were found by what they say and taken out"
    return FilePlan(FileChange(job.path, file.content, after, what))


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


def _without_ours(job: Job, file: _File, known: InstalledFile | None) -> tuple[str, bool]:
    """The text without our entries, and whether those had to be found by their content."""
    rest = json_patch.cut_splices(file.text, known.splices) if known and known.splices else None
    is_by_name = rest is None
    rest = file.text if rest is None else rest
    values = json_patch.read(rest)
    assert not isinstance(values, UnusableJson), "it could be read with us in it"
    if not (doomed := job.ours(values)):
        return rest, False
    return json_patch.remove(rest, doomed, known.made if known else None), is_by_name


def _open(path: Path) -> _File | InstallRefusal:
    content = _read(path)
    if isinstance(content, InstallRefusal):
        return content
    text = json_patch.decode(content or b"")
    if isinstance(text, UnusableJson):
        return _refuse_unusable(path, text)
    values = json_patch.read(text)
    return (
        _refuse_unusable(path, values)
        if isinstance(values, UnusableJson)
        else _File(content, text, values)
    )


def _read(path: Path) -> bytes | InstallRefusal | None:
    try:
        return file_replacement.content_of(path)
    except OSError as error:
        return InstallRefusal(f"`{path}` cannot be read: {error.strerror}", REPAIR_HINT)


def _refuse_unusable(path: Path, fault: UnusableJson) -> InstallRefusal:
    return InstallRefusal(f"`{path}` {fault.what}", REPAIR_HINT)


def _known_entry(job: Job, file: _File, old: Install | None) -> InstalledFile:
    """The entry for a file in which everything is as it should be."""
    known = old.entry(job.path) if old else None
    after = install_manifest.digest(file.content or b"")
    entry = known or InstalledFile(str(job.path), existed=True, before="", after=after)
    entries = install_manifest.digest_entries(file.values, job.ours(file.values))
    return msgspec.structs.replace(entry, entries=entries)
