"""What the server costs: to start, to be written to by many agents, to show a long list."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.agents import Played
from bench.measure import Row
from bench.runs import prepared
from interlock.app.admin.access import load_secret
from interlock.app.admin.server_process import RunningServer, find_server

STARTS = 5
AGENTS = ((1, 300), (8, 100), (32, 100))
"""How many there are, and how often each advances."""
PAGES = 50


def agents_over_http(base: Path) -> tuple[list[Row], list[str]]:
    """Starting, and advances from one process with connections that are kept."""
    workspace = base / "served"
    prepared(workspace, steps=max(calls for _, calls in AGENTS) + 1)
    bare = Row("bare `python -I -S`, beside the server")
    started = Row("`interlock up`: spawn to ready", against=bare)
    for _ in range(STARTS):
        bare.time(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True))
        started.time(lambda: _started(base / "served-home", workspace))
    rows, facts = [bare, started], list[str]()
    with serving(base / "served-home", workspace) as port:
        for agents, calls in AGENTS:
            command = [sys.executable, "-m", "bench.agents", str(port)]
            command += [load_secret(base / "served-home").bearer, str(workspace)]
            command += [str(agents), str(calls)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            played = msgspec.json.decode(done.stdout, type=Played)
            row = Row(f"advance over HTTP, {agents} agents", against=rows[2] if rows[2:] else None)
            row.samples.extend(played.samples)
            rows.append(row)
            p99 = sorted(played.samples)[int(len(played.samples) * 0.99)]
            facts.append(
                f"{agents} agents over HTTP: {len(played.samples) / played.seconds:.0f} advances/s,"
                f" p99 {p99:.1f} ms, load {os.getloadavg()[0]:.1f}"
            )
    return rows, facts


def sessions_page(home: Path, *, sessions: int) -> Row:
    """The list that the console opens with, as long as the server takes for it."""
    row = Row(f"sessions page, {sessions} sessions")
    with serving(home, home) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        bearer = {"authorization": f"Bearer {load_secret(home).bearer}"}

        def show() -> None:
            connection.request("GET", "/sessions", headers=bearer)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            response.read()

        show()  # the templates are compiled once
        for _ in range(PAGES):
            row.time(show)
        connection.close()
    return row


@contextmanager
def serving(home: Path, workspace: Path) -> Generator[int]:
    """The port of a server that runs."""
    server = _spawned(home, workspace)
    found = find_server(home)
    assert isinstance(found, RunningServer), "it tells of itself before it says that it is ready"
    try:
        yield int(found.url.rpartition(":")[2])
    finally:
        _ended(server)


def _started(home: Path, workspace: Path) -> None:
    server = _spawned(home, workspace)
    server.kill()
    _ended(server)


def _spawned(home: Path, workspace: Path) -> subprocess.Popen[bytes]:
    """Ready when it is returned."""
    server = subprocess.Popen(
        [sys.executable, "-m", "interlock", "up", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        cwd=workspace,
        env={**os.environ, "INTERLOCK_HOME": str(home)},
    )
    assert server.stdout is not None, "stdout is a pipe"
    assert server.stdout.readline(), "it says when it is ready"
    return server


def _ended(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGTERM)
    server.wait()
    assert server.stdout is not None, "stdout is a pipe"
    server.stdout.close()
