"""One temporary directory for a whole run of the tests, and the check that nothing outlives it.

The directory is named by TMPDIR, so every process that a test starts puts its files there, and
can be recognized by it. A janitor process waits for the end of the run, however it ends, then
kills these processes and removes the directory.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_REPOSITORY = Path(__file__).parents[1]
_OURS = re.compile(
    r"interlock|pytest|playwright|chromium|^claude-\d+$|codex|gemini|opencode|pgbouncer|dconf|cc-socks"
)
"""Names that the product, the tests and the programs they start give to files.

`claude-1f2e-cwd` is none of them: the Claude Code that runs the tests for a developer makes it."""
_SECONDS_TO_END = 10
"""For processes that were told to end and have not been scheduled yet."""


class RunDirectory:
    """The directory of this run; only the process that controls the run has one."""

    def __init__(self) -> None:
        # Short: the path of a socket has at most 107 characters.
        self.path = Path(tempfile.mkdtemp(prefix="il-")).resolve()
        self.path.chmod(0o755)  # PostgreSQL, and some commands, run as another user
        self._watched = [Path(tempfile.gettempdir()), Path("/var/tmp"), *_user_directories()]
        self._files_before = set(self._outside_files())
        self._janitor = subprocess.Popen(
            [sys.executable, "-m", "tests.run_directory", str(self.path)],
            stdin=subprocess.PIPE,
            cwd=_REPOSITORY,
            start_new_session=True,
        )
        home = self.path / "home"
        home.mkdir()
        os.environ.update(TMPDIR=str(self.path), HOME=str(home))
        os.environ["JAVA_TOOL_OPTIONS"] = "-XX:-UsePerfData"  # its file is in /tmp in any case
        tempfile.tempdir = None  # until now it was the user's

    def leftovers(self) -> list[str]:
        """Return the processes and files that the tests left, one line each."""
        deadline = time.monotonic() + _SECONDS_TO_END
        while (processes := list(_processes_of(self.path))) and time.monotonic() < deadline:
            time.sleep(0.05)
        files = sorted(set(self._outside_files()) - self._files_before)
        return [f"process {pid}: {command}" for pid, command in processes] + files

    def remove(self) -> None:
        """Let the janitor remove everything, and wait for it."""
        self._janitor.communicate()

    def _outside_files(self) -> Iterator[str]:
        for directory in self._watched:
            with contextlib.suppress(OSError):
                for entry in os.scandir(directory):
                    if _OURS.search(entry.name) and entry.stat(follow_symlinks=False).st_uid == (
                        os.getuid()
                    ):
                        yield entry.path
        with contextlib.suppress(OSError):
            command = ["git", "status", "--porcelain", "--untracked-files=all"]
            done = subprocess.run(
                command, cwd=_REPOSITORY, capture_output=True, text=True, check=False
            )
            for line in done.stdout.splitlines():
                if line.startswith("??"):
                    yield str(_REPOSITORY / line[3:])


def _user_directories() -> list[Path]:
    home = Path.home()
    return [home, home / ".config", home / ".cache", home / ".local" / "share"]


def _processes_of(path: Path) -> Iterator[tuple[int, str]]:
    """Processes that have the directory in their environment or work below it."""
    variable = f"TMPDIR={path}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) in (os.getpid(), os.getppid()):
            continue
        with contextlib.suppress(OSError):
            is_ours = variable in (entry / "environ").read_bytes()
            if is_ours or Path(os.readlink(entry / "cwd")).is_relative_to(path):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                if command:  # a process that has ended and waits for its parent has none
                    yield int(entry.name), command.decode(errors="replace")[:200]


def main(path: Path) -> None:
    """Wait for the end of the run, which closes standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for pid, _ in list(_processes_of(path)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for directory, names, _ in os.walk(path):
        for one in (Path(directory, name) for name in names):
            if not one.is_symlink():
                with contextlib.suppress(OSError):
                    one.chmod(0o700)  # only root removes what is in a directory that is closed
    shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
