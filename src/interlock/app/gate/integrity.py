"""The files that make the gate work: notice that somebody else has changed them, and say so.

In coding a command can change any file of the user's, by accident too (`git clean -fdx`). So what
the user last looked at is kept: the project's config with the trust in it, and digests of what was
installed: our scripts in the data home, and our entries in the client's settings. Where the two
differ, sessions go back to reading until the user has looked. The fast hook only looks whether a
file was touched at all, by the stamps that are kept in the session's row.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from interlock.agents.hosts.own_entries import own_entries
from interlock.agents.hosts.registry import host_named
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files import file_replacement
from interlock.workspace.files.regular_file import stamp_of
from interlock.workspace.git import state as git
from interlock.workspace.machine import grants, install_manifest
from interlock.workspace.machine.install_manifest import InstalledFile, Manifest
from interlock.workspace.machine.install_manifest import digest as digest_of
from interlock.workspace.projects import project

REPAIR = "`interlock doctor` shows what is different, and `--repair` puts it back"


class Difference(msgspec.Struct, frozen=True):
    """A file that is not as the user left it."""

    path: Path
    what: str
    """The fact, as words after its path."""
    before: bytes | None = None
    """The content that can be put back; None if installing again does that."""


class FileInspection(NamedTuple):
    differences: list[Difference]
    watched: str
    """A line for each file, with its stamp and path; empty if one is not as it was left."""


def differences(home: Path, root: Path | None) -> list[Difference]:
    """The files of this project and of the client that are not as they were left.

    Notes of ours that cannot be used tell nothing; whoever needs them reports that.
    """
    return _differences(home, root, _load_manifest(home))


def _differences(home: Path, root: Path | None, manifest: Manifest) -> list[Difference]:
    found: list[Difference] = []
    with suppress(SettingsBroken):
        found += _config_differences(home, root) if root else []
    return found + _client_differences(home, root, manifest)


def _load_manifest(home: Path) -> Manifest:
    """The record of what was installed; empty if it cannot be used."""
    try:
        return install_manifest.load(home)
    except SettingsBroken:
        return Manifest(1, ())


def governed_root(home: Path, directory: Path) -> Path | None:
    """The project around a directory that has opted in, also if its config has vanished since."""
    return project.root_of(directory) or _vanished_project(home, directory)


def _vanished_project(home: Path, directory: Path) -> Path | None:
    try:
        roots = {checkout.root for checkout in grants.load_trusted_checkouts(home)}
    except SettingsBroken:
        return None
    here = directory.resolve()
    gone = (path for path in (here, *here.parents) if str(path) in roots)
    return next((path for path in gone if not (path / project.CONFIG).exists()), None)


def ungoverned_worktree_warning(home: Path, directory: Path) -> str:
    """The warning for a worktree without a config whose main checkout has one; empty otherwise."""
    main = git.main_checkout(directory)
    if main is None or governed_root(home, directory) or project.root_of(main) != main:
        return ""
    return (
        f"`{main}` has opted in, and this worktree of it has not: no gate holds here. The user can"
        f" opt it in with `interlock init`; a committed `{project.CONFIG}` does so for every one."
    )


def explain(difference: Difference) -> str:
    return f"`{difference.path}` {difference.what}. {REPAIR}"


def diff(difference: Difference) -> tuple[str, ...]:
    """The lines that tell the file from what can be put back."""
    import difflib  # noqa: PLC0415 (only whoever shows them needs it)

    if difference.before is None:
        return ()
    contents = (_content_of(difference.path), difference.before)
    now, left = ((content or b"").decode("utf-8", "replace").splitlines() for content in contents)
    return tuple(difflib.unified_diff(now, left, "now", "as you left it", lineterm=""))


def trusted_config(home: Path, root: Path) -> bytes | None:
    """The config of a project as the user last looked at it; None if nobody did.

    Raises:
        SettingsBroken: our own notes cannot be used.
    """
    trusted = [x for x in grants.load_trusted_checkouts(home) if x.root == str(root)]
    return trusted[-1].content.encode() if trusted and trusted[-1].content else None


def inspect(home: Path, root: Path, config_stamp: str) -> FileInspection:
    """Look at every file that makes the gate work. The config had that stamp when it was read."""
    # The stamps first: a change in between must not pass for the content that is looked at.
    manifest = _load_manifest(home)
    paths = [home / name for name in manifest.scripts]
    paths += [Path(file.path) for _, file in _watched_files(manifest, root)]
    stamps = {root / project.CONFIG: config_stamp, **{path: stamp_of(path) for path in paths}}
    changed = _differences(home, root, manifest)
    lines = [f"{stamp}\t{path}" for path, stamp in stamps.items()]
    is_sound = not changed and all(stamps.values())
    return FileInspection(changed, "\n".join(lines) if is_sound else "")


def _config_differences(home: Path, root: Path) -> list[Difference]:
    before = trusted_config(home, root)
    if before is None:
        return []
    path = root / project.CONFIG
    try:
        content = file_replacement.content_of(path)
    except OSError:
        return []  # reading its settings says what is wrong
    if content == before:
        return []
    if content is None:
        what = "is gone (`interlock trust --revoke` in the project says that this is meant so)"
    else:
        what = "was changed since the user last looked (`interlock trust` accepts it as it is)"
    return [Difference(path, what, before)]


def _client_differences(home: Path, root: Path | None, manifest: Manifest) -> list[Difference]:
    changed: list[Difference] = []
    for name, digest in manifest.scripts.items():
        content = _content_of(home / name)
        if content is None:
            changed.append(Difference(home / name, "is gone"))
        elif install_manifest.digest(content) != digest:
            changed.append(Difference(home / name, "was changed since it was installed"))
        elif not os.access(home / name, os.X_OK):
            changed.append(Difference(home / name, "cannot be run any more"))
    for host, file in _watched_files(manifest, root):
        content = _content_of(Path(file.path)) or b""
        digest = _digest_of_entries(host, content) if file.entries else digest_of(content)
        if digest != (file.entries or file.after):
            what = "does not hold Interlock's hooks as they were installed"
            changed.append(Difference(Path(file.path), what))
    return changed


def _watched_files(manifest: Manifest, root: Path | None) -> list[tuple[str, InstalledFile]]:
    """The files with our hooks that count here, with their hosts."""
    return [
        (install.host, file)
        for install in manifest.installs
        if install.scope == "user" or install.root == str(root)
        for file in install.files
        if file.is_watched
    ]


def _content_of(path: Path) -> bytes | None:
    try:
        return file_replacement.content_of(path)
    except OSError:
        return None


def _digest_of_entries(host: str, content: bytes) -> str:
    """The digest of our entries in settings; empty if they cannot be read."""
    from interlock.workspace.files import json_patch  # noqa: PLC0415 (files are seldom touched)

    text = json_patch.decode(content)
    values = text if isinstance(text, json_patch.UnusableJson) else json_patch.read(text)
    if isinstance(values, json_patch.UnusableJson | str):
        return ""
    return install_manifest.digest_entries(values, own_entries(host_named(host), values))
