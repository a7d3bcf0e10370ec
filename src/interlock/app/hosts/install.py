"""Put Interlock into the files of an agent client, and take it out again to the byte."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

import interlock
from interlock.agents.hosts import claude_code, host
from interlock.agents.hosts.claude_code_shell import SHELL_VARIABLE, SHELLS, shell_script
from interlock.agents.hosts.host import LAUNCHER, Host, JsonPart, OwnFile, TomlPart
from interlock.agents.hosts.launcher import (
    STANDALONE,
    Program,
    launcher_text,
    shared_launcher_text,
    shell_script_text,
)
from interlock.agents.hosts.registry import all_hosts, host_named
from interlock.app.gate import integrity, opt_in
from interlock.app.hosts.install_changes import (
    InstallFailed,
    InstallReport,
    build_report,
    carry_out,
    install_lock,
    remember,
    remove_directories,
)
from interlock.app.hosts.install_plan import (
    UNCONFINED,
    FilePlan,
    InstallRefusal,
    Part,
    content_of_own_file,
    put_part,
    put_script,
    put_text,
    take_part,
    take_script,
    take_text,
)
from interlock.app.hosts.markers import mark_installed
from interlock.workspace.files import file_replacement
from interlock.workspace.files.file_replacement import FileChangedMeanwhile
from interlock.workspace.machine import install_manifest
from interlock.workspace.machine.install_manifest import Install, InstalledFile, Manifest
from interlock.workspace.projects import project

Scope = Literal["user", "project"]
SCRIPTS = (LAUNCHER, *(f"{LAUNCHER}-{name}" for name in SHELLS))
PLUGIN = "claude-code-plugin"
"""The directory in the data home from which Claude Code installs us as a plugin."""


class Target(NamedTuple):
    """The files of a client, in one scope, of a project or of the user."""

    client: Host
    scope: Scope
    root: Path


def root_for(scope: Scope, directory: Path) -> Path:
    """The directory of the files of a scope, seen from `directory`."""
    if scope == "user":
        return Path.home()
    return project.root_of(directory) or Path(os.path.realpath(directory))


def install(
    home: Path,
    client: Host,
    scope: Scope,
    root: Path,
    program: Program,
    *,
    at_ms: int,
    is_dry: bool = False,
) -> InstallReport | InstallRefusal:
    """Tell the client of Interlock; what is so already stays as it is.

    Raises:
        InstallFailed: a file could not be written.
        SettingsBroken: our own notes about installs, or the project's config, cannot be used.
    """
    if is_dry:
        return _plan_install(home, client, scope, root, program)[0]
    with install_lock(home):
        report, files = _plan_install(home, client, scope, root, program)
        if isinstance(report, InstallRefusal):
            return report
        if report.opts_in:
            opt_in.opt_in(root, "standard")
        known = install_manifest.load(home)
        files += _own_config(known, root, is_new=report.opts_in) if scope == "project" else ()
        old = install_manifest.find_install(known, client.name, scope, root)
        new = Install(client.name, scope, str(root), at_ms, files)
        scripts = {**known.scripts, **_script_digests(program, client, scope)}
        if report.changes or old is None or scripts != known.scripts:
            # Before the files: with a note of what never came to be, taking it out is a no-op.
            others = (x for x in known.installs if x != old)
            remember(home, Manifest(1, (*others, new), scripts))
        carry_out(report.changes, client)
        if scope == "user":
            mark_installed(home, client.name, is_installed=True)
    return _compile_standalone(report, program)


def uninstall(
    home: Path, client: Host, scope: Scope, root: Path, *, is_dry: bool = False
) -> InstallReport | InstallRefusal:
    """Take out what is ours, skills too; what the user has changed since stays.

    Raises:
        InstallFailed: a file could not be written.
        SettingsBroken: our own notes about installs cannot be used.
    """
    if is_dry:
        return _plan_uninstall(home, client, scope, root)
    with install_lock(home):
        report = _plan_uninstall(home, client, scope, root)
        if isinstance(report, InstallRefusal):
            return report
        carry_out(report.changes, client)
        if scope == "user":
            mark_installed(home, client.name, is_installed=False)
        known = install_manifest.load(home)
        olds = install_manifest.find_installs(known, client.name, scope, root)
        if olds:
            remove_directories(*olds)
            others = tuple(x for x in known.installs if x not in olds)
            remember(home, Manifest(1, others, known.scripts))
    return report


def _own_config(known: Manifest, root: Path, *, is_new: bool) -> tuple[InstalledFile, ...]:
    """The project's config if an install has opted it in, so that the last uninstall undoes it."""
    path = root / project.CONFIG
    if is_new:
        after = install_manifest.digest(path.read_bytes())
        return (InstalledFile(str(path), existed=False, before="", after=after),)
    found = (entry for one in known.installs if (entry := one.entry(path)))
    return tuple(found)[:1]


def known_installs(home: Path, *, with_forgotten: bool = False) -> list[Target]:
    """Where Interlock was installed; also where only a skill was, or where no notes tell of it.

    Raises:
        SettingsBroken: our own notes about installs cannot be used.
    """
    listed = [
        Target(host_named(x.host), "user" if x.scope == "user" else "project", Path(x.root))
        for x in install_manifest.load(home).installs
        if with_forgotten or not x.skill
    ]
    found = list(dict.fromkeys(listed))
    for client in all_hosts() if with_forgotten else ():
        target = Target(client, "user", Path.home())
        plan = _plan_uninstall(home, *target) if target not in found else None
        found += [target] if isinstance(plan, InstallReport) and plan.changes else []
    return found


def is_opted_in(root: Path) -> bool:
    return project.root_of(root) is not None


def plugin_directory(home: Path) -> Path:
    return home / PLUGIN


def write_plugin(program: Program, *, is_dry: bool = False) -> InstallReport | InstallRefusal:
    """Write a directory from which Claude Code installs us as a plugin. It stays in use there.

    Raises:
        InstallFailed: a file could not be written.
    """
    home = Path(program.home)
    files = claude_code.plugin(program.home, interlock.__version__)
    # The shell is a setting, which no plugin has.
    steps = _plan_scripts(program, claude_code.HOST, "project")
    for name, content in files.items():
        part = host.OwnFile(str(home / PLUGIN / name), "part of the plugin", content)
        text = content_of_own_file(part)
        steps.append(put_script(Path(part.path), text, part.what, mode=0o600))
    report = build_report(home / PLUGIN, steps)
    if isinstance(report, InstallRefusal) or is_dry:
        return report
    return _carry_out_own(report, program, "project")


def write_scripts(program: Program) -> str:
    """Write the scripts by which Claude Code starts us, where they are missing, and nothing else.

    Returns the one that stands in for the user's shell; empty if commands cannot be confined.

    Raises:
        InstallFailed: a file could not be written.
        SettingsBroken: our own notes about installs cannot be used.
    """
    home, shell = Path(program.home), _own_shell(program, claude_code.HOST, "user")
    if all(path.exists() for path in _scripts(program, claude_code.HOST, "user")):
        return shell  # an install keeps them up to date, and clients may be using them
    report = build_report(home, _plan_scripts(program, claude_code.HOST, "user"))
    if isinstance(report, InstallRefusal):
        raise InstallFailed(report.what, report.hint)
    _carry_out_own(report, program, "user")
    return shell


def _carry_out_own(report: InstallReport, program: Program, scope: Scope) -> InstallReport:
    """Write files of the data home alone; no client is told of them."""
    home = Path(program.home)
    with install_lock(home):
        known = install_manifest.load(home)
        scripts = {**known.scripts, **_script_digests(program, claude_code.HOST, scope)}
        remember(home, Manifest(1, known.installs, scripts))
        carry_out(report.changes, claude_code.HOST)
    return _compile_standalone(report, program)


def _scripts(program: Program, client: Host, scope: Scope) -> dict[Path, tuple[str, str]]:
    """The scripts in the data home that an install needs: the text of each, and what it is."""
    launcher = (launcher_text(program), "the launcher, by which clients start us")
    scripts: dict[Path, tuple[str, str]] = {Path(program.home) / LAUNCHER: launcher}
    if path := _own_shell(program, client, scope):
        scripts[Path(path)] = (shell_script_text(program), "the shell for an agent's commands")
    return scripts


def _own_shell(program: Program, client: Host, scope: Scope) -> str:
    """The script that stands in for the user's shell, where a client lets us have one."""
    if client is not claude_code.HOST or scope != "user" or not program.shell:
        return ""
    return shell_script(program.home, program.shell)


def parts_of(program: Program, client: Host, scope: Scope, root: Path) -> list[Part]:
    """The parts of an install."""
    environment = {key: text for key, text in os.environ.items() if key != SHELL_VARIABLE}
    if script := _own_shell(program, client, scope):
        environment[SHELL_VARIABLE] = script
    return [
        part
        for part in client.parts(scope, str(root), program.home, environment)
        if not (isinstance(part, JsonPart) and part.is_optional) or Path(part.path).parent.is_dir()
    ]


def _plan_scripts(program: Program, client: Host, scope: Scope) -> list[FilePlan | InstallRefusal]:
    return [put_script(path, *script) for path, script in _scripts(program, client, scope).items()]


def _script_digests(program: Program, client: Host, scope: Scope) -> dict[str, str]:
    scripts = _scripts(program, client, scope).items()
    return {path.name: install_manifest.digest(text.encode()) for path, (text, _) in scripts}


def _compile_standalone(report: InstallReport, program: Program) -> InstallReport:
    """Compile what runs before tool calls, whatever this shell says about bytecode."""
    import py_compile  # noqa: PLC0415 (nothing else compiles)

    mode = py_compile.PycInvalidationMode.TIMESTAMP
    for source in (Path(program.package) / name for name in STANDALONE):
        target = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        try:
            py_compile.compile(str(source), str(target), doraise=True, invalidation_mode=mode)
        except (OSError, py_compile.PyCompileError) as error:
            note = f"`{source}` cannot be compiled now, so each tool call waits for that: {error}"
            return msgspec.structs.replace(report, notes=(*report.notes, note))
    return report


def _plan_install(
    home: Path, client: Host, scope: Scope, root: Path, program: Program
) -> tuple[InstallReport | InstallRefusal, tuple[InstalledFile, ...]]:
    old = install_manifest.find_install(install_manifest.load(home), client.name, scope, root)
    # The scripts come first, so that the files name none that is not there.
    steps = _plan_scripts(program, client, scope)
    if scope == "project":
        what = "the launcher for everybody who works on the project"
        steps.append(put_text(_shared_launcher(root), shared_launcher_text(), what, old))
    for part in parts_of(program, client, scope, root):
        step = put_part(client, part, old)
        if isinstance(step, InstallRefusal) and isinstance(part, JsonPart) and part.is_optional:
            step = FilePlan(note=f"{step.what}, so it was left out ({part.what}).")
        steps.append(step)
    report = build_report(root, steps)
    if isinstance(report, InstallReport):
        opts_in = scope == "project" and project.root_of(root) is None
        notes = report.notes
        if program.shell and client is claude_code.HOST and scope == "user":
            is_confined = bool(_own_shell(program, client, scope))
            reason = f"The path `{home}` contains the name of a shell: {UNCONFINED}"
            notes = notes if is_confined else (*notes, reason)
        report = msgspec.structs.replace(report, opts_in=opts_in, notes=notes)
    entries = [step.entry for step in steps if isinstance(step, FilePlan)]
    return report, tuple(entry for entry in entries if entry)


def _shared_launcher(root: Path) -> Path:
    return (root / project.CONFIG).with_name(LAUNCHER)


def _plan_uninstall(
    home: Path, client: Host, scope: Scope, root: Path
) -> InstallReport | InstallRefusal:
    known = install_manifest.load(home)
    old = install_manifest.find_install(known, client.name, scope, root)
    skills = [x for x in install_manifest.find_installs(known, client.name, scope, root) if x.skill]
    others = [x for x in known.installs if x != old and not x.skill]
    program = Program("", (), str(home), shell="/bin/bash")  # whose parts are not compared
    parts = parts_of(program, client, scope, root)
    config = str(root / project.CONFIG)
    parts += (part for part in _parts_elsewhere(parts, old) if part.path != config)
    steps = [take_part(client, part, old) for part in parts]
    steps += [take_text(Path(file.path), "", skill) for skill in skills for file in skill.files]
    is_last_of_project = not any(x.scope == "project" and x.root == str(root) for x in others)
    if scope == "project" and is_last_of_project:
        steps.append(take_text(_shared_launcher(root), shared_launcher_text(), old))
        if integrity.trusted_config(home, root) is None:
            steps.append(take_text(Path(config), "", old))
    is_last = not others and not (home / PLUGIN).exists()
    steps += [take_script(home / name) for name in SCRIPTS] if old and is_last else []
    return build_report(root, steps)


def _parts_elsewhere(parts: Sequence[Part], old: Install | None) -> list[Part]:
    """The parts that were put where an install would not put them now: a variable was different."""
    tables = [part.table for part in parts if isinstance(part, TomlPart)]
    others: list[Part] = []
    for file in old.files if old else ():
        if file.path in (part.path for part in parts) or Path(file.path).name == LAUNCHER:
            continue
        if file.path.endswith(".toml") and file.entries and tables:
            others.append(TomlPart(file.path, "", tables[0], ""))
        elif file.entries:
            others.append(JsonPart(file.path, "", {}))
        else:
            others.append(OwnFile(file.path, "", ""))
    return others


def repair(home: Path, directory: Path, program: Program, *, at_ms: int) -> list[Path]:
    """Restore what is different. Returns the files that were written.

    Raises:
        InstallFailed: a file cannot be written.
        SettingsBroken: our own notes cannot be used.
    """
    root = integrity.governed_root(home, directory)
    changed = integrity.differences(home, root)
    for difference in changed:
        if difference.before is not None:
            _write_back(difference.path, difference.before)
    written = [difference.path for difference in changed if difference.before is not None]
    if len(written) < len(changed):
        for known in install_manifest.load(home).installs:
            if not known.skill and (known.scope == "user" or known.root == str(root)):
                scope = "user" if known.scope == "user" else "project"
                report = install(
                    *(home, host_named(known.host), scope, Path(known.root), program), at_ms=at_ms
                )
                written += (
                    [x.path for x in report.changes] if isinstance(report, InstallReport) else []
                )
    return written


def _write_back(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        file_replacement.replace(path, file_replacement.content_of(path), content)
    except (OSError, FileChangedMeanwhile) as error:
        hint = "Put that right, and repeat the command."
        raise InstallFailed(f"`{path}` cannot be written: {error}", hint) from error
