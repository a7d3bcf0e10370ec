"""Run one command in the sandbox, and stay beside it until all that it started has ended.

The wrapper (this process) is not confined. It forks; the child confines itself and becomes the
command. The wrapper hands signals on, adopts whatever the command leaves behind and ends it, says
one line if the command failed, and ends as the command ended.
"""

import os
import sys

from interlock.sandbox import confinement, metadata_broker
from interlock.sandbox.confinement import Boundary, ConfinementFailed
from interlock.sandbox.metadata_broker import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
else:
    import _signal as signals  # without the names of `enum`, which take long to import

LEVELS = ("read-only", "workspace")
VARIABLE = "INTERLOCK_SANDBOX"
"""Set inside to the level."""
EXIT_CANNOT_START, EXIT_NOT_FOUND, EXIT_SIGNAL_BASE = 126, 127, 128
_FORWARDED = (signals.SIGHUP, signals.SIGTERM, signals.SIGUSR1, signals.SIGUSR2)
_FROM_TERMINAL = (signals.SIGINT, signals.SIGQUIT)
_GRACE_STEPS, _GRACE_STEP_SECONDS = 20, 0.01
_SYSTEM_DIRECTORIES = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"),
    *("/proc", "/sys", "/dev", "/run", "/var", "/snap"),
)

_SETTINGS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "HISTFILE": "/dev/null",
    "LESSHISTFILE": "-",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GOTELEMETRY": "off",
    "npm_config_update_notifier": "false",
    "npm_config_fetch_retries": "0",
    "NO_UPDATE_NOTIFIER": "1",
}
"""Settings with which tools leave out what they could not do anyway."""
_CACHES = {
    "TMPDIR": "tmp",
    "TMP": "tmp",
    "TEMP": "tmp",
    "TMPPREFIX": "tmp/zsh",
    "SQLITE_TMPDIR": "tmp",
    "XDG_CACHE_HOME": "cache",
    "MYPY_CACHE_DIR": "mypy",
    "RUFF_CACHE_DIR": "ruff",
    "PIP_CACHE_DIR": "pip",
    "GOCACHE": "go",
    "CARGO_TARGET_DIR": "target",
    "npm_config_cache": "npm",
    "npm_config_logs_dir": "npm-logs",
    "NODE_COMPILE_CACHE": "node",
    "PRE_COMMIT_HOME": "pre-commit",
}
"""Variables by which tools find the scratch directory instead of their usual caches."""


class SandboxedCommand:
    """A command, and where it runs. `scratch` exists, is private, and survives."""

    def __init__(
        self,
        words: list[str],
        *,
        level: str,
        scratch: str,
        hidden: str,
        worktree: tuple[str, ...] = (),
        readable: tuple[str, ...] = (),
        files: tuple[str, ...] = (),
        has_network: bool = False,
        closing_line: str = "",
    ) -> None:
        self.words = words
        self.level = level
        self.scratch = scratch
        self.hidden = hidden
        self.worktree = worktree
        """The directories that the level `workspace` may write: the checkout, and git's own."""
        self.readable = readable
        self.files = files
        """Single files that it may write."""
        self.has_network = has_network
        self.closing_line = closing_line


def run_command(command: SandboxedCommand, abi: int) -> int:
    """Run it to its end; the exit code, or the negative number of the signal that ended it."""
    for name in ("TMPDIR", "XDG_CACHE_HOME"):
        _ensure_folder(f"{command.scratch}/{_CACHES[name]}")
    confinement.adopt_orphans()
    wrapper = os.getpid()
    boundary = _boundary(command)
    own_end, other_end = metadata_broker.make_channel()
    child = os.fork()
    if child == 0:
        _become(command, abi, boundary, other_end, wrapper)
    other_end.close()
    _hand_on_signals(child)
    metadata_broker.serve(own_end, boundary.writable)
    code = _wait(child)
    _end_descendants()
    if code and command.closing_line:
        sys.stderr.flush()
        os.write(2, f"{command.closing_line}\n".encode())
    return code


def _ensure_folder(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return


def exit_as(code: int) -> None:
    """End this process as the command ended, by the same signal if it was one."""
    sys.stdout.flush()
    sys.stderr.flush()
    if code < 0:
        import resource  # noqa: PLC0415 (rarely needed)

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one dump is enough
        if -code != signals.SIGKILL:
            signals.signal(-code, signals.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else EXIT_SIGNAL_BASE - code)


def _become(
    command: SandboxedCommand, abi: int, boundary: Boundary, channel: Channel, wrapper: int
) -> None:
    """In the child: confine it and start the command. Never returns."""
    code = EXIT_CANNOT_START
    try:
        confinement.die_with_parent(wrapper)
        for number in (signals.SIGPIPE, signals.SIGXFSZ):
            signals.signal(number, signals.SIG_DFL)  # Python ignores them
        environment = _environment(command)
        listener = confinement.confine(boundary, abi, metadata_broker.BROKERED)
        metadata_broker.send_listener(channel, listener)
        confinement.close_descriptors(3)
        code = _execute(command.words, environment)
    except ConfinementFailed as error:
        os.write(2, f"interlock: this was not run, because the sandbox failed: {error}\n".encode())
    except BaseException as error:  # noqa: BLE001 (a child that went on would be a second wrapper)
        os.write(2, f"interlock: this was not run: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _execute(words: list[str], environment: dict[str, str]) -> int:
    """Start the program, looked for as a shell does; the exit code if it cannot be started."""
    name = words[0]
    folders = [""] if "/" in name else environment.get("PATH", "/usr/bin:/bin").split(":")
    code, reason = EXIT_NOT_FOUND, "not found"
    for folder in folders:
        try:
            os.execve(f"{folder}/{name}" if folder else name, words, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            code, reason = EXIT_CANNOT_START, error.strerror
    os.write(2, f"interlock: {name}: {reason}\n".encode())
    return code


def _environment(command: SandboxedCommand) -> dict[str, str]:
    scratch = command.scratch
    if command.level == "workspace":
        return {
            **os.environ,
            **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), scratch),
            "GIT_CONFIG_COUNT": "1",  # a hook that was written inside must not run outside
            "GIT_CONFIG_KEY_0": "core.hooksPath",
            "GIT_CONFIG_VALUE_0": "/dev/null",
            VARIABLE: command.level,
        }
    caches = {name: f"{scratch}/{folder}" for name, folder in _CACHES.items()}
    # It reads its cache in the project, and warns that it cannot write there.
    quiet = "-W ignore::pytest.PytestCacheWarning"
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} {quiet}".strip()
    text = " ".join(command.words)
    if "py_compile" in text or "compileall" in text:
        # Not otherwise: Python would then not find what is compiled already.
        caches["PYTHONPYCACHEPREFIX"] = f"{scratch}/pycache"
    if "merge-tree" in text and (objects := _object_directory()):
        # Not otherwise: git would look there for the objects of any other repository, too.
        _ensure_folder(f"{scratch}/objects")
        caches["GIT_OBJECT_DIRECTORY"] = f"{scratch}/objects"
        caches["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = objects
    return {**os.environ, **_SETTINGS, **caches, "PYTEST_ADDOPTS": options, VARIABLE: command.level}


def _object_directory() -> str:
    """The objects of the repository around this directory; empty if it has none of its own."""
    folder: str = os.getcwd()
    while not os.path.isdir(f"{folder}/.git/objects"):
        if folder == "/":
            return ""
        folder = folder.rpartition("/")[0] or "/"
    return f"{folder}/.git/objects"


def _boundary(command: SandboxedCommand) -> Boundary:
    if command.level == "read-only":
        return Boundary(
            [command.scratch, "/dev/shm"],
            [*command.files, "/proc/self/fd/1", "/proc/self/fd/2"],
            None,
            command.hidden,
            has_network=False,
        )
    return Boundary(
        [command.scratch, "/dev/shm", *command.worktree],
        [*command.files, "/proc/self/fd/1", "/proc/self/fd/2"],
        [*_SYSTEM_DIRECTORIES, *command.readable],
        command.hidden,
        has_network=command.has_network,
    )


def _hand_on_signals(child: int) -> None:
    for number in _FORWARDED:
        signals.signal(number, lambda received, _: _send(child, received))
    for number in _FROM_TERMINAL:  # from a terminal they reach the command by themselves
        is_sent = os.isatty(0)
        signals.signal(number, lambda received, _, s=is_sent: None if s else _send(child, received))


def _send(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _wait(child: int) -> int:
    while True:
        process, status = os.waitpid(-1, os.WUNTRACED)
        if process != child:
            continue  # an orphan that was adopted
        if os.WIFSTOPPED(status):
            os.kill(os.getpid(), signals.SIGSTOP)  # and with the wrapper, it goes on
            _send(child, signals.SIGCONT)
            continue
        return os.waitstatus_to_exitcode(status)


def _end_descendants() -> None:
    """End everything that the command left behind, also what has left its group and session.

    A shell does not wait for the far end of `>(…)`, which may still have something to print.
    """
    for number in (*_FORWARDED, *_FROM_TERMINAL):
        signals.signal(number, signals.SIG_IGN)
    for _ in range(_GRACE_STEPS):
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                signals.sigtimedwait((signals.SIGCHLD,), _GRACE_STEP_SECONDS)
        except ChildProcessError:
            return
    while True:
        for process in _children():
            _send(process, signals.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    file = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY)
    content = b"".join(iter(lambda: os.read(file, 65536), b""))
    os.close(file)
    return [int(process) for process in content.split()]
