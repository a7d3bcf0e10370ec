"""The end of a session by its job, where something is in the way, and over HTTP."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.callers.session_record import StartedSession
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.end_request import EndBlocked, SessionEnding, end_session
from interlock.core.ids import SessionId
from interlock.durable.executor import run_pending_jobs
from tests.durable.traced_executor import until
from tests.server.http_agent import HttpClient
from tests.server.server_process import Server

pytestmark = pytest.mark.slow
COMMIT = '[project]\nprofile = "standard"\n\n[protocol]\ncommit = true\n'


@pytest.fixture
def project(app: App, tmp_path: Path) -> Path:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q", "-b", "work"], check=True)
    subprocess.run([*git, "config", "user.email", "a@example.org"], check=True)
    subprocess.run([*git, "config", "user.name", "A"], check=True)
    opt_in(tmp_path, "standard")
    (tmp_path / ".interlock" / "config.toml").write_text(COMMIT)
    trust_checkout(app.home, tmp_path, at_ms=0)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "begin"], check=True)
    return tmp_path


@pytest.fixture
def session(app: App, project: Path) -> SessionId:
    started = gated_sessions.start(app, local_caller(app, project))
    assert isinstance(started, StartedSession)
    return started.session


def test_a_commit_that_is_refused_refuses_the_end_until_it_is_let_through(
    app: App, project: Path, session: SessionId
) -> None:
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    refused = end_session(app, session, "Done.")
    hook.unlink()
    ended = end_session(app, session, "Done.")

    assert isinstance(refused, EndBlocked)
    assert refused.blockers == ("gitCommitted: the session's files: not today",)
    assert isinstance(ended, SessionEnding)
    assert (ended.is_complete, len(ended.commit), ended.remarks) == (True, 40, ())
    (logbook,) = (project / ".agents" / "sessions").iterdir()
    committed = subprocess.run(
        ["git", "-C", str(project), "show", f"HEAD:.agents/sessions/{logbook.name}"],
        *(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    done = "## What was done\n\n- Done.\n\n## What is left open\n\n- Nothing: no run,"
    assert done in committed, "what it ticks, its sections show"


def test_a_job_that_fails_is_told_and_the_end_can_be_asked_for_again(
    app: App, project: Path, session: SessionId
) -> None:
    config = project / ".interlock" / "config.toml"
    asked = end_session(msgspec.structs.replace(app, waits_for_jobs=False), session, "Done.")
    config.write_text("[protocol\n")  # after it was checked
    assert run_pending_jobs(app.home, seconds=60)
    config.write_text(COMMIT)
    (failed,) = [one for one in _jobs() if one["state"] == "failed"]
    ended = end_session(app, session, "Done.")

    assert isinstance(asked, SessionEnding)
    assert failed["id"] == asked.job
    assert isinstance(ended, SessionEnding)
    assert (ended.is_complete, ended.job != asked.job) == (True, True)


def test_over_http_the_end_is_waited_for_and_nobody_else_waits(
    app: App, project: Path, session: SessionId
) -> None:
    begun, gate = app.home / "begun", app.home / "gate"
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch {begun}\nwhile ! test -e {gate}; do sleep 0.05; done\n")
    hook.chmod(0o755)
    where = {"workspacePath": str(project), "sessionId": session}
    with Server(app.home) as server, ThreadPoolExecutor(1) as pool:
        client, other = HttpClient(server), HttpClient(server)
        client.initialize()
        other.initialize()
        ending = pool.submit(client.call, "session", action="end", summary="Done.", **where)
        try:
            until(begun.exists)
            asked = other.call("session", **where)
            is_waited_for = not ending.done()
        finally:
            gate.touch()
        answered = ending.result()
        client.hang_up()
        other.hang_up()

    assert is_waited_for
    assert not asked["isError"], asked
    assert answered["structuredContent"]["status"]["word"] == "ended", answered


def _jobs() -> list[dict[str, str]]:
    command = [sys.executable, "-m", "interlock", "jobs", "list", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
