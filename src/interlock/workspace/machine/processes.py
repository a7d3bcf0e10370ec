"""Processes: which ones led to this one, as far as the system tells."""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PS = "ps"
_DEPTH_MAX = 40
_PS_SECONDS = 5
_PPID, _STARTED = 1, 19
"""Where the two stand in `/proc/PID/stat`, counted behind the name."""


class Process(NamedTuple):
    """A process that cannot be taken for a later one that has its number."""

    pid: int
    started: str
    name: str


class _ProcessEntry(NamedTuple):
    process: Process
    parent: int


def ancestors(pid: int) -> list[Process]:
    """The processes that led to `pid`, nearest first; none where the system does not tell."""
    table = None if _has_proc() else _list_processes()
    led: list[Process] = []
    found = _find_process(pid, table)
    while found and found.parent > 0 and len(led) < _DEPTH_MAX:
        found = _find_process(found.parent, table)
        if found:
            led.append(found.process)
    return led


def running_processes(pids: Iterable[int]) -> list[Process]:
    """Those of `pids` that are there; which ones they are, their start tells."""
    table = None if _has_proc() else _list_processes()
    return [found.process for pid in pids if (found := _find_process(pid, table))]


def _has_proc() -> bool:
    return (PROC / "self" / "stat").exists()


def _find_process(pid: int, table: Mapping[int, _ProcessEntry] | None) -> _ProcessEntry | None:
    if table is not None:
        return table.get(pid)
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name may hold anything, also brackets.
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    started = f"{fields[_STARTED]}@{_boot_id()}"
    return _ProcessEntry(Process(pid, started, name), int(fields[_PPID]))


@cache
def _boot_id() -> str:
    """Which start of the machine this is: a process is known by its ticks since then."""
    try:
        return (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""


def _list_processes() -> dict[int, _ProcessEntry]:
    """Every process, where there is no `/proc` (macOS)."""
    import subprocess  # noqa: PLC0415 (10 ms that Linux need not pay)

    try:
        done = subprocess.run(
            [PS, "-A", "-o", "pid=,ppid=,lstart=,comm="],
            capture_output=True,
            # A date must read the same for everybody who asks.
            env={"PATH": f"/bin{os.pathsep}/usr/bin", "LC_ALL": "C", "TZ": "UTC0"},
            timeout=_PS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_ps(done.stdout.decode("utf-8", "replace"))


def parse_ps(text: str) -> dict[int, _ProcessEntry]:
    """What `ps -o pid=,ppid=,lstart=,comm=` says. A date has five words, a program's path any."""
    found: dict[int, _ProcessEntry] = {}
    for line in text.splitlines():
        pid, ppid, *date, program = (*line.split(None, 7), "", "")[:8]
        if pid.isdigit() and ppid.isdigit():
            name = os.path.basename(program.strip())
            found[int(pid)] = _ProcessEntry(Process(int(pid), " ".join(date), name), int(ppid))
    return found
