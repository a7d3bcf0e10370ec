"""Run one command in the sandbox, and stay beside it until all that it started has ended.

The wrapper (this process) is not confined. It forks; the child confines itself and becomes the
command. The wrapper hands signals on, adopts whatever the command leaves behind and ends it, says
one line if the command failed, and ends as the command ended. Who holds the other end of its
lifeline can end it all by letting go, and does so by dying, too.
"""

import _thread
import os
import sys
import time

from interlock.sandbox import call_broker, confinement, limits, plain_files
from interlock.sandbox.call_broker import Channel
from interlock.sandbox.confinement import Boundary, ConfinementFailed
from interlock.sandbox.limits import UsageLimits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Callable
else:
    import _signal as signals  # without the names of `enum`, which take long to import

__import__("warnings")  # `execvpe` imports it, and inside it may not be readable any more

LEVELS = ("read-only", "workspace")
OFF = "off"
"""Not confined, but ended like the others."""
VARIABLE = "INTERLOCK_SANDBOX"
"""Set inside to the level."""
EXIT_CANNOT_START, EXIT_NOT_FOUND, EXIT_SIGNAL_BASE = 126, 127, 128
_FROM_TERMINAL = (signals.SIGINT, signals.SIGQUIT)
_FORWARDED = (signals.SIGHUP, signals.SIGTERM, signals.SIGUSR1, signals.SIGUSR2, *_FROM_TERMINAL)
_GRACE_STEPS, _GRACE_STEP_SECONDS = 20, 0.01
_END_SECONDS = 0.5
"""How long a command that is ended has for it."""
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


def run_command(
    words: list[str],
    boundary: Boundary,
    level: str,
    abi: int,
    *,
    closing_line: str,
    lifeline: int | None = None,
    work: "Callable[[], int] | None" = None,
    most: UsageLimits | None = limits.USUAL,
) -> int:
    """Run it to its end; the exit code, or the negative number of the signal that ended it.

    The closing line is for a command that failed. The lifeline is a pipe's end to read from. With
    `work`, that is done in the child instead of a command: it returns the exit code. `most` is what
    it can use up.
    """
    for name in ("TMPDIR", "XDG_CACHE_HOME"):
        _ensure_folder(f"{boundary.scratch}/{_CACHES[name]}")
    environment = {**_environment(level, boundary.scratch, " ".join(words)), VARIABLE: level}
    confinement.adopt_orphans()
    wrapper = os.getpid()
    if level != OFF:
        confinement.take_own_shared_memory()
    groups = limits.make_groups(most) if most else []
    own_end, other_end = call_broker.make_channel()
    # `_wait` takes them one by one: a handler runs too late if a signal arrives just before
    # `waitpid`, which it then does not interrupt.
    unblocked = signals.pthread_sigmask(signals.SIG_BLOCK, (*_FORWARDED, signals.SIGCHLD))
    signals.signal(signals.SIGCHLD, signals.SIG_DFL)  # it does not arrive if it is ignored
    child = limits.fork_into(groups)
    if child == 0:
        signals.pthread_sigmask(signals.SIG_SETMASK, unblocked)
        confinement.die_with_parent(wrapper)
        reach = None if level == OFF else boundary
        _start_confined(words, environment, reach, abi, other_end, work=work, most=most)
    other_end.close()
    if lifeline is not None:
        _thread.start_new_thread(_end_with, (lifeline,))
    call_broker.serve(own_end, boundary.writable, boundary.proxy)
    if boundary.proxy:
        boundary.proxy.start()  # not before the signals are blocked: its threads would take them
    code = _wait(child)
    _end_descendants()
    if most and (reason := limits.limit_hit(most, groups, code)):
        _say(reason)
    limits.remove_groups(groups)
    for path, outcome in plain_files.put_back(boundary.guarded_files).items():
        _say(f"`{path}` {outcome} (git finds its settings and its branch by it)")
    signals.pthread_sigmask(signals.SIG_SETMASK, unblocked)
    if code and closing_line:
        sys.stderr.flush()
        os.write(2, f"{closing_line}\n".encode())
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


def _start_confined(
    words: list[str],
    environment: dict[str, str],
    boundary: Boundary | None,
    abi: int,
    channel: Channel,
    *,
    work: "Callable[[], int] | None",
    most: UsageLimits | None,
) -> None:
    """In the child: confine it and start the command. Never returns."""
    code = EXIT_CANNOT_START
    try:
        for number in (signals.SIGPIPE, signals.SIGXFSZ):
            signals.signal(number, signals.SIG_DFL)  # Python ignores them
        if most:
            limits.limit_this_process(most)
        if boundary is not None:
            listener = confinement.confine(boundary, abi, call_broker.BROKERED)
            call_broker.send_listener(channel, listener)
        confinement.close_descriptors(3)
        if work:
            code = work()
        else:
            os.execvpe(words[0], words, environment)
    except ConfinementFailed as error:
        _say(f"this was not run, because the sandbox failed: {error}")
    except OSError as error:
        _say(f"{words[0]}: {error.strerror}")
        code = EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_CANNOT_START
    except BaseException as error:  # noqa: BLE001 (a child that went on would be a second wrapper)
        _say(f"this was not run: {type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _say(text: str) -> None:
    os.write(2, f"interlock: {ascii(text)[1:-1]}\n".encode())  # nothing that controls a terminal


def _environment(level: str, scratch: str, text: str) -> dict[str, str]:
    if level != "read-only":
        return {
            **os.environ,
            **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), f"{scratch}/tmp"),
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "core.hooksPath",
            "GIT_CONFIG_VALUE_0": "/dev/null",  # a hook that was written inside must not run
            "GIT_CONFIG_KEY_1": "gc.auto",
            "GIT_CONFIG_VALUE_1": "0",  # it would need what is not written here
        }
    caches = {name: f"{scratch}/{folder}" for name, folder in _CACHES.items()}
    # It reads its cache in the project, and warns that it cannot write there.
    quiet = "-W ignore::pytest.PytestCacheWarning"
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} {quiet}".strip()
    if "py_compile" in text or "compileall" in text:
        # Not otherwise: Python would then not find what is compiled already.
        caches["PYTHONPYCACHEPREFIX"] = f"{scratch}/pycache"
    if "merge-tree" in text and (objects := _object_directory()):
        # Not otherwise: git would look there for the objects of any other repository, too.
        _ensure_folder(f"{scratch}/objects")
        caches["GIT_OBJECT_DIRECTORY"] = f"{scratch}/objects"
        caches["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = objects
    return {**os.environ, **_SETTINGS, **caches, "PYTEST_ADDOPTS": options}


def _object_directory() -> str:
    """The objects of the repository around this directory; empty if it has none of its own."""
    folder: str = os.getcwd()
    while not os.path.isdir(f"{folder}/.git/objects"):
        if folder == "/":
            return ""
        folder = folder.rpartition("/")[0] or "/"
    return f"{folder}/.git/objects"


def _send(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _wait(child: int) -> int:
    """Wait until the command ends, and forward signals to it."""
    is_terminal = os.isatty(0)
    while True:
        number = signals.sigwait((*_FORWARDED, signals.SIGCHLD))
        if number == signals.SIGCHLD:
            code = _reap(child)
            if code is not None:
                return code
        elif not (is_terminal and number in _FROM_TERMINAL):  # they reach the command by themselves
            _send(child, number)


def _reap(child: int) -> int | None:
    """Reap ended children. Return the exit code of the command if it has ended."""
    while True:
        process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if process == 0:
            return None
        if process != child:
            continue  # an orphan that was adopted
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        os.kill(os.getpid(), signals.SIGSTOP)  # the command resumes with the wrapper
        _send(child, signals.SIGCONT)


def _end_descendants() -> None:
    """End everything that the command left behind, also what has left its group and session.

    A shell does not wait for the far end of `>(…)`, which may still have something to print.
    """
    for number in _FORWARDED:
        signals.signal(number, signals.SIG_IGN)
    for _ in range(_GRACE_STEPS):
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                signals.sigtimedwait((signals.SIGCHLD,), _GRACE_STEP_SECONDS)
        except ChildProcessError:
            return
    while True:
        # Stopped ones start no others in place of those that are killed.
        for number in (signals.SIGSTOP, signals.SIGKILL):
            _send_to_descendants(number)
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return


def _end_with(lifeline: int) -> None:
    """In a thread: once nobody holds the other end of the lifeline, end all that was started.

    Then `_wait` returns, and what is left is ended by `_end_descendants`.
    """
    while os.read(lifeline, 1):
        continue
    _send_to_descendants(signals.SIGTERM)
    time.sleep(_END_SECONDS)
    while True:
        _send_to_descendants(signals.SIGKILL)
        time.sleep(_GRACE_STEP_SECONDS)


def _send_to_descendants(number: int) -> None:
    processes = _children(os.getpid())
    for process in processes:  # it grows
        processes += _children(process)
    for process in processes:
        _send(process, number)


def _children(process: int) -> list[int]:
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", "rb") as file:
                children += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended
    return children
