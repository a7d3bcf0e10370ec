"""Jobs over REST and in the console: a notification that works, fails, is retried, is cancelled."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.server.browser_visitor import PHONE, Visitor
from tests.server.forms import SignedIn, assert_harmless
from tests.server.process import Process, refusal, typed, until
from tests.server.site_server import SiteServer
from tests.server.stage import HOSTILE, project_at
from tests.server.test_approvals import asking

TRIES_MAX = 4


class Notified:
    """A server whose user is notified by a command, which works or says why not."""

    def __init__(self, directory: Path) -> None:
        self.home, self.received = directory / "home", directory / "received"
        self.project = project_at(directory / "shed")
        self._problem, script = directory / "problem", directory / "notify.sh"
        self.home.mkdir(mode=0o700)
        self.received.touch()
        script.write_text(
            f'printf "%s\\n" "$(cat)" >> "{self.received}"\n'
            f'if test -e "{self._problem}"; then cat "{self._problem}" >&2; exit 3; fi\n'
        )
        command = json.dumps(["/bin/sh", str(script)])
        (self.home / "config.toml").write_text(f"[notify]\ncommand = {command}\n")
        self.server = Process(self.home)

    def break_command(self, problem: str) -> None:
        self._problem.write_text(problem)

    def repair_command(self) -> None:
        self._problem.unlink(missing_ok=True)

    def ask_for_approval(self, goal: str) -> tuple[str, str]:
        """An agent submits a plan. Returns the session and the approval."""
        first, waits = asking(self.home, self.project, goal)
        return first["introduction"]["session"], waits["approval"]["id"]

    def jobs(self, session: str) -> list[dict[str, Any]]:
        return [one for one in self.server.look("/jobs")["jobs"] if one["session"] == session]

    def wait_for(self, session: str, *states: str) -> str:
        """The id of the session's job, once it is in one of these states."""
        until(lambda: [one["state"] in states for one in self.jobs(session)] == [True])
        return self.jobs(session)[0]["id"]

    def tries(self, approval: str) -> int:
        return sum(approval in line for line in self.received.read_text().splitlines())


@pytest.fixture(scope="module")
def notified(kept_in: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notified]:
    assert kept_in
    made = Notified(tmp_path_factory.mktemp("jobs"))
    with made.server:
        yield made


@pytest.fixture(autouse=True)
def working_command(notified: Notified) -> None:
    notified.repair_command()


def test_a_notification_is_a_job_that_rest_and_the_console_show(notified: Notified) -> None:
    session, approval = notified.ask_for_approval("Build a shed")
    job = notified.wait_for(session, "done")

    shown = notified.server.look(f"/jobs/{job}")
    (step,) = shown.pop("steps")
    received = [json.loads(line) for line in notified.received.read_text().splitlines() if line]
    visitor = SignedIn(notified.server)
    pages = [visitor.get(path).text for path in ("/jobs", f"/jobs/{job}")]

    assert shown.items() >= {"name": "notify", "topic": "approval/requested", "attempts": 1}.items()
    assert (step["name"], step["state"], step["attempts"]) == ("run_command", "done", 1)
    assert step["startedMs"] <= step["endedMs"]
    facts = {"id": job, "topic": "approval/requested", "sessionId": session, "subject": approval}
    (told,) = [one for one in received if one["subject"] == approval]
    assert told == {**facts, "text": "Is the plan good?", "machine": told["machine"]}
    for page in pages:
        assert f'href="/sessions/{session}"' in page
        assert job in page
    assert "<strong>Run command</strong>" in pages[1]
    assert "`/bin/sh` was run" in pages[1]
    assert "/retry" not in pages[1]


def test_a_job_that_fails_says_why_and_one_that_is_cancelled_is_not_tried_again(
    notified: Notified,
) -> None:
    server, visitor = notified.server, SignedIn(notified.server)
    notified.break_command(f"No route {HOSTILE}")
    session, approval = notified.ask_for_approval("Cancel")
    until(lambda: notified.tries(approval) > 0)
    job = notified.wait_for(session, "running")
    cancelled = server.change(f"/jobs/{job}/cancel")
    # This one begins later and is tried as often as possible.
    other, denied = notified.ask_for_approval("Fail meanwhile")
    failed = notified.wait_for(other, "failed")
    tries = notified.tries(approval)
    page, listed = visitor.get(f"/jobs/{failed}"), visitor.get("/jobs")
    (step,) = server.look(f"/jobs/{failed}")["steps"]
    status = typed(notified.home, "status").stdout

    assert (cancelled["state"], cancelled["steps"][0]["state"]) == ("cancelled", "pending")
    assert tries < TRIES_MAX
    again = (409, "not_allowed", f"Job `{job}` cannot be cancelled: it is cancelled")
    assert refusal(server.send(f"/jobs/{job}/cancel")) == again
    assert (step["state"], step["attempts"]) == ("failed", TRIES_MAX)
    assert notified.tries(denied) == TRIES_MAX
    assert "`/bin/sh` ended with 3: No route <script>" in step["error"]
    for shown in (page, listed):
        assert "No route &lt;script&gt;" in shown.text
        assert_harmless(shown)
    states = re.findall(r"</svg>(\w+)</span></td>", listed.text)
    assert states == sorted(states, key=lambda state: state != "failed")
    assert re.search(r"process \d+.*\. Jobs are run: 0 waiting \(.*\)\.\n\Z", status)

    notified.repair_command()
    done = visitor.send(visitor.form(page, f"/jobs/{failed}/retry"))
    server.change(f"/jobs/{job}/retry")

    assert (done.status, done.headers["location"]) == (303, f"/jobs/{failed}")
    assert (notified.wait_for(other, "done"), notified.wait_for(session, "done")) == (failed, job)
    assert (notified.tries(denied), notified.tries(approval)) == (TRIES_MAX + 1, tries + 1)
    assert "Traceback" not in server.log


def test_a_job_that_is_not_there_is_refused_everywhere(notified: Notified) -> None:
    server, visitor = notified.server, SignedIn(notified.server)
    unknown = (404, "unknown_job", "No job `job_0000000000`")

    assert server.refused("/jobs/job_0000000000") == unknown
    for verb in ("cancel", "retry"):
        assert refusal(server.send(f"/jobs/job_0000000000/{verb}")) == unknown
    assert server.refused("/jobs/job_")[:2] == (400, "invalid_arguments")
    assert visitor.get("/jobs/job_0000000000").status == 404
    assert visitor.get("/jobs/job_").status == 404, "an id is never guessed from its start"


@pytest.mark.sqlite
def test_a_damaged_database_of_jobs_is_a_failure_that_is_explained(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "durable.db").write_bytes(b"This is not a database. " * 100)
    with SiteServer(home) as server:
        status, code, error = server.refused("/jobs")
        page = SignedIn(server).get("/jobs")
        others = server.get("/sessions").status

    assert (status, code) == (503, "store_failed")
    assert error == "The database of the jobs cannot be used: file is not a database"
    assert page.status == 503
    assert "file is not a database" in page.text
    assert others == 200


@pytest.mark.sqlite  # the other server would share the store, and do the job
def test_a_server_ends_soon_though_a_step_runs(tmp_path: Path) -> None:
    made = Notified(tmp_path)
    (made.home / "config.toml").write_text('[notify]\ncommand = ["sleep", "14"]\n')
    with made.server as server:
        session, _ = made.ask_for_approval("Take long")
        made.wait_for(session, "running")
        ended = typed(made.home, "stop")  # it waits for ten seconds
        assert ended.returncode == 0, ended.stderr
        assert server.stop() == 0
        assert "Traceback" not in server.log


def test_a_job_is_seen_to_fail_and_is_retried_without_a_reload(
    chromium: Browser, notified: Notified
) -> None:
    notified.break_command(f"Not now {HOSTILE}")
    with Visitor(chromium, notified.server) as visitor:
        page = visitor.go("/jobs")
        page.evaluate("window.isSamePage = true")
        session, _ = notified.ask_for_approval("Watch it")
        row = page.locator("tbody tr", has=page.locator(f'a[href="/sessions/{session}"]'))
        expect(row).to_contain_text("running", timeout=20_000)
        expect(row).to_contain_text("failed", timeout=20_000)
        assert page.evaluate("window.isSamePage")

        row.locator(".main-link").click()
        expect(page.locator(".timeline")).to_contain_text("4 tries")
        expect(page.locator(".timeline .wrong")).to_contain_text("Not now")
        path = page.url.removeprefix(notified.server.url)
        assert visitor.faults("/jobs", path, widths=(1280, PHONE)) == {}
        notified.repair_command()
        page.evaluate("window.isSamePage = true")
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Retry").click()
        expect(page.locator(".timeline .status")).to_have_text("done", timeout=20_000)
        assert page.evaluate("window.isSamePage")
        assert page.get_by_role("button", name="Retry").count() == 0
        assert visitor.complaints == []
