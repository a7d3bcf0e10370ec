"""What a confined command can use up, and what it shares with others, as root and as a user."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.sandbox import limits
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from tests.child_process import processes_of, unique_seconds
from tests.sandbox.sandboxed import Place
from tests.unprivileged import place_of_nobody

PYTHON = ("/usr/bin/python3", "-I", "-S", "-c")  # one that an ordinary user can read
SHARED_MEMORY = "/dev/shm"
GROUPS = Path("/sys/fs/cgroup")
SECOND_GROUPS = [
    folder
    for folder in (GROUPS / "unified", GROUPS)
    if os.geteuid() == 0 and (folder / "cgroup.subtree_control").exists()
]
HITTING = {
    "file_mib": "os.truncate(open(os.environ['TMPDIR'] + '/x', 'w').name, 9 << 20)",
    "open_files": "[os.dup(0) for _ in range(8)]",
}
"""For some limits a program that hits one of 8."""
RAISING = (
    "import resource as r; r.setrlimit(r.RLIMIT_{0}, [x + 1 for x in r.getrlimit(r.RLIMIT_{0})])"
)
FORKING = """
import os, time
for number in range(5000):
    os.fork() or time.sleep(600)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        landlock_abi() < ABI_MIN or not Path(PYTHON[0]).exists(),
        reason="NOT TESTED: this machine has no Landlock, so the sandbox is not tried",
    ),
]


def groups_of(name: str) -> list[Path]:
    return list(GROUPS.glob(f"**/{name}"))


def can_make_groups() -> bool:
    made = limits.make_groups(limits.UNATTENDED)
    limits.remove_groups(made)
    return bool(made)


needs_groups = pytest.mark.skipif(
    not can_make_groups(), reason="NOT TESTED: no control group can be made here"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="these tests are not run by root")


@pytest.fixture(params=["root", "ordinary"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if os.geteuid() and request.param == "root":
        pytest.skip("these tests are not run by root")
    with place_of_nobody() as base:
        yield Place(base, is_ordinary=request.param == "ordinary" and os.geteuid() == 0)


@pytest.mark.parametrize("name", HITTING)
def test_a_command_is_refused_what_is_above_its_limits(place: Place, name: str) -> None:
    words = (*PYTHON, f"import os; {HITTING[name]}")

    assert "OSError" in place.run(*words, most={name: 8}).stderr
    assert place.run(*words).stderr == ""


@pytest.mark.parametrize("name", ["CPU", "FSIZE", "NOFILE", "CORE"])
def test_a_command_cannot_raise_its_limits(place: Place, name: str) -> None:
    done = place.run(*PYTHON, RAISING.format(name))

    assert "not allowed to raise" in done.stderr


def test_a_command_is_ended_first_where_memory_runs_out(tmp_path: Path) -> None:
    path = "/proc/self/oom_score_adj"

    done = Place(tmp_path).run("/bin/sh", "-c", f"cat {path}; echo 0 > {path}; cat {path}")

    assert (done.stdout, "Permission denied" in done.stderr) == ("500\n500\n", True)


def test_a_limit_is_named_where_the_end_tells_it(place: Place) -> None:
    written = "dd if=/dev/zero of=$TMPDIR/x bs=1M count=2"
    busy = "while :; do :; done"

    for most, text, said in (
        ({"file_mib": 1}, f"{written}; exit $?", "a file may have 1 MiB"),
        ({"processor_seconds": 1}, busy, "it may use 1 s of processor time"),
    ):
        done = place.run("/bin/sh", "-c", text, most=most)
        assert f"interlock: a process was ended: {said}\n" in done.stderr


def test_processes_are_limited_and_all_of_them_are_ended(place: Place) -> None:
    mark = unique_seconds()

    done = place.run(*PYTHON, f"'{mark}'{FORKING}", most={"processes": 30})

    assert "BlockingIOError" in done.stderr
    is_told = "interlock: a process could not be started: a command may have 30\n" in done.stderr
    assert is_told == (place.user is None and can_make_groups()), "the others cannot be told"
    assert not processes_of(mark)


@needs_groups
def test_memory_is_limited_for_a_command_as_a_whole(tmp_path: Path) -> None:
    place = Place(tmp_path)
    half = "kept = bytearray(40 << 20); time.sleep(.2)"
    both = f"child = os.fork(); {half}; child and os.waitpid(child, 0)"

    for program, fits in ((half, True), (both, False)):
        done = place.run(*PYTHON, f"import os, time; {program}", most={"memory_mib": 64})
        said = "interlock: a process was ended: a command may use 64 MiB of memory\n"
        assert (said not in done.stderr) == fits


@needs_groups
def test_a_group_goes_with_its_command_or_with_the_next_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    command = place.command("/bin/sh", "-c", "echo on; exec sleep 600")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        name = f"interlock-{process.pid}"
        assert groups_of(name)
        process.kill()
    done = place.run("/bin/cat", "/proc/self/cgroup")
    while groups_of(name):  # bounded by the timeout of the test
        done = place.run("/bin/cat", "/proc/self/cgroup")

    own = {line.rpartition("/")[2] for line in done.stdout.splitlines() if "/interlock-" in line}
    assert own
    assert not any(groups_of(name) for name in own)


def test_a_group_of_version_2_is_made_beside_the_one_that_has_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.slice/a.scope").mkdir(parents=True)
    (tmp_path / "app.slice/cgroup.procs").touch()
    monkeypatch.setattr(limits, "_GROUPS", str(tmp_path))
    told: Callable[[str], str] = lambda _: "1:name=systemd:/\n0::/app.slice/a.scope\n"  # noqa: E731
    monkeypatch.setattr(limits, "_read", told)

    found = limits._parents_of_groups(has_time=False)  # pyright: ignore[reportPrivateUsage]

    assert found == [f"{tmp_path}/app.slice"]


@pytest.mark.skipif(not SECOND_GROUPS, reason="NOT TESTED: no group of version 2 can be made here")
def test_a_child_begins_in_a_group_of_version_2() -> None:
    """Python cannot do that by itself. What the group limits makes no difference."""
    program = """
import os, sys, threading
from interlock.sandbox import confinement
child = confinement.fork_into_group(sys.argv[1])
if child == 0:
    threading.Thread(target=lambda: print(open("/proc/self/cgroup").read())).start()
else:
    assert child > 0 and os.waitpid(child, 0) == (child, 0)
"""
    group = SECOND_GROUPS[0] / f"interlock-test-{os.getpid()}"
    group.mkdir()
    try:
        said = subprocess.check_output([sys.executable, "-c", program, group], text=True)
    finally:
        group.rmdir()

    assert f"0::/{group.name}\n" in said


@needs_root
def test_root_has_shared_memory_of_its_own_inside(tmp_path: Path) -> None:
    place, mounts = Place(tmp_path), Path("/proc/self/mountinfo").read_text()
    with tempfile.NamedTemporaryFile(dir=SHARED_MEMORY) as file:
        made = f"{file.name}-made"
        others = f"cat {file.name}; echo x > {file.name}"

        done = place.run(
            "/bin/sh", "-c", f"{others}; echo x > {made}; chmod 600 {made}; cat {made}"
        )

        assert (done.stdout, done.stderr.count("No such file")) == ("x\n", 1)
        assert (Path(file.name).stat().st_size, Path(made).exists()) == (0, False)
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_shared_memory_works_inside(place: Place) -> None:
    program = """
import multiprocessing.shared_memory as shared
with multiprocessing.get_context("fork").Pool(1) as pool:
    memory = shared.SharedMemory(create=True, size=10)
    print(pool.map(abs, [-1]), memory.size)
    memory.unlink()
"""
    done = place.run(*PYTHON, f"import multiprocessing\n{program}")

    assert (done.stdout, done.stderr) == ("[1] 10\n", "")
