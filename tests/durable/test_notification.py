"""A webhook of the user's, with the real job and a real server: told once, in time, or again."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.jobs.notify_settings import notify_settings
from interlock.core.ids import SessionId
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.order import Spent
from interlock.durable import notification
from interlock.durable.catalogue import JOBS
from interlock.durable.executor import Executor
from interlock.durable.job_records import JobRecord, list_jobs, show_job
from tests.durable.webhook_receiver import PATH, Receiver
from tests.unattended_scene import make_repository, order, report

SECONDS = 60


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.durable.runtime.FIRST_RETRY_SECONDS", 0.01)


@pytest.fixture
def session(app: App, tmp_path: Path) -> SessionId:
    return order(app, make_repository(tmp_path / "shed"))


def configure(app: App, *lines: str) -> None:
    (app.home / "config.toml").write_text("\n".join(("[notify]", *lines)))


def run_jobs(app: App) -> list[JobRecord]:
    executor = Executor(app.home, JOBS)
    try:
        assert executor.run_pending(seconds=SECONDS)
    finally:
        executor.close()
    records = [show_job(app, one.id) for one in list_jobs(app)]
    return [one for one in records if isinstance(one, JobRecord)]


def park(app: App, session: SessionId) -> None:
    """Nobody wants to be told yet, so nobody but the test runs jobs."""
    report(app, session, UnattendedMoved("working", Spent()))
    report(app, session, UnattendedMoved("parked", Spent(), "limit", "200 turns are reached"))


def test_the_facts_are_posted_once_and_name_no_secret(
    app: App, session: SessionId, receiver: Receiver, tmp_path: Path
) -> None:
    park(app, session)
    told = tmp_path / "told"
    configure(app, f'webhook = "{receiver.url}"', f'command = ["sh", "-c", "cat > {told}"]')

    (hook, command) = sorted(run_jobs(app), key=lambda one: one.name == "notify")

    assert (hook.name, hook.state, command.state) == ("webhook", "done", "done")
    facts = json.loads(told.read_text())
    assert (facts["id"], facts["topic"], facts["subject"]) == (
        command.id,
        "unattended/parked",
        "limit",
    )
    (body,) = receiver.bodies
    assert json.loads(body) == {
        "id": hook.id,
        "topic": "unattended/parked",
        "session": session,
        "subject": "limit",
        "text": "limit: 200 turns are reached",
        "goal": "Build a shed",
    }
    (headers,) = receiver.headers
    assert headers["content-type"] == "application/json"
    assert not {"authorization", "cookie"} & set(headers)
    assert PATH not in str(hook)


def test_a_webhook_that_fails_is_tried_again_and_the_command_is_not(
    app: App, session: SessionId, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.statuses = [503, 302, 201]
    park(app, session)
    told = tmp_path / "told"
    configure(
        app,
        f'webhook = "{receiver.url}"',
        f'command = ["sh", "-c", "echo x >> {told}"]',
        'events = ["unattended/parked"]',
    )

    states = {one.name: one.state for one in run_jobs(app)}

    assert states == {"webhook": "done", "notify": "done"}
    assert len(set(receiver.bodies)) == 1
    assert receiver.paths == [PATH] * 3, "where it is sent elsewhere, it does not go"
    assert told.read_text() == "x\n"


def test_a_webhook_that_never_works_fails_with_the_reason_and_without_the_address(
    app: App, session: SessionId, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification, "WEBHOOK_SECONDS", 0.2)
    receiver.statuses = [0]
    park(app, session)
    configure(app, f'webhook = "{receiver.url}"')

    (job,) = run_jobs(app)

    assert (job.state, job.error) == ("failed", "The webhook did not answer within 0.2 s")
    assert len(receiver.bodies) == 4
    assert PATH not in str(job)


@pytest.mark.parametrize(
    ("address", "is_used"),
    [
        ("https://example.org/x", True),
        ("http://127.0.0.1:1/x", True),
        ("http://[::1]/x", True),
        ("http://localhost/x", True),
        ("http://example.org/s3cret", False),
        ("http://127.0.0.1.example.org/s3cret", False),
        ("ftp://127.0.0.1/s3cret", False),
        ("https:///s3cret", False),
        ("https://example.org/s3cret path", False),
        ("https://exämple.org/s3cret", False),
        ("https://[broken/s3cret", False),
    ],
)
def test_only_what_nobody_can_read_on_its_way_is_used_as_a_webhook(
    home: Path, address: str, *, is_used: bool
) -> None:
    home.mkdir()
    (home / "config.toml").write_text(f"[notify]\nwebhook = {json.dumps(address)}\n")

    if is_used:
        assert notify_settings(home).webhook == address
        return
    with pytest.raises(SettingsBroken, match="must be an https address") as broken:
        notify_settings(home)
    assert "s3cret" not in str(broken.value)


def test_without_a_server_somebody_is_started_who_posts(
    app: App, session: SessionId, receiver: Receiver
) -> None:
    configure(app, f'webhook = "{receiver.url}"')

    report(app, session, UnattendedMoved("done", Spent(), outcome="success", summary="All of it"))

    deadline = time.monotonic() + SECONDS
    while not receiver.bodies:
        assert time.monotonic() < deadline, "nobody was told"
        time.sleep(0.05)
    told = json.loads(receiver.bodies[0])
    assert (told["topic"], told["subject"], told["text"]) == (
        "unattended/done",
        "success",
        "All of it",
    )
