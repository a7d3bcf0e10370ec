"""The seccomp filter, read instruction by instruction: also for a machine that is not here."""

import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from struct import iter_unpack
from types import SimpleNamespace
from typing import Any

import pytest

from interlock.sandbox import call_filter, system_calls

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
EPERM, EACCES, ENOTTY, ENOSYS, EOPNOTSUPP, EAFNOSUPPORT = 1, 13, 25, 38, 95, 97


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The modules as they are on that machine."""
    here = SimpleNamespace(sysname="Linux", machine=request.param)
    monkeypatch.setattr(os, "uname", lambda: here)
    for module in (system_calls, call_filter):
        importlib.reload(module)
    yield request.param
    monkeypatch.undo()
    for module in (system_calls, call_filter):
        importlib.reload(module)


def test_the_numbers_are_those_of_the_kernel(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("NOT TESTED: the headers of the kernel are not here")
    pattern = r"#define __NR(?:3264)?_(\w+)\s+(\d+)"
    known = dict(re.findall(pattern, HEADERS[machine].read_text()))
    newest = max(map(int, known.values()))

    for name, number in system_calls.NUMBERS.items():
        assert known.get(name, str(number)) == str(number), name
        assert name in known or number > newest, name


def answer(code: bytes, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter answers to a call: the meaning of each instruction is the kernel's."""
    known = system_calls.AUDIT_ARCHITECTURE if architecture is None else architecture
    words = {0: number, 4: known}
    for index, argument in enumerate((*arguments, 0, 0, 0, 0, 0, 0)[:6]):
        words[16 + 8 * index] = argument & 0xFFFFFFFF
        words[20 + 8 * index] = argument >> 32 & 0xFFFFFFFF
    program: list[tuple[int, int, int, int]] = list(iter_unpack("HBBI", code))
    at, value = 0, 0
    while True:
        operation, if_true, if_false, operand = program[at]
        at += 1
        match operation:
            case 0x06:
                return operand
            case 0x20:
                value = words[operand]
            case 0x54:
                value &= operand
            case 0x74:
                value >>= operand
            case 0x15 | 0x25 | 0x45:
                tests: dict[int, Any] = {
                    0x15: value == operand,
                    0x25: value > operand,
                    0x45: value & operand,
                }
                at += if_true if tests[operation] else if_false
            case _:
                raise AssertionError(f"the kernel has no instruction {operation:#x}")


ALLOW, KILL, ASK = 0x7FFF0000, 0x80000000, 0x7FC00000
REFUSED = (
    "unshare setns open_by_handle_at process_madvise move_pages migrate_pages add_key request_key"
    " keyctl bpf perf_event_open userfaultfd mq_open mq_unlink shmget shmat shmctl semget semop"
    " semtimedop semctl msgget msgsnd msgrcv msgctl fchmod fchown fchownat fchmodat2"
)
CASES: list[tuple[str, tuple[int, ...], int]] = [
    ("openat", (), ALLOW),
    ("clone3", (), ENOSYS),
    ("io_uring_setup", (), ENOSYS),
    ("ptrace", (), ALLOW),
    ("fchmodat", (), ASK),
    ("utimensat", (), ASK),
    ("fsetxattr", (), EOPNOTSUPP),
    ("file_setattr", (), EOPNOTSUPP),
    ("clone", (17,), ALLOW),
    ("clone", (0x00020000,), EPERM),
    ("clone", (0x40000000,), EPERM),
    ("socket", (1, 1), EACCES),
    ("socket", (2, 1), EACCES),
    ("socket", (10, 2), EACCES),
    ("socket", (40, 1), EACCES),
    ("socket", (16, 3, 0), ALLOW),
    ("socket", (16, 3, 9), EACCES),
    ("socketpair", (1, 1), ALLOW),
    ("socketpair", (1, 0x80001), ALLOW),
    ("socketpair", (1, 5), ALLOW),
    ("socketpair", (1, 0x80002), EACCES),
    ("socketpair", (1, 3), EACCES),
    ("socketpair", (2, 1), EAFNOSUPPORT),
    ("ioctl", (0, 0x5401), ALLOW),
    ("ioctl", (0, 0x5412), EPERM),
    ("ioctl", (0, 0x80086601), ALLOW),
    ("ioctl", (0, 0x40086602), ENOTTY),
    ("ioctl", (0, 0xC020660B), ALLOW),
    ("prlimit64", (0, 7, 1 << 40), ALLOW),
    ("prlimit64", (5, 7, 0), ALLOW),
    ("prlimit64", (5, 7, 1 << 40), EPERM),
    ("prlimit64", (5, 7, 1), EPERM),
    ("setpriority", (0, 0), ALLOW),
    ("setpriority", (0, 5), EPERM),
    ("setpriority", (2, 0), EPERM),
    ("ioprio_set", (1, 0), ALLOW),
    ("ioprio_set", (3, 0), EPERM),
    ("sched_setaffinity", (5,), EPERM),
]


@pytest.mark.usefixtures("machine")
def test_each_call_has_its_answer() -> None:
    brokered = {system_calls.NUMBERS[name]: name for name in ("fchmodat", "utimensat")}
    code = call_filter.build_filter(brokered, ())

    for name, arguments, expected in (*CASES, *((name, (), EPERM) for name in REFUSED.split())):
        given = answer(code, system_calls.NUMBERS[name], *arguments)
        assert given & 0xFFFF == expected & 0xFFFF, (name, arguments)
        assert (given == expected) == (expected > 0xFFFF), (name, arguments)
    assert answer(code, 1000) & 0xFFFF == ENOSYS
    assert answer(code, 0x40000000 | 1) & 0xFFFF == ENOSYS
    assert answer(code, 0, architecture=0x40000003) == KILL


@pytest.mark.usefixtures("machine")
def test_with_a_network_its_sockets_are_open_and_no_others() -> None:
    code = call_filter.build_filter({}, (2, 10))
    number = system_calls.NUMBERS["socket"]

    families = {family for family in range(64) if answer(code, number, family, 1) == ALLOW}

    assert families == {2, 10, 16}
    assert answer(code, system_calls.NUMBERS["fchmodat"]) & 0xFFFF == EPERM, "without a broker"
