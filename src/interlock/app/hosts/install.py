"""Put Interlock into Claude Code's own files, and take it out again to the byte."""

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

import interlock
from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code import Scope
from interlock.agents.hosts.claude_code_shell import LAUNCHER, SHELLS, shell_script
from interlock.agents.hosts.launcher import (
    STANDALONE,
    Program,
    launcher_text,
    shell_script_text,
)
from interlock.app.gate import opt_in
from interlock.app.hosts.install_plan import (
    REPAIR_HINT,
    FileChange,
    FilePlan,
    InstallRefusal,
    Job,
    put_script,
    put_server,
    put_settings,
    put_text,
    take_json,
    take_script,
    take_text,
)
from interlock.core.canonical import Json
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from interlock.store.lock import WriteLock
from interlock.workspace.files import file_replacement
from interlock.workspace.files.file_replacement import FileChangedMeanwhile
from interlock.workspace.machine import install_manifest
from interlock.workspace.machine.install_manifest import Install, InstalledFile, Manifest
from interlock.workspace.projects import project

HOST = claude_code.HOST
LOOK_SECONDS = 30
SCRIPTS = (LAUNCHER, *(f"{LAUNCHER}-{name}" for name in SHELLS))


class InstallReport(msgspec.Struct, frozen=True):
    """The changes that were made, or would be."""

    root: Path
    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    """Remarks on what was left alone, with the reason."""
    opts_in: bool = False


class InstallFailed(Exception):
    """The installation failed on the way. `hint` says how to get out of it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def root_for(scope: Scope, directory: Path) -> Path:
    """The directory of the files of a scope, seen from `directory`."""
    if scope == "user":
        return Path.home()
    return project.root_of(directory) or Path(os.path.realpath(directory))


def find_program(home: Path) -> tuple[Program, str]:
    """The program that starts this Interlock from anywhere, and a note for the user about it."""
    assert sys.executable, "an interpreter that runs this knows where it lies"
    own = os.path.realpath(interlock.__file__)
    shell = claude_code.shell_in_use(os.environ) if landlock_abi() >= ABI_MIN else ""
    # `-I` closes Python off from the project and from variables, but also from packages that only
    # a variable or the user's own site shows. `-P` at least keeps the project's directory out.
    for flags in (("-I",), ("-P",)):
        if _import_location(flags) == own:
            return Program(sys.executable, flags, str(home), shell=shell), ""
    note = (
        "Python finds this Interlock only by the variables of this shell (PYTHONPATH): Claude Code"
        " must be started with the same ones."
    )
    return Program(sys.executable, ("-P",), str(home), shell=shell), note


def _import_location(flags: tuple[str, ...]) -> str:
    """The file that `import interlock` finds without this shell's variables; empty if none."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [sys.executable, *flags, "-c", "import interlock; print(interlock.__file__)"]
    try:
        completed = subprocess.run(
            command,
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LOOK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.path.realpath(completed.stdout.strip()) if completed.returncode == 0 else ""


def install(
    home: Path, scope: Scope, root: Path, program: Program, *, at_ms: int, is_dry: bool = False
) -> InstallReport | InstallRefusal:
    """Tell the client of Interlock; what is so already stays as it is.

    Raises:
        InstallFailed: a file could not be written.
        SettingsBroken: our own notes about installs, or the project's config, cannot be used.
    """
    if is_dry:
        return _plan_install(home, scope, root, program)[0]
    with _install_lock(home):
        report, files = _plan_install(home, scope, root, program)
        if isinstance(report, InstallRefusal):
            return report
        if report.opts_in:
            opt_in.opt_in(root, "standard")
        known = install_manifest.load(home)
        old = install_manifest.find_install(known, HOST, scope, root)
        new = Install(HOST, scope, str(root), at_ms, files)
        scripts = {**known.scripts, **_script_digests(program, scope)}
        if report.changes or old is None or scripts != known.scripts:
            # Before the files: with a note of what never came to be, taking it out is a no-op.
            others = (x for x in known.installs if x != old)
            _remember(home, Manifest(1, (*others, new), scripts))
        _carry_out(report.changes)
    return _compile_standalone(report, program)


def uninstall(
    home: Path, scope: Scope, root: Path, *, is_dry: bool = False
) -> InstallReport | InstallRefusal:
    """Take out what is ours; what the user has changed since stays.

    Raises:
        InstallFailed: a file could not be written.
        SettingsBroken: our own notes about installs cannot be used.
    """
    if is_dry:
        return _plan_uninstall(home, scope, root)
    with _install_lock(home):
        report = _plan_uninstall(home, scope, root)
        if isinstance(report, InstallRefusal):
            return report
        _carry_out(report.changes)
        known = install_manifest.load(home)
        old = install_manifest.find_install(known, HOST, scope, root)
        if old is not None:
            _remove_directories(old)
            others = tuple(x for x in known.installs if x != old)
            _remember(home, Manifest(1, others, known.scripts))
    return report


def write_plugin(
    directory: Path, program: Program, *, is_dry: bool = False
) -> InstallReport | InstallRefusal:
    """Write the same as a plugin directory, or overwrite ours there.

    Raises:
        InstallFailed: a file could not be written.
    """
    files = {
        directory / name: text
        for name, text in claude_code.plugin(program.home, interlock.__version__).items()
    }
    steps = _plan_scripts(program, "project")  # the shell is a setting that no plugin has
    try:
        about = file_replacement.content_of(directory / ".claude-plugin" / "plugin.json")
        is_ours = about is not None and _name_in(about) == claude_code.NAME
        if directory.exists() and not is_ours and any(directory.iterdir()):
            what = f"`{directory}` is not empty, and is not Interlock's plugin"
            return InstallRefusal(what, "Name a directory that is not there yet.")
        for path, text in files.items():
            content = file_replacement.content_of(path)
            if content != text.encode():
                steps.append(
                    FilePlan(FileChange(path, content, text.encode(), "part of the plugin"))
                )
    except OSError as error:
        return InstallRefusal(
            f"`{directory}` cannot be used: {error.strerror}", "Name another directory."
        )
    report = _build_report(directory, steps)
    if isinstance(report, InstallReport) and not is_dry:
        home = Path(program.home)
        _make_home(home)
        known = install_manifest.load(home)
        scripts = {**known.scripts, **_script_digests(program, "project")}
        _remember(home, Manifest(1, known.installs, scripts))
        _carry_out(report.changes)
        return _compile_standalone(report, program)
    return report


def _scripts(program: Program, scope: Scope) -> dict[Path, tuple[str, str]]:
    """The scripts in the data home that a scope needs: the text of each, and what it is."""
    launcher = (launcher_text(program), "the launcher, by which clients start us")
    scripts: dict[Path, tuple[str, str]] = {Path(program.home) / LAUNCHER: launcher}
    if scope == "user" and program.shell and (path := shell_script(program.home, program.shell)):
        scripts[Path(path)] = (shell_script_text(program), "the shell for an agent's commands")
    return scripts


def _plan_scripts(program: Program, scope: Scope) -> list[FilePlan | InstallRefusal]:
    return [put_script(path, *script) for path, script in _scripts(program, scope).items()]


def _script_digests(program: Program, scope: Scope) -> dict[str, str]:
    scripts = _scripts(program, scope).items()
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
    home: Path, scope: Scope, root: Path, program: Program
) -> tuple[InstallReport | InstallRefusal, tuple[InstalledFile, ...]]:
    places = claude_code.client_files(scope, root)
    old = install_manifest.find_install(install_manifest.load(home), HOST, scope, root)
    steps = [
        *_plan_scripts(program, scope),  # first, so that the files name none that is not there
        put_settings(Job(places.settings, claude_code.settings_in), program, scope, old),
        put_server(Job(places.servers, claude_code.servers_in), program.home, old),
        *(
            put_text(places.commands / name, text, old)
            for name, text in claude_code.COMMANDS.items()
        ),
    ]
    report = _build_report(root, steps)
    if isinstance(report, InstallReport):
        opts_in = scope == "project" and project.root_of(root) is None
        report = msgspec.structs.replace(report, opts_in=opts_in)
    entries = [step.entry for step in steps if isinstance(step, FilePlan)]
    return report, tuple(entry for entry in entries if entry)


def _plan_uninstall(home: Path, scope: Scope, root: Path) -> InstallReport | InstallRefusal:
    places = claude_code.client_files(scope, root)
    known = install_manifest.load(home)
    old = install_manifest.find_install(known, HOST, scope, root)
    steps = [
        take_json(Job(places.settings, claude_code.settings_in), old),
        take_json(Job(places.servers, claude_code.servers_in), old),
        *(
            take_text(places.commands / name, text, old)
            for name, text in claude_code.COMMANDS.items()
        ),
        *((take_script(home / name) for name in SCRIPTS) if known.installs == (old,) else ()),
    ]
    return _build_report(root, steps)


def _build_report(
    root: Path, steps: Sequence[FilePlan | InstallRefusal]
) -> InstallReport | InstallRefusal:
    changes: list[FileChange] = []
    notes: list[str] = []
    for step in steps:
        if isinstance(step, InstallRefusal):
            return step
        if step.change and (why := file_replacement.obstacle(step.change.path)):
            return InstallRefusal(f"`{step.change.path}` {why}", REPAIR_HINT)
        changes += [step.change] if step.change else []
        notes += [step.note] if step.note else []
    return InstallReport(root, tuple(changes), tuple(notes))


def _carry_out(changes: Sequence[FileChange]) -> None:
    for change in changes:
        try:
            if change.after is not None:
                file_replacement.replace(change.path, change.before, change.after, mode=change.mode)
            elif change.before is not None:
                file_replacement.delete(change.path, change.before)
        except FileChangedMeanwhile:
            raise InstallFailed(
                f"Somebody else wrote `{change.path}` at the same moment",
                "It was left alone. Repeat the command; that does what is still to be done.",
            ) from None
        except OSError as error:
            raise InstallFailed(
                f"`{change.path}` cannot be written: {error.strerror}",
                "Put that right and repeat the command, or take back what was done with"
                f" `interlock uninstall {HOST}`.",
            ) from error


def _remember(home: Path, manifest: Manifest) -> None:
    try:
        install_manifest.save(home, manifest)
    except (OSError, FileChangedMeanwhile) as error:
        hint = "Put that right, and repeat the command."
        raise InstallFailed(
            f"`{home / install_manifest.FILE}` cannot be written: {error}", hint
        ) from error


def _remove_directories(old: Install) -> None:
    """Remove the directories that were made for our files, as far as they are empty."""
    made = {
        directory
        for entry in old.files
        for directory in entry.directories
        if Path(directory) in Path(os.path.realpath(entry.path)).parents
    }
    for directory in sorted(made, key=len, reverse=True):
        try:
            os.rmdir(directory)
        except OSError:
            continue  # not empty, or gone: it is not ours any more


@contextmanager
def _install_lock(home: Path) -> Generator[None]:
    _make_home(home)
    lock = WriteLock(home / "installed.lock")
    try:
        with lock.hold():
            yield
    finally:
        lock.close()


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = "Point INTERLOCK_HOME at a directory that you can write."
        raise InstallFailed(f"`{home}` cannot be made: {error.strerror}", hint) from error


def _name_in(content: bytes) -> Json:
    try:
        value = msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return value.get("name") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
