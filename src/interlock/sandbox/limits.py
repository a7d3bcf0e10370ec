"""Limits on the resources of a command: memory, processes, processor time, files.

The child sets the kernel's limits for single processes before it is confined. Its own children
inherit them, and raising them needs a capability that nothing inside has. Memory and processes
are limited for the whole command by a control group, where this process may make one: as root, or
in the part of the tree that systemd gives to the user. Without a group the kernel counts all of an
ordinary user's processes, and memory has no limit: one for single processes would count what they
reserve, and sanitizers and race detectors reserve terabytes.
"""

import os
import resource

from interlock.sandbox import confinement

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
else:
    import _signal as signals  # without the names of `enum`, which take long to import

_PROCESSORS = os.cpu_count() or 1
_GROUPS, _NAME = "/sys/fs/cgroup", "interlock-"
_KILLED_FIRST = "500"
"""Where memory runs out, the kernel adds half of the machine's memory to what the command uses."""
_MEMORY_USED = "a process was ended: a command may use {0.memory_mib} MiB of memory"
_COUNTED = (
    ("memory.events", "oom_kill ", _MEMORY_USED),
    ("memory.oom_control", "oom_kill ", _MEMORY_USED),
    ("pids.events", "max ", "a process could not be started: a command may have {0.processes}"),
)
"""The files and lines in which groups count how often a limit was hit."""
_SIGNALLED: dict[int, str] = {
    signals.SIGXCPU: "a process was ended: it may use {0.processor_seconds} s of processor time",
    signals.SIGXFSZ: "a process was ended: a file may have {0.file_mib} MiB",
}


class UsageLimits:
    """The most that a command may use: memory and processes as a whole, the rest per process."""

    memory_mib: int = (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20) * 3 // 4
    processes: int = 1024 + 64 * _PROCESSORS
    """With threads."""
    processor_seconds: int = 3600 * _PROCESSORS
    file_mib: int = 16 << 10
    open_files: int = 1 << 16
    has_time: bool = False
    """Whether the start can take 15 ms longer, as it does with control groups of version 1."""


USUAL, UNATTENDED = UsageLimits(), UsageLimits()
UNATTENDED.has_time = True


def make_groups(limits: UsageLimits) -> list[str]:
    """Make the control groups of a command; none where that is not allowed."""
    values = {
        "pids.max": limits.processes,
        "memory.max": limits.memory_mib << 20,
        "memory.swap.max": 0,  # or the machine would be busy swapping first
        "memory.limit_in_bytes": limits.memory_mib << 20,
    }
    made: list[str] = []
    for base in _parents_of_groups(has_time=limits.has_time):
        path = f"{base}/{_NAME}{os.getpid()}"
        try:
            os.mkdir(path)
            names = os.listdir(base)
        except OSError:
            continue
        for name in names:
            # Its wrapper was killed. The kernel keeps the group if a process is still in it.
            if name.startswith(_NAME) and not os.path.exists(f"/proc/{name.removeprefix(_NAME)}"):
                remove_groups([f"{base}/{name}"])
        made.append(path)
        has_taken = [_write(f"{path}/{name}", str(value)) for name, value in values.items()]
        if not any(has_taken):
            remove_groups([made.pop()])
    return made


def _parents_of_groups(*, has_time: bool) -> list[str]:
    """The directories where groups for memory and processes can be made, if this is allowed."""
    found: list[str] = []
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, own = line.split(":", 2)
        if not controllers:  # version 2, where a group that has processes limits no others below
            found.append(f"{_GROUPS}{own.rpartition('/')[0]}")
        elif has_time and controllers in ("memory", "pids"):
            found.append(f"{_GROUPS}/{controllers}{own.rstrip('/')}")
    return [path for path in found if os.path.exists(f"{path}/cgroup.procs")]


def remove_groups(groups: list[str]) -> None:
    for group in groups:
        try:
            os.rmdir(group)
        except OSError:
            continue


def fork_into(groups: list[str]) -> int:
    """Fork, so that the child begins in the groups. Returns what `os.fork` does."""
    child = confinement.fork_into_group(groups[0]) if groups else -1
    if child < 0:  # not version 2
        child = os.fork()
        if child == 0:
            for group in groups:
                _write(f"{group}/cgroup.procs", "0")
    return child


def limit_this_process(limits: UsageLimits) -> None:
    """Set the limits of this process and all that it will start."""
    # All processes of the user count, which are not more than there are on the machine.
    present = int((_read("/proc/loadavg").split() or ["0"] * 4)[3].rpartition("/")[2])
    for kind, soft, hard in (
        # The lower one ends it by a signal of its own.
        (resource.RLIMIT_CPU, limits.processor_seconds, limits.processor_seconds + 1),
        (resource.RLIMIT_FSIZE, limits.file_mib << 20, limits.file_mib << 20),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_NPROC, present + limits.processes, present + limits.processes),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        pairs = zip(resource.getrlimit(kind), (soft, hard), strict=True)
        lower = [new if old == resource.RLIM_INFINITY else min(old, new) for old, new in pairs]
        resource.setrlimit(kind, (lower[0], lower[1]))
    _write("/proc/self/oom_score_adj", _KILLED_FIRST)


def limit_hit(limits: UsageLimits, groups: list[str], code: int) -> str:
    """The sentence for the limit that a command has hit; empty if none is known to be hit."""
    for group in groups:
        for name, start, sentence in _COUNTED:
            lines = _read(f"{group}/{name}").splitlines()
            if any(line.startswith(start) and line != f"{start}0" for line in lines):
                return sentence.format(limits)
    number = -code if code < 0 else code - 128  # as a shell passes it on
    return _SIGNALLED.get(number, "").format(limits)


def _read(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> bool:
    """Write to a file of the kernel, which is never made."""
    try:
        file = os.open(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        return os.write(file, text.encode()) > 0
    except OSError:
        return False
    finally:
        os.close(file)
