"""`interlock up`, `status`, `stop` and `console`: start, find, end and open the server."""

import gc
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import click
import msgspec

from interlock.agents.hosts.mcp_config import http_command
from interlock.agents.hosts.registry import NAMES
from interlock.app.admin.access import LoginStore, agent_secret_file
from interlock.app.admin.server_process import (
    DEFAULT_PORT,
    RunningServer,
    StartingServer,
    find_server,
)
from interlock.app.clock import SystemClock
from interlock.app.context import has_store, open_app
from interlock.app.data_home import data_home
from interlock.app.failures import StoreFailure
from interlock.app.jobs.job_counts import JobCounts, count_jobs
from interlock.app.unattended.status import announced_driver
from interlock.cli.authority import require_person
from interlock.cli.terminal import (
    EXIT_REFUSED,
    QUOTE_MARK,
    Stop,
    flush_output,
    print_error,
    print_json,
    print_lines,
    print_message,
)
from interlock.core.views.counting import time_ago

START_SECONDS = 30.0
STOP_SECONDS = 20  # a driver lets its tools end first
_START_HINT = "`interlock up` starts one."


@click.command()
@click.option("--port", default=DEFAULT_PORT, show_default=True, help="0 takes any that is free")
@click.option("--background", is_flag=True, help="Go on in the background, and return when ready")
@click.option("--json", "as_json", is_flag=True, help="Print JSON when ready")
def up(port: int, *, background: bool, as_json: bool) -> None:
    """Start the server: the console, MCP over HTTP, REST"""
    home = data_home()
    if background:
        if other := find_server(home):
            _refuse_second_server(other)
        _print_ready(_start_in_background(home, port), home, as_json=as_json)
        return
    gc.disable()  # nothing that importing makes is garbage
    from interlock.server.serve import PortTaken, serve  # noqa: PLC0415 (200 ms)

    gc.enable()
    logging.basicConfig(handlers=[_MessageLog()])
    outcome = serve(home, port=port, on_ready=lambda r: _print_ready(r, home, as_json=as_json))
    match outcome:
        case RunningServer() | StartingServer():
            _refuse_second_server(outcome)
        case PortTaken():
            print_error(
                f"Port {port} cannot be used: {outcome.reason}{_port_holder(port)}",
                f"Choose another: `interlock up --port {port + 1}`, or 0 for any that is free.",
            )
            raise Stop(EXIT_REFUSED)
        case None:
            flush_output()
            if threading.active_count() > 1:
                # A step of a job still runs, and Python would wait for its end. It is done again.
                os._exit(0)


class _MessageLog(logging.Handler):
    """Prints what the server logs: a traceback may quote what others wrote."""

    def emit(self, record: logging.LogRecord) -> None:
        first_line, *rest = self.format(record).split("\n")
        print_message(first_line, *(f"{QUOTE_MARK}{line}" for line in rest))


def _refuse_second_server(other: RunningServer | StartingServer) -> NoReturn:
    """Stop with an error: a home has only one server."""
    if isinstance(other, RunningServer):
        print_error(
            f"A server runs already at {other.url} (process {other.pid})",
            "`interlock console` opens it; `interlock stop` ends it.",
        )
    else:
        print_error("Another server is just starting", "`interlock status` shows it in a moment.")
    raise Stop(EXIT_REFUSED)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def status(*, as_json: bool) -> None:
    """Say whether the server runs, and where, and who runs jobs"""
    home = data_home()
    server, jobs = find_server(home), _job_counts(home)
    if as_json:
        print_json(_with_jobs(server, jobs) if isinstance(server, RunningServer) else None)
    elif isinstance(server, RunningServer):
        since = time_ago(server.started_ms, SystemClock().now_ms())
        print_lines(
            f"Interlock {server.version} runs at {server.url} (process {server.pid}, {since})."
            f" {_jobs_text(jobs)}{_driver_text(home)}"
        )
    elif server is None:
        print_lines(
            "No server runs. The agents do not need one; the console does: `interlock up`."
            f" {_jobs_text(jobs)}"
        )
    else:
        print_lines("A server is just starting.")
    if not isinstance(server, RunningServer):
        raise Stop(EXIT_REFUSED)


def _job_counts(home: Path) -> JobCounts | StoreFailure | None:
    """None if there is no store: to look would make one."""
    try:
        if not has_store(home, os.environ):
            return None
        app = open_app(home)
        try:
            return count_jobs(app)
        finally:
            app.close()
    except StoreFailure as failure:
        return failure


def _jobs_text(jobs: JobCounts | StoreFailure | None) -> str:
    match jobs:
        case None:
            return "There are no jobs."
        case JobCounts():
            runner = "Jobs are run" if jobs.is_executor_running else "Nobody runs jobs now"
            return f"{runner}: {jobs.waiting} waiting (`interlock jobs list`)."
        case StoreFailure():
            return f"About jobs nothing is known: {jobs}"


def _driver_text(home: Path) -> str:
    driver = announced_driver(home)
    return f" A driver runs (process {driver.pid}, `interlock driver status`)." if driver else ""


def _with_jobs(server: RunningServer, jobs: JobCounts | StoreFailure | None) -> dict[str, object]:
    known = jobs if isinstance(jobs, JobCounts) else None
    driver = announced_driver(data_home())
    return {**msgspec.to_builtins(server), "jobs": known, "driver": driver}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def stop(*, as_json: bool) -> None:
    """End the server. What was recorded stays; agents over stdio go on"""
    server = find_server(data_home())
    if not isinstance(server, RunningServer):
        print_error("No server runs", _START_HINT)
        raise Stop(EXIT_REFUSED)
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while find_server(data_home()) is not None:
        if time.monotonic() > deadline:
            print_error(
                f"Process {server.pid} does not end", f"`kill -9 {server.pid}` loses nothing."
            )
            raise Stop(EXIT_REFUSED)
        time.sleep(0.05)
    if as_json:
        print_json({"stopped": server.pid})
    else:
        print_lines(f"Stopped (process {server.pid})")


@click.command()
@click.option("--print", "is_printed", is_flag=True, help="Print the address and open nothing")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON")
def console(*, is_printed: bool, as_json: bool) -> None:
    """Open the console in the browser, signed in"""
    require_person("Signing in to the console")
    home = data_home()
    server = find_server(home)
    if server is None:
        server = _start_in_background(home, DEFAULT_PORT)
    elif not isinstance(server, RunningServer):
        server = _wait_until_ready(home)
    # The code is in the fragment, which no browser sends and no log has.
    code = LoginStore(home).issue("code", now_ms=SystemClock().now_ms())
    address = f"{server.url}/auth#code={code}"
    if as_json:
        print_json({"address": address})
    elif is_printed or not _open_in_browser(address):
        print_lines(address)


def _open_in_browser(address: str) -> bool:
    import webbrowser  # noqa: PLC0415 (6 ms, and only this command needs it)

    return webbrowser.open(address)


def _start_in_background(home: Path, port: int) -> RunningServer:
    logs = home / "logs"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)  # `parents` below would make it public
    logs.mkdir(mode=0o700, exist_ok=True)
    # Without the modules of the directory that we happen to be in.
    command = [sys.executable, "-P", "-m", "interlock", "up", "--port", str(port)]
    log_file = os.open(logs / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(log_file, "ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    return _wait_until_ready(home, process)


def _wait_until_ready(
    home: Path, process: "subprocess.Popen[bytes] | None" = None
) -> RunningServer:
    """Wait for the server and return it. If `process`, which we started, ends, give up."""
    logs = home / "logs"
    deadline = time.monotonic() + START_SECONDS
    while not isinstance(server := find_server(home), RunningServer):
        if process and process.poll() is not None:
            print_error(
                f"The server did not start (exit code {process.returncode})",
                f"`{logs / 'server.log'}` says why.",
            )
            raise Stop(EXIT_REFUSED)
        if time.monotonic() > deadline:
            print_error("The server does not become ready", f"`{logs}` may say why.")
            raise Stop(EXIT_REFUSED)
        time.sleep(0.05)
    return server


def _print_ready(server: RunningServer, home: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(server)
        flush_output()
        return
    print_lines(f"Interlock {server.version}")
    print_lines(f"  console  {server.url}   (`interlock console` opens it signed in)")
    print_lines(f"  MCP      {server.url}/mcp")
    print_lines(f"  REST     {server.url}/api/v2   (/api/v2/openapi.json)")
    print_lines(
        "", "Agents need no server: `interlock install claude-code` connects one over stdio."
    )
    print_lines("Over HTTP instead:")
    print_lines(f"  {http_command(NAMES[0], server.url, agent_secret_file(home))}")
    print_lines("  other clients: `interlock mcp --print-config HOST --http`")
    flush_output()


def _port_holder(port: int) -> str:
    """The process that holds the port, in words; empty if the system does not tell."""
    try:
        output = subprocess.run(
            ["ss", "-Hltnp", f"sport = :{port}"],
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r'users:\(\("([^"]*)",pid=([0-9]+)', output)
    return f" (held by {match[1]}, process {match[2]})" if match else ""
