"""Put a skill that comes with Interlock into the files of a client, and take it out again."""

import os
from pathlib import Path

import msgspec

from interlock.agents.hosts.host import Host, OwnFile
from interlock.app.hosts.install import Scope
from interlock.app.hosts.install_changes import (
    InstallReport,
    build_report,
    carry_out,
    hand_directories_over,
    install_lock,
    remember,
    remove_directories,
)
from interlock.app.hosts.install_plan import FilePlan, InstallRefusal, put_part, take_text
from interlock.workspace.machine import install_manifest
from interlock.workspace.machine.bundled_skill import SKILL_NAMES, read_bundled_skill
from interlock.workspace.machine.install_manifest import Install, Manifest

__all__ = ["SKILL_NAMES", "install_skill", "uninstall_skill"]

_PLACE = "@SKILL@"
"""Stands in the text of a command for the folder of the skill."""


def install_skill(
    home: Path,
    client: Host,
    scope: Scope,
    root: Path,
    skill: str,
    *,
    at_ms: int,
    is_dry: bool = False,
) -> InstallReport | InstallRefusal:
    """Write the files of a skill and its commands; a file of somebody else's is not touched.

    Raises:
        InstallFailed: a file could not be written.
        SettingsBroken: our own notes about installs cannot be used.
    """
    if is_dry:
        return _plan(home, client, scope, root, skill)[0]
    with install_lock(home):
        report, new = _plan(home, client, scope, root, skill)
        if isinstance(report, InstallRefusal):
            return report
        known = install_manifest.load(home)
        old = install_manifest.find_install(known, client.name, scope, root, skill)
        if report.changes or old is None:
            # Before the files: with a note of what never came to be, taking it out is a no-op.
            others = (x for x in known.installs if x != old)
            new = msgspec.structs.replace(new, at_ms=at_ms)
            remember(home, Manifest(1, (*others, new), known.scripts))
        carry_out(report.changes, client)
    return report


def uninstall_skill(
    home: Path, client: Host, scope: Scope, root: Path, skill: str, *, is_dry: bool = False
) -> InstallReport | InstallRefusal:
    """Remove the files of a skill; what the user has changed since stays.

    Raises:
        InstallFailed: a file could not be removed.
        SettingsBroken: our own notes about installs cannot be used.
    """
    if is_dry:
        return _plan_removal(home, client, scope, root, skill)[0]
    with install_lock(home):
        report, old = _plan_removal(home, client, scope, root, skill)
        if isinstance(report, InstallRefusal):
            return report
        carry_out(report.changes, client)
        if old is not None:
            remove_directories(old)
            known = install_manifest.load(home)
            others = (hand_directories_over(old, x) for x in known.installs if x != old)
            remember(home, Manifest(1, tuple(others), known.scripts))
    return report


def _plan(
    home: Path, client: Host, scope: Scope, root: Path, skill: str
) -> tuple[InstallReport | InstallRefusal, Install]:
    known = install_manifest.load(home)
    old = install_manifest.find_install(known, client.name, scope, root, skill)
    parts = _parts(client, scope, root, skill)
    steps = [put_part(client, part, old) for part in parts]
    entries = [step.entry for step in steps if isinstance(step, FilePlan) and step.entry]
    new = Install(client.name, scope, str(root), 0, tuple(entries), skill)
    foreign = [
        step for step in steps if isinstance(step, FilePlan) and step.note and not step.entry
    ]
    if foreign:  # a skill of which one file is somebody else's would be neither theirs nor ours
        hint = "Nothing was written. Move it away, and repeat the command."
        return InstallRefusal(foreign[0].note.rstrip("."), hint), new
    if old is not None:  # an older version may have had files that this one has not
        paths = {file.path for file in old.files} - {part.path for part in parts}
        steps += [take_text(Path(path), "", old) for path in sorted(paths)]
    return build_report(root, steps), new


def _plan_removal(
    home: Path, client: Host, scope: Scope, root: Path, skill: str
) -> tuple[InstallReport | InstallRefusal, Install | None]:
    known = install_manifest.load(home)
    old = install_manifest.find_install(known, client.name, scope, root, skill)
    texts = {part.path: str(part.content) for part in _parts(client, scope, root, skill)}
    # An older version may have had files that this one has not.
    earlier = {file.path: "" for file in old.files} if old else {}
    files = {**earlier, **texts}
    steps = [take_text(Path(path), text, old) for path, text in files.items()]
    return build_report(root, steps), old


def _parts(client: Host, scope: Scope, root: Path, skill: str) -> list[OwnFile]:
    bundled = read_bundled_skill(skill)
    folder = client.skill_home(scope, str(root), os.environ)
    place = f"{folder}/{skill}"
    shown = place.removeprefix(f"{root}/") if scope == "project" else place
    return [
        *(
            OwnFile(
                f"{place}/{file.name}",
                f"part of the skill `{skill}`",
                file.text,
                is_executable=file.is_executable,
            )
            for file in bundled.files
        ),
        *(
            client.command_part(
                folder,
                command.name,
                command.description,
                command.arguments,
                command.text.replace(_PLACE, shown),
            )
            for command in bundled.commands
        ),
    ]
