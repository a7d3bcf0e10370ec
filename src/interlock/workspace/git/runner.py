"""Run git without running anything that a repository names.

A repository can name programs in its settings: hooks, filters, a file monitor, a text converter, an
ssh command. An agent can write such a repository and have Interlock look at it, outside of every
sandbox. `run_git` therefore overrides the settings by which git itself runs a program. That is
enough for commands that do not compare or write files of a worktree. For those, `shadow` leaves the
settings of the repository out altogether, because filters have names that nobody can enumerate
safely. `run_trusted_git` is for a commit or a push that the user asked for in a repository of
theirs.
"""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # 10 ms that callers which only read git's files need not pay
    import subprocess

END_SECONDS, _LOOK_SECONDS = 5.0, 0.25
SECONDS_MAX = 60.0
OUTPUT_BYTES_MAX = 1_000_000
NOT_STARTED, TIMED_OUT = 127, 124
_OVERRIDES = {
    "core.hooksPath": os.devnull,
    "diff.submodule": "short",  # otherwise another git shows what changed in a submodule
    "log.showSignature": "false",  # it would run gpg.program
    "submodule.recurse": "false",
    "safe.bareRepository": "explicit",  # a bare repository in a tree brings settings of its own
}
# Without a protocol, git cannot fetch objects that a partial clone lacks: that runs programs, too.
_NO_NETWORK = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
_NETWORK = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh", "GIT_PROXY_COMMAND": ""}
NO_USER_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_USER_SETTINGS = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


class GitResult(msgspec.Struct, frozen=True):
    code: int
    raw: bytes
    error: str

    @property
    def output(self) -> str:
        return self.raw.decode("utf-8", "replace")


def run_git(
    directory: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    has_network: bool = False,
    stdin: bytes = b"",
    umask: int = -1,
    seconds: float = SECONDS_MAX,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> GitResult:
    """Run git in a repository that an agent may have written.

    `settings` are further settings of git. They outrank those of every file.
    """
    hardened = {"GIT_OPTIONAL_LOCKS": "0", **(_NETWORK if has_network else _NO_NETWORK)}
    hardened |= setting_variables({**_OVERRIDES, **(settings or {})})
    return run_trusted_git(
        directory,
        *arguments,
        variables={**hardened, **(variables or {})},
        stdin=stdin,
        umask=umask,
        seconds=seconds,
        output_bytes_max=output_bytes_max,
    )


def run_trusted_git(
    directory: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    umask: int = -1,
    seconds: float = SECONDS_MAX,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> GitResult:
    """Run git as the user would: with the settings and the hooks of the repository."""
    import subprocess  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as error,
    ):
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                # A file monitor would outlive the command.
                ["git", "-C", str(directory), "-c", "core.fsmonitor=false", *arguments],
                stdin=given,
                stdout=output,
                stderr=error,
                env=_environment() | dict(variables or {}),
                umask=umask,
                start_new_session=True,
            )
        except OSError as failure:
            return GitResult(NOT_STARTED, b"", str(failure))
        code = _wait(process, output, seconds, output_bytes_max)
        if code == TIMED_OUT:
            return GitResult(code, b"", f"git took more than {seconds:g} seconds")
        output.seek(0)
        error.seek(0)
        message = error.read(output_bytes_max).decode("utf-8", "replace")
        return GitResult(code, output.read(output_bytes_max), message)


def _wait(
    process: "subprocess.Popen[bytes]", output: IO[bytes], seconds: float, output_bytes_max: int
) -> int:
    """Wait for the exit code. Git that has printed enough is ended: a small pack can be endless."""
    import subprocess  # noqa: PLC0415

    deadline = time.monotonic() + seconds
    try:
        while (left := deadline - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(left, _LOOK_SECONDS))
            if os.fstat(output.fileno()).st_size >= output_bytes_max:
                return 0
        return TIMED_OUT
    finally:
        if process.returncode is None:  # also after an interrupt: it has no terminal to end it
            _end_group(process)


def setting_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that gives git these settings, which outrank those of every file."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _environment() -> dict[str, str]:
    """Return the user's environment, without variables that lead git to another repository."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _USER_SETTINGS
    }
    # A relative entry would find programs in the repository. What git starts looks there, too.
    entries = kept.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(filter(os.path.isabs, entries)) or os.defpath
    return kept | {"PATH": path, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End git and its children. SIGTERM comes first, so that git removes its locks."""
    import subprocess  # noqa: PLC0415

    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
