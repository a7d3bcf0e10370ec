"""Jobs over REST and in the console: a notification that works, fails, is retried, is cancelled."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.server.browser_visitor import Visitor
from tests.server.forms import SignedIn
from tests.server.process import Process, refusal, typed, until
from tests.server.stage import HOSTILE, project_at
from tests.server.test_approvals import asking
from tests.server.test_workflow_browser import serious

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
            f'cat >> "{self.received}"; echo >> "{self.received}"\n'
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
        """An agent hands in a plan. Returns the session and the approval."""
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


def test_a_failed_job_says_why_and_is_done_once_it_is_retried(notified: Notified) -> None:
    notified.break_command(f"No route {HOSTILE}")
    session, approval = notified.ask_for_approval("Fail")
    job = notified.wait_for(session, "failed")
    visitor = SignedIn(notified.server)
    page = visitor.get(f"/jobs/{job}")
    (step,) = notified.server.look(f"/jobs/{job}")["steps"]
    listed = visitor.get("/jobs").text
    status = typed(notified.home, "status").stdout

    assert (step["state"], step["attempts"]) == ("failed", TRIES_MAX)
    assert notified.tries(approval) == TRIES_MAX
    assert "`/bin/sh` ended with 3: No route <script>" in step["error"]
    for text in (page.text, listed):
        assert "No route &lt;script&gt;" in text
        assert [one for one in ("<script>window", "<img", "\x1b", "\u202e") if one in text] == []
    states = re.findall(r"</svg>(\w+)</span></td>", listed)
    assert states == sorted(states, key=lambda state: state != "failed")
    assert re.search(r"process \d+.*\. Jobs are run: 0 waiting \(.*\)\.\n\Z", status)

    notified.repair_command()
    forged = notified.server.post(f"/jobs/{job}/retry", {}, csrf="no")
    done = visitor.send(visitor.form(page, f"/jobs/{job}/retry"))

    assert forged.status == 403
    assert (done.status, done.headers["location"]) == (303, f"/jobs/{job}")
    assert notified.wait_for(session, "done") == job
    assert notified.tries(approval) == TRIES_MAX + 1


def test_a_job_that_waits_for_its_next_try_is_cancelled_and_later_retried(
    notified: Notified,
) -> None:
    notified.break_command("Not now")
    session, approval = notified.ask_for_approval("Cancel")
    until(lambda: notified.tries(approval) > 0)
    job = notified.wait_for(session, "running")
    cancelled = notified.server.change(f"/jobs/{job}/cancel")
    # This one begins later and is tried as often as possible.
    other, _ = notified.ask_for_approval("Fail meanwhile")
    notified.wait_for(other, "failed")
    tries = notified.tries(approval)
    again = notified.server.send(f"/jobs/{job}/cancel")
    notified.repair_command()
    notified.server.change(f"/jobs/{job}/retry")
    notified.wait_for(session, "done")

    assert (cancelled["state"], cancelled["steps"][0]["state"]) == ("cancelled", "pending")
    assert tries < TRIES_MAX
    assert refusal(again) == (
        409,
        "not_allowed",
        f"Job `{job}` cannot be cancelled: it is cancelled",
    )
    assert notified.tries(approval) == tries + 1
    assert "Traceback" not in notified.server.log


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
    with Process(home) as server:
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


@pytest.mark.sqlite  # the other server would share the store, and have jobs in it
def test_an_empty_page_says_what_jobs_are(tmp_path: Path) -> None:
    with Process(tmp_path / "home") as server:
        page = SignedIn(server).get("/jobs").text
        assert server.look("/jobs") == {"jobs": []}

    assert "No jobs yet" in page
    assert "A job is work that goes on by itself" in page
    assert "every 1s" not in page, "nothing changes there by itself"


def test_a_job_is_seen_to_fail_and_is_retried_without_a_reload(
    chromium: Browser, notified: Notified
) -> None:
    notified.break_command("Not now")
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
        notified.repair_command()
        page.evaluate("window.isSamePage = true")
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Retry").click()
        expect(page.locator(".timeline .status")).to_have_text("done", timeout=20_000)
        assert page.evaluate("window.isSamePage")
        assert page.get_by_role("button", name="Retry").count() == 0
        assert visitor.complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_keeps_people_out_of_jobs(
    chromium: Browser, notified: Notified, theme: Any
) -> None:
    notified.break_command(HOSTILE)
    session, _ = notified.ask_for_approval(f"Look at it in {theme}")
    job = notified.wait_for(session, "failed")
    with Visitor(chromium, notified.server, color_scheme=theme) as visitor:
        for width in (1280, 400):
            visitor.page.set_viewport_size({"width": width, "height": 800})
            for path in ("/jobs", f"/jobs/{job}"):
                page = visitor.go(path)
                assert serious(page) == []
                assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert visitor.complaints == []
