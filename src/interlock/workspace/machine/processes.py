"""Processes of this machine: which ones run, and the ancestors of one, as far as they are known."""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PS = "ps"
_DEPTH_MAX = 40
_PS_SECONDS = 5
_PPID, _TTY, _STARTED = 1, 4, 19
"""The positions of the three in `/proc/PID/stat`, counted after the name."""


class Process(NamedTuple):
    """A process that cannot be mistaken for a later one with the same pid."""

    pid: int
    started: str
    name: str


class _ProcessEntry(NamedTuple):
    process: Process
    parent: int


def ancestors(pid: int) -> list[Process]:
    """Return the ancestors of `pid`, nearest first; none if the system does not tell."""
    table = None if _has_proc() else _list_processes()
    lineage: list[Process] = []
    entry = _find_process(pid, table)
    while entry and entry.parent > 0 and len(lineage) < _DEPTH_MAX:
        entry = _find_process(entry.parent, table)
        if entry:
            lineage.append(entry.process)
    return lineage


def running_processes(pids: Iterable[int]) -> list[Process]:
    """Return those of `pids` that run. Whether it is the expected process, its start tells."""
    table = None if _has_proc() else _list_processes()
    return [entry.process for pid in pids if (entry := _find_process(pid, table))]


def working_in(directory: Path) -> list[Process]:
    """Return the processes that work in a directory or below; none if the system does not tell."""
    found: list[Process] = []
    for folder in PROC.glob("[0-9]*"):
        try:
            is_there = Path(os.readlink(folder / "cwd")).is_relative_to(directory)
        except OSError:
            continue  # of another user, or gone
        if is_there and (entry := _find_process(int(folder.name), None)):
            found.append(entry.process)
    return found


def terminal_and_words(process: Process) -> tuple[bool, tuple[str, ...]]:
    """Return whether the process has a terminal, and its command line; nothing if it is gone."""
    if not _has_proc():
        tty, *words = _run_ps("-p", str(process.pid), "-o", "tty=,args=").split() or ("?",)
        return "?" not in tty, tuple(words)
    try:
        directory = PROC / str(process.pid)
        _, fields = _parse_stat((directory / "stat").read_text(encoding="utf-8", errors="replace"))
        line = (directory / "cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False, ()
    return fields[_TTY] != "0", tuple(line.rstrip("\0").split("\0"))


def environment_of(pid: int) -> dict[str, str]:
    """Return the variables that a process was started with; none if the system does not tell."""
    try:
        content = (PROC / str(pid) / "environ").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {name: value for name, _, value in (line.partition("=") for line in content.split("\0"))}


def reads_terminal(process: Process) -> bool:
    """Return whether the input of the process is a terminal, as far as that can be told."""
    try:
        path = os.readlink(PROC / str(process.pid) / "fd" / "0")
    except OSError:
        return True  # of another user, or there is no `/proc`
    return path.startswith(("/dev/pts", "/dev/tty", "/dev/console"))


def can_open_terminal() -> bool:
    """Whether our own process has a terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _has_proc() -> bool:
    return (PROC / "self" / "stat").exists()


def _find_process(pid: int, table: Mapping[int, _ProcessEntry] | None) -> _ProcessEntry | None:
    if table is not None:
        return table.get(pid)
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    name, fields = _parse_stat(stat)
    started = f"{fields[_STARTED]}@{_boot_id()}"
    return _ProcessEntry(Process(pid, started, name), int(fields[_PPID]))


def _parse_stat(stat: str) -> tuple[str, list[str]]:
    # The name may hold anything, even brackets.
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name, rest.split()


@cache
def machine() -> str:
    """Return where pids mean what they mean here: the machine, and its container if there is one.

    Empty if the system does not tell; then no process can be said to be gone.
    """
    try:
        name = Path("/etc/machine-id").read_text().strip() or os.uname().nodename
        return f"{name} {os.readlink(PROC / 'self' / 'ns' / 'pid')}"
    except OSError:
        return "" if _has_proc() else os.uname().nodename


@cache
def _boot_id() -> str:
    """Return the id of this boot: a process is identified by its ticks since then."""
    try:
        return (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""


def _list_processes() -> dict[int, _ProcessEntry]:
    """Return every process by its pid, where there is no `/proc` (macOS)."""
    return parse_ps(_run_ps("-A", "-o", "pid=,ppid=,lstart=,comm="))


def _run_ps(*options: str) -> str:
    import subprocess  # noqa: PLC0415 (10 ms that Linux need not pay)

    try:
        result = subprocess.run(
            [PS, *options],
            capture_output=True,
            # A date must read the same for everybody who asks.
            env={"PATH": f"/bin{os.pathsep}/usr/bin", "LC_ALL": "C", "TZ": "UTC0"},
            timeout=_PS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.decode("utf-8", "replace")


def parse_ps(text: str) -> dict[int, _ProcessEntry]:
    """Parse `ps -o pid=,ppid=,lstart=,comm=`. A date has five words, a program's path any."""
    entries: dict[int, _ProcessEntry] = {}
    for line in text.splitlines():
        pid, ppid, *date, program = (*line.split(None, 7), "", "")[:8]
        if pid.isdigit() and ppid.isdigit():
            name = os.path.basename(program.strip())
            entries[int(pid)] = _ProcessEntry(Process(int(pid), " ".join(date), name), int(ppid))
    return entries
