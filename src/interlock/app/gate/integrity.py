"""The files that make the gate work: notice that somebody else has changed them, and say so.

In coding a command can change any file of the user's, by accident too (`git clean -fdx`). So what
the user last looked at is kept: the project's config with the trust in it, and what was installed
in the client's files. Where the two differ, sessions go back to reading until the user has looked.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code_shell import LAUNCHER
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files import file_replacement, json_patch
from interlock.workspace.files.json_patch import UnusableJson
from interlock.workspace.machine import grants, install_manifest
from interlock.workspace.projects import project

REPAIR = "`interlock doctor claude-code` shows what is different, and `--repair` puts it back"


class Difference(msgspec.Struct, frozen=True):
    """A file that is not as the user left it."""

    path: Path
    what: str
    """The fact, as words after its path."""
    before: bytes | None = None
    """The content that can be put back; None if installing again does that."""


def differences(home: Path, root: Path | None) -> list[Difference]:
    """The files of this project and of the client that are not as they were left.

    Notes of ours that cannot be used tell nothing; whoever needs them reports that.
    """
    found: list[Difference] = []
    with suppress(SettingsBroken):
        found += _config_differences(home, root) if root else []
    with suppress(SettingsBroken):
        found += _client_differences(home, root)
    return found


def vanished_project(home: Path, directory: Path) -> Path | None:
    """The project around a directory that had opted in, and whose config is gone; None if none."""
    try:
        roots = {checkout.root for checkout in grants.load_trusted_checkouts(home)}
    except SettingsBroken:
        return None
    here = directory.resolve()
    gone = (path for path in (here, *here.parents) if str(path) in roots)
    return next((path for path in gone if not (path / project.CONFIG).exists()), None)


def explain(difference: Difference) -> str:
    return f"`{difference.path}` {difference.what}. {REPAIR}"


def _config_differences(home: Path, root: Path) -> list[Difference]:
    trusted = [x for x in grants.load_trusted_checkouts(home) if x.root == str(root)]
    if not trusted or not trusted[-1].content:
        return []
    path, before = root / project.CONFIG, trusted[-1].content.encode()
    try:
        content = file_replacement.content_of(path)
    except OSError:
        return []  # reading its settings says what is wrong
    if content == before:
        return []
    what = "was changed since the user last looked (`interlock trust` accepts it as it is)"
    return [Difference(path, "is gone" if content is None else what, before)]


def _client_differences(home: Path, root: Path | None) -> list[Difference]:
    changed: list[Difference] = []
    for install in install_manifest.load(home):
        if install.scope == "project" and install.root != str(root):
            continue
        places = claude_code.client_files(_scope_of(install.scope), Path(install.root))
        if not _has_hooks(places.settings, home):
            changed.append(Difference(places.settings, "has not all of Interlock's hooks any more"))
        if not (home / LAUNCHER).exists():
            changed.append(Difference(home / LAUNCHER, "is gone"))
    return changed


def _scope_of(name: str) -> claude_code.Scope:
    return "project" if name == "project" else "user"


def _has_hooks(path: Path, home: Path) -> bool:
    try:
        content = file_replacement.content_of(path)
    except OSError:
        return True  # `doctor` says what is wrong
    text = json_patch.decode(content or b"")
    values = text if isinstance(text, UnusableJson) else json_patch.read(text)
    if isinstance(values, UnusableJson | str):
        return True
    hooks = [hook for hook in claude_code.installed_hooks(values) if hook.home == str(home)]
    return {hook.event for hook in hooks} == {hook.event for hook in claude_code.HOOKS}
