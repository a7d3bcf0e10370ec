"""A process that runs jobs is killed at every point at which it can be: the end is the same."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.callers.session_record import StartedSession
from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import delegations, gated_sessions
from interlock.app.protocol.end_request import SessionEnding, end_session
from interlock.core import canonical
from interlock.core.ids import ProjectId, SessionId
from interlock.core.project_stream import OutboxMessage, ProjectPlan
from interlock.core.protocol.delegation import CompletionRequest, DelegationRequest
from interlock.core.session.announcements import Announcement
from interlock.core.session.events import decode_envelope
from interlock.durable.delivery import DELIVER
from tests.child_process import end_with_parent
from tests.crash.killed_executor import KillPoint, kill_points
from tests.durable.webhook_receiver import Receiver
from tests.effort import EFFORT

ROOT = Path(__file__).parents[2]
CHANGING = (
    r"ses_[0-9a-f]{16}",
    r"job_[0-9a-f]{10}",
    r"dlg_[0-9a-f]{10}",
    r"\d{4}-\d\d-\d\dT[\d:.]+Z",
    r"\d{4}-\d\d-\d\d \d\d:\d\d",
    r"\b[0-9a-f]{40}\b",
    r"\b[0-9a-f]{12}\b",
    r"\b1\d{12}\b",
)
"""What differs between two sessions that went the same way: names, times, commits."""
POINTS = (
    [point for point in kill_points() if point.job != DELIVER.name]
    if EFFORT == "long"
    else [
        KillPoint("protocol-end", "commit", "after"),
        KillPoint("protocol-end", "complete", "after"),
        KillPoint("webhook", "post", "after"),
        KillPoint("retention", "remove_expired", "after"),
    ]
)
"""Those of a delivery are tried in `test_kill_delivery`."""


class Outcome(msgspec.Struct, frozen=True):
    """What a session has left behind, without what differs each time."""

    events: list[str]
    files: dict[str, str]
    commits: list[str]
    is_notified: bool


def scene(project: Path, home: Path, webhook: str) -> SessionId:
    """A session that has done something, whose end was asked for, and no executor yet."""
    project.mkdir()
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "init", "-q", "-b", "work"], check=True)
    subprocess.run([*git, "config", "user.email", "a@example.org"], check=True)
    subprocess.run([*git, "config", "user.name", "A"], check=True)
    opt_in(project, "standard")
    config = project / ".interlock" / "config.toml"
    config.write_text(config.read_text() + "\n[protocol]\ncommit = true\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "begin"], check=True)
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", f"open({str(home / 'told')!r}, 'a').write('x')"]
    (home / "config.toml").write_text(
        f"[notify]\ncommand = {msgspec.json.encode(command).decode()}\nwebhook = '{webhook}'\n"
    )
    (home / "machine").write_text("this-machine\n")
    trust_checkout(home, project, at_ms=0)
    app = msgspec.structs.replace(open_app(home), waits_for_jobs=False)
    started = gated_sessions.start(app, local_caller(app, project))
    assert isinstance(started, StartedSession)
    session = started.session
    delegations.delegate(app, session, DelegationRequest("qa", "Look at it"))
    delegations.complete(app, session, CompletionRequest("qa", "It is good"))
    due = Announcement("retention/due", SessionId(""), "today", machine="this-machine")
    message = OutboxMessage("retention", due.machine, canonical.encode(due))
    app.log.append_to_project(ProjectPlan(ProjectId("p"), "due", b"{}", 1, outbox=(message,)))
    ending = end_session(app, session, "Everything was done.")
    assert isinstance(ending, SessionEnding), ending
    assert not ending.is_complete
    app.close()
    return session


def run_executor(home: Path, point: KillPoint | None) -> int:
    words = [point.job, point.step, point.moment] if point else []
    command = [sys.executable, "-m", "tests.crash.killed_executor", str(home), *words]
    environment = {**os.environ, "INTERLOCK_HOME": str(home)}
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        check=False,
        timeout=110,
        preexec_fn=end_with_parent,
    ).returncode


def outcome(app: App, session: SessionId, project: Path, receiver: Receiver) -> Outcome:
    envelopes = [decode_envelope(link.body) for link in app.reader.links(session)]
    events = [msgspec.json.encode(envelope.event).decode() for envelope in envelopes]
    folders = (".agents", ".interlock/notes/sessions")
    paths = [path for name in folders for path in sorted((project / name).rglob("*.md"))]
    log = ["git", "-C", str(project), "log", "--format=%s"]
    commits = subprocess.run(log, capture_output=True, text=True, check=True).stdout.splitlines()
    clean = re.compile("|".join(CHANGING))
    return Outcome(
        [clean.sub("*", event.replace(str(project), "PROJECT")) for event in events],
        {
            clean.sub("*", str(path.relative_to(project))): clean.sub(
                "*", path.read_text().replace(str(project), "PROJECT")
            )
            for path in paths
        },
        [clean.sub("*", subject) for subject in commits],
        (app.home / "told").exists() and any(session.encode() in body for body in receiver.bodies),
    )


def play(project: Path, home: Path, point: KillPoint | None, receiver: Receiver) -> Outcome:
    session = scene(project, home, receiver.url)
    if point:
        assert run_executor(home, point) == -signal.SIGKILL
    assert run_executor(home, None) == 0
    app = open_app(home)
    try:
        assert app.reader.outbox(limit=10) == []
        return outcome(app, session, project, receiver)
    finally:
        app.close()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Outcome:
    folder = tmp_path_factory.mktemp("undisturbed")
    return play(folder / "here", folder / "home", None, receiver)


def test_an_undisturbed_end_leaves_everything_once(undisturbed: Outcome) -> None:
    kinds = [msgspec.json.decode(event)["kind"] for event in undisturbed.events]

    assert kinds[-4:] == ["end_requested", "protocol_ended", "session_completed", "status_changed"]
    assert undisturbed.commits == ["chore: session * artifacts", "begin"]
    assert undisturbed.is_notified
    assert any("summary" in name for name in undisturbed.files)


@pytest.mark.invariant("job-goes-on")
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_job_that_is_killed_ends_as_if_nothing_had_happened(
    point: KillPoint, undisturbed: Outcome, tmp_path: Path, receiver: Receiver
) -> None:
    assert play(tmp_path / "here", tmp_path / "home", point, receiver) == undisturbed


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("url")
def test_a_store_in_postgres_ends_the_same_once_the_lease_is_over(
    undisturbed: Outcome, tmp_path: Path, receiver: Receiver
) -> None:
    point = KillPoint("protocol-end", "commit", "after")

    assert play(tmp_path / "here", tmp_path / "home", point, receiver) == undisturbed
