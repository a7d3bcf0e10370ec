"""Whatever changes a file, its metadata, another process, the network or a daemon is refused.

Each attempt is really made, from inside, with root's rights and with an ordinary user's, and then
what could have been changed is looked at from outside.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from interlock.sandbox.system_calls import NUMBERS
from tests.child_process import processes_of, unique_seconds
from tests.sandbox.attempts import ATTEMPTS, PRELUDE
from tests.sandbox.sandboxed import Place

PYTHON = "/usr/bin/python3"  # one that an ordinary user can read
IS_X86 = os.uname().machine == "x86_64"
MORE_NUMBERS = {
    "renameat2": 316 if IS_X86 else 276,
    "mount": 165 if IS_X86 else 40,
    "clock_settime": 227 if IS_X86 else 112,
    "sethostname": 170 if IS_X86 else 161,
    "open_tree": 428,
    "fsopen": 430,
    "mount_setattr": 442,
    "the future": 1000,
    "x32": 0x40000001,
}
RUNNER = """
import json, os, sys
ARGUMENTS, attempts = json.loads(sys.argv[1]), json.loads(sys.argv[2])
exec(sys.argv[3])
for name, code in attempts.items():
    child = os.fork()
    if not child:
        try:
            exec(code)
        except (OSError, AttributeError) as error:
            os.write(1, (json.dumps([name, str(error)]) + "\\n").encode())
        except BaseException as error:
            os.write(2, (name + ": " + repr(error) + "\\n").encode())
        os._exit(0)
    os.waitpid(child, 0)
"""
SIGNALS_OPEN = {"processes: signal", "processes: end", "processes: signal by a descriptor"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        landlock_abi() < ABI_MIN or not Path(PYTHON).exists(),
        reason="NOT TESTED: this machine has no Landlock, so the sandbox is not tried",
    ),
]


class World(Place):
    """What attempts are made on, and how it looks from outside."""

    def __init__(self, base: Path, *, is_ordinary: bool) -> None:
        super().__init__(base, is_ordinary=is_ordinary)
        self.write("outside/witness", "as it was")
        (self.outside / "sub").mkdir()
        self.write("outside/sub/inner", "as it was")
        (self.outside / "link").symlink_to("witness")
        with contextlib.suppress(OSError):  # not every file system has them
            os.setxattr(self.outside / "witness", "user.present", b"1")
        (self.scratch / "tmp").mkdir()
        for path in (self.outside / "sub", self.scratch / "tmp"):
            self.give(path)
        self.heard: list[str] = []
        self.connections: list[socket.socket] = []
        self.victim = subprocess.Popen(["sleep", "600"], user=self.user, group=self.user)
        self.servers = {
            "tcp": socket.create_server(("127.0.0.1", 0)),
            "tcp6": self._ipv6_server(),
            "unix": self._unix_server(str(base / "daemon")),
            "abstract": self._unix_server(f"\0interlock-{os.getpid()}-{base.name}"),
        }
        (base / "daemon").chmod(0o777)
        for name, server in self.servers.items():
            threading.Thread(target=self._listen, args=(name, server), daemon=True).start()

    @staticmethod
    def _unix_server(name: str) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        server.bind(name)
        server.listen()
        return server

    @staticmethod
    def _ipv6_server() -> socket.socket:
        try:
            return socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError:  # a machine without it
            return socket.create_server(("127.0.0.1", 0))

    def _listen(self, name: str, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.connections.append(server.accept()[0])
                self.heard.append(name)

    @property
    def address(self) -> dict[str, Any]:
        return {
            "tcp": self.servers["tcp"].getsockname()[1],
            "tcp6": self.servers["tcp6"].getsockname()[1],
            "unix": str(self.base / "daemon"),
            "abstract": f"\0interlock-{os.getpid()}-{self.base.name}",
        }

    def look(self) -> list[object]:
        seen: list[object] = [self.victim.poll(), list(self.heard)]
        seen += [os.sched_getaffinity(self.victim.pid), os.getpriority(0, self.victim.pid)]
        for path in (self.outside, *sorted(self.outside.rglob("*"))):
            at = path.lstat()
            content = path.read_text() if path.is_file() else ""
            seen.append((path.name, at.st_mode, at.st_uid, at.st_nlink, at.st_mtime_ns))
            seen.append((at.st_ctime_ns, at.st_ino, content))
        return seen

    def attempt(self, attempts: dict[str, str], **more: Any) -> set[str]:
        """Make the attempts inside; the ones that were not refused."""
        arguments = [str(self.outside), self.victim.pid, NUMBERS | MORE_NUMBERS, self.address]
        words = (PYTHON, "-c", RUNNER, json.dumps(arguments), json.dumps(attempts), PRELUDE)
        done = self.run(*words, **more)
        assert done.returncode == 0, done.stderr
        assert not done.stderr, done.stderr
        refused = {json.loads(line)[0] for line in done.stdout.splitlines()}
        return set(attempts) - refused

    def close(self) -> None:
        for one in (*self.servers.values(), *self.connections):
            one.close()
        self.victim.kill()
        self.victim.wait()


@pytest.fixture(params=["root", "ordinary"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if os.geteuid() and request.param == "root":
        pytest.skip("these tests are not run by root")
    # Not below pytest's own directory, which an ordinary user cannot enter.
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory).resolve()
        base.chmod(0o777)
        with contextlib.closing(
            World(base, is_ordinary=request.param == "ordinary" and os.geteuid() == 0)
        ) as found:
            yield found


@pytest.mark.invariant("confined-changes-nothing")
def test_nothing_is_changed_from_inside(world: World) -> None:
    before = world.look()

    assert world.attempt(ATTEMPTS) == set()

    assert world.look() == before


@pytest.mark.parametrize("abi", [3, 4, 5, 6])
def test_with_less_of_landlock_only_what_is_said_is_lost(world: World, abi: int) -> None:
    before = world.look()
    harmless = {name: code for name, code in ATTEMPTS.items() if name != "processes: end"}
    harmless["processes: signal by a descriptor"] = (
        "signal.pidfd_send_signal(os.pidfd_open(victim), 0)"
    )

    lost = world.attempt(harmless, abi=abi)

    expected = SIGNALS_OPEN - {"processes: end"} if abi < 6 else set[str]()
    assert lost == expected
    assert world.look() == before


def test_without_landlock_nothing_is_run(world: World) -> None:
    for abi in (0, 2):
        done = world.run("/bin/sh", "-c", "echo ran", abi=abi)

        assert (done.returncode, done.stdout) == (126, "")
        assert f"Landlock has version {abi} here" in done.stderr


@pytest.mark.invariant("confined-changes-nothing")
def test_the_data_home_is_not_read(world: World) -> None:
    (world.base / "link-to-hidden").symlink_to(world.hidden)

    for way in ("hidden/key", "link-to-hidden/key", "outside/../hidden/key"):
        done = world.run("/bin/cat", str(world.base / way))
        assert (done.returncode, done.stdout) == (1, "")
    for way in ("/proc/self/root", f"/proc/{world.victim.pid}/root"):
        assert world.run("/bin/cat", f"{way}{world.hidden}/key").returncode == 1
    assert world.run("/bin/cat", str(world.outside / "witness")).stdout == "as it was"


def test_what_is_left_behind_is_still_confined_and_ends_with_the_wrapper(world: World) -> None:
    before = world.look()
    text = f"(setsid sh -c 'sleep 0.3; echo x > {world.outside}/witness; sleep 60' &) ; sleep 0.6"

    done = world.run("/bin/sh", "-c", text)

    assert "Permission denied" in done.stderr
    assert not processes_of(f"echo x > {world.outside}/witness"), "it was ended"
    assert world.look() == before


def test_a_descriptor_that_was_open_before_is_closed(world: World) -> None:
    before = world.look()
    with (world.outside / "witness").open("r+") as file:
        text = f"echo x >&{file.fileno()}"  # not for every `sh`: some know only 0 to 9
        done = world.run("/bin/bash", "-c", text, pass_fds=[file.fileno()])

    assert done.returncode != 0
    assert world.look() == before


def test_what_was_given_as_output_is_written_and_what_was_given_as_input_is_not(
    world: World,
) -> None:
    out = world.write("out", "")
    before = world.look()
    with out.open("w") as file, (world.outside / "witness").open() as given:
        world.run(
            "/bin/sh",
            "-c",
            "cat; echo more > /dev/stdout; echo x > /proc/self/fd/0; chmod 777 /proc/self/fd/0",
            stdin=given,
            stdout=file,
            capture_output=False,
        )

    assert out.read_text() == "more\n", "as outside: it was opened anew, which cuts it off"
    assert world.look() == before


def test_the_scratch_directory_is_like_any_other(world: World) -> None:
    script = """
        set -e
        cd "$TMPDIR"
        touch a; touch -d 2001-01-01T00:00:00Z a; chmod 640 a; cp -p a b; mkdir c; mv b c
        ln a d; ln -s a e
        tar cf x.tar a c; mkdir t; tar xpf x.tar -C t; rm -r c; chown "$(id -u)" a
        stat -c '%a %Y %n' a t/a t/c/b
    """
    done = world.run("/bin/sh", "-c", script)

    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"640 978307200 {name}" for name in ("a", "t/a", "t/c/b")]
    assert world.run("/bin/chmod", "4755", f"{world.scratch}/tmp/a").returncode == 0
    mode = (world.scratch / "tmp" / "a").stat().st_mode
    assert mode & 0o7777 == 0o755, "never a file that runs as its owner"


def test_code_signals_and_the_closing_line_pass(tmp_path: Path) -> None:
    """As the command ended, so does the wrapper."""
    place = Place(tmp_path)
    line = "interlock: it ran read-only"
    for code in (0, 1, 42):
        done = place.run("/bin/sh", "-c", f"exit {code}", line=line)
        assert (done.returncode, done.stderr) == (code, f"{line}\n" if code else "")
    assert place.run("/bin/sh", "-c", "kill -9 $$").returncode == -9
    assert place.run("/bin/sh", "-c", "kill -TERM $$").returncode == -15
    assert place.run("no-such-program").returncode == 127
    assert place.run("/etc/passwd").returncode == 126
    mark = unique_seconds()
    text = f"trap 'exit 7' TERM; echo on; setsid sleep {mark} & wait"
    process = subprocess.Popen(place.command("/bin/sh", "-c", text), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"on\n"
    process.terminate()
    assert process.wait() == 7
    assert not processes_of(mark), "the whole tree is gone"
    process.stdout.close()


def test_a_signal_that_arrives_just_before_the_wrapper_waits_reaches_the_command(
    tmp_path: Path,
) -> None:
    """No Python runs between the signal and the wait, so a handler would run after the wait."""
    started = tmp_path / "scratch" / "started"
    signalled = f"""
import ctypes, functools, operator, os, signal, sys, time
from interlock.sandbox import command
def after_signal(wait):
    signals = [functools.partial(ctypes.PyDLL(None).kill, os.getpid(), signal.SIGTERM)]
    def signal_and_wait(*arguments):
        while not os.path.exists({str(started)!r}):
            time.sleep(0.01)
        calls = [signals.pop()] if signals else []
        return [*map(operator.call, [*calls, functools.partial(wait, *arguments)])][-1]
    return signal_and_wait
os.waitpid = after_signal(os.waitpid)
command.signals.sigwait = after_signal(command.signals.sigwait)
"""
    text = f"trap 'exit 7' TERM; touch {started}; sleep {unique_seconds()} & wait"
    python, option, wrapper, given = Place(tmp_path).command("/bin/sh", "-c", text)

    done = subprocess.run([python, option, signalled + wrapper, given], check=False)

    assert done.returncode == 7


def test_with_a_network_files_and_the_data_home_stay_out_of_reach(world: World) -> None:
    """As for a client of a daemon that the user has agreed to."""
    before = world.look()
    local = {name: code for name, code in ATTEMPTS.items() if not name.startswith("network: ")}

    assert world.attempt(local, network="all") == set()
    assert world.run("/bin/cat", f"{world.hidden}/key", network="all").returncode == 1
    assert world.look() == before
    reached = {f"network: {name}" for name in ("TCP", "UDP", "a socket by name", "listening")}
    network = {name: code for name, code in ATTEMPTS.items() if name.startswith("network: ")}
    assert world.attempt(network, network="all") >= reached


def test_with_a_proxy_nothing_else_is_reached(world: World) -> None:
    """As for a remote reader that the user has agreed to."""
    before = world.look()

    assert world.attempt(ATTEMPTS, network="proxy") == set()
    assert world.look() == before


def test_the_broker_ends_with_the_last_process_that_needs_it(tmp_path: Path) -> None:
    """It asked the kernel again and again until the wrapper ended."""
    python, option, wrapper, given = Place(tmp_path).command("/bin/true")
    waiting = """
import _thread, time
def exit_when_alone(code):
    until = time.monotonic() + 20
    while _thread._count() and time.monotonic() < until:
        time.sleep(0.01)
    os._exit(code or _thread._count())
command.exit_as = exit_when_alone
"""
    script = wrapper.replace("given = json", f"{waiting}given = json", 1)

    assert subprocess.run([python, option, script, given], check=False).returncode == 0


def test_what_a_shell_does_not_wait_for_may_still_print(tmp_path: Path) -> None:
    done = Place(tmp_path).run(
        "/bin/bash", "-c", "echo a > >(sleep 0.05; cat); (sleep 0.05; echo b) &"
    )

    assert sorted(done.stdout.split()) == ["a", "b"]


def test_a_killed_wrapper_takes_its_command_with_it(tmp_path: Path) -> None:
    mark = unique_seconds()
    command = Place(tmp_path).command("/bin/sh", "-c", f"echo on; exec sleep {mark}")
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"on\n"
    process.kill()
    process.wait()
    process.stdout.close()

    while processes_of(mark):  # bounded by the timeout of the test
        time.sleep(0.05)


def test_check_proves_what_holds() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "sandbox", "check", "--json"],
        capture_output=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["isWhole"] == all(promise["is_kept"] for promise in answer["promises"])
    assert answer["isWhole"] == (landlock_abi() >= 6)
    limits = {limit["what"]: limit["is_kept"] for limit in answer["limits"]}
    for what in ("processor time is", "the size of files is", "open files are"):
        assert limits[f"{what} limited"]
