"""The server as a process: starting, being found, being one, ending."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from interlock.app.admin.access import load_secret
from interlock.app.context import open_app
from tests.scenes import started
from tests.server.process import Process, line, told_in, typed, until

TOLD = "server.json"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A home whose server, whoever started it, is ended with the test."""
    home = tmp_path / "with a space" / "interlock"
    home.mkdir(parents=True)
    yield home
    if (home / TOLD).exists():
        typed(home, "stop")


@pytest.fixture
def server(place: Path) -> Iterator[Process]:
    with Process(place) as started:
        yield started


def listening(server: Process) -> socket.socket:
    """A stream that is open, and that nothing is sent on."""
    wire = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    host, bearer = f"Host: {server.host}", f"Authorization: Bearer {server.secret.bearer}"
    wire.sendall(line("/live", host, bearer))
    while b": here" not in wire.recv(4096):
        pass
    return wire


def test_a_second_server_names_the_first(server: Process) -> None:
    for more in ((), ("--background", "--json")):
        said = typed(server.home, "up", "--port", "0", *more)
        assert (said.returncode, said.stdout) == (1, ""), more
        assert f"already at {server.url} (process {server.pid})" in said.stderr
    assert server.plain("GET", "/healthz").status == 200
    assert (server.home / TOLD).exists()


def test_many_that_start_at_once_are_one_in_the_end(place: Path) -> None:
    command = [sys.executable, "-m", "interlock", "up", "--port", "0", "--json"]
    environment = {**os.environ, "INTERLOCK_HOME": str(place)}
    quiet = subprocess.DEVNULL
    started = [
        subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) for _ in range(4)
    ]
    until(lambda: sum(one.poll() is None for one in started) == 1, 60)
    until((place / TOLD).exists)
    (left,) = [one for one in started if one.poll() is None]

    assert told_in(place)["pid"] == left.pid
    assert [one.returncode for one in started if one is not left] == [1, 1, 1]
    left.terminate()
    assert left.wait(20) == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_is_taken_is_told_with_its_holder(place: Path, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as other:
        try:
            other.bind((address, 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        other.listen()
        port = other.getsockname()[1]
        said = typed(place, "up", "--port", str(port))

    assert (said.returncode, said.stdout) == (1, "")
    assert f"Port {port} cannot be used: Address already in use" in said.stderr
    assert f"process {os.getpid()}" in said.stderr
    assert f"--port {port + 1}" in said.stderr
    assert not (place / TOLD).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_soon_though_streams_are_open(server: Process, number: signal.Signals) -> None:
    with ExitStack() as wires:
        for _ in range(20):
            wires.callback(listening(server).close)
        # One that has sent only half of its request.
        half = socket.create_connection(("127.0.0.1", server.port))
        wires.callback(half.close)
        half.sendall(b"GET /sessions HTTP/1.1\r\n")
        assert server.stop(number) == 0
    assert not (server.home / TOLD).exists()
    assert "Traceback" not in server.log


def test_it_ends_though_a_request_never_does(server: Process) -> None:
    host, bearer = f"Host: {server.host}", f"Authorization: Bearer {server.secret.bearer}"
    with socket.create_connection(("127.0.0.1", server.port)) as half:
        half.sendall(line("/mcp", host, bearer, "Content-Length: 9", method="POST"))
        server.plain("GET", "/healthz")
        assert server.stop() == 0
    assert not (server.home / TOLD).exists()


def test_after_kill_9_it_starts_again(place: Path) -> None:
    with Process(place) as server:
        killed = server.pid
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        assert (place / TOLD).exists()
        said = typed(place, "status")
        assert (said.returncode, "No server runs" in said.stdout) == (1, True)
        assert typed(place, "stop").returncode == 1
    with Process(place) as again:
        assert again.ask("GET", "/readyz").status == 200
        assert told_in(place)["pid"] == again.pid != killed


def test_in_the_background_it_is_found_opened_and_ended(place: Path) -> None:
    ready = typed(place, "up", "--background", "--port", "0", "--json")
    assert ready.returncode == 0, ready.stderr
    told = json.loads(ready.stdout)

    shown = json.loads(typed(place, "status", "--json").stdout)
    assert shown.pop("jobs") == {"isExecutorRunning": True, "waiting": 0}
    assert shown.pop("driver") is None, "there is no work for one"
    assert shown == told
    assert f"{told['url']} (process {told['pid']}" in typed(place, "status").stdout
    assert (place / TOLD).stat().st_mode & 0o777 == 0o600
    printed = typed(place, "console", "--print")
    (url, port, code) = re.findall(r"^(http://127.0.0.1:(\d+))/auth#code=(.+)$", printed.stdout)[0]
    assert url == told["url"]
    found = Process(place)
    found.port = int(port)
    form = {"content-type": "application/x-www-form-urlencoded", "origin": url}
    let_in = found.plain("POST", "/auth", form, f"code={code}".encode())
    assert (let_in.status, "set-cookie" in let_in.headers) == (303, True)
    log = place / "logs" / "server.log"
    assert code not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    stopped = typed(place, "stop", "--json")
    assert json.loads(stopped.stdout) == {"stopped": told["pid"]}
    assert not (place / TOLD).exists()
    assert typed(place, "status", "--json").stdout == "null\n"


def test_what_is_printed_connects_a_client(place: Path) -> None:
    said = typed(place, "up", "--background", "--port", "0").stdout
    (header,) = re.findall(r"claude mcp add .* --header (.*)$", said, re.MULTILINE)
    (url,) = re.findall(r"MCP +(http\S+)", said)
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    answer = subprocess.run(
        ["bash", "-c", f"curl -s {url} -d '{ping}' -H {header}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert json.loads(answer)["result"] == {}


@pytest.mark.sqlite
def test_a_home_that_cannot_be_used_is_told_at_the_start(place: Path) -> None:
    (place / "interlock.db").write_bytes(b"not a database" * 1_000)

    for more in ((), ("--background",)):
        said = typed(place, "up", "--port", "0", *more)
        assert said.returncode == 1
        assert "Traceback" not in said.stderr
        assert more or "interlock.db" in said.stderr
    assert "server.log" in said.stderr
    assert "interlock.db" in (place / "logs" / "server.log").read_text()
    assert not (place / TOLD).exists()


def test_a_secret_that_others_can_read_keeps_the_server_from_starting(place: Path) -> None:
    load_secret(place)
    (place / "secret").chmod(0o644)
    said = typed(place, "up", "--port", "0")

    assert said.returncode == 1
    assert "can be read by others" in said.stderr
    assert not (place / TOLD).exists()


def test_only_this_machine_is_listened_on(server: Process) -> None:
    listed = subprocess.run(
        ["ss", "-Hltn", f"sport = :{server.port}"], capture_output=True, text=True, check=True
    ).stdout
    addresses = {row.split()[3].rpartition(":")[0] for row in listed.splitlines()}

    assert addresses
    assert addresses <= {"127.0.0.1", "[::1]"}


def test_the_servers_own_session_is_nobody_elses(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that belongs to a session starts the server; who asks it belongs to none."""
    with closing(open_app(place)) as app:
        first = started(app, tmp_path).session
    monkeypatch.setenv("INTERLOCK_SESSION", first)
    body = {"workflow": "hello", "goal": "Second", "workspace": str(tmp_path)}
    with Process(place) as server:
        assert server.change("/runs", body)["introduction"]["session"] != first
