"""The Beads tracker, with an executable in the place of `bd` that behaves as it is documented."""

import fcntl
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.core.coordination.records import WorkItem
from interlock.workspace.outside.beads import BeadHeld, BeadsFailed, BeadsTracker

FAKE = Path(__file__).with_name("fake_bd.py")
ANA, BO = "BlueLake-1735689600", "GreenCastle-1735689601"
PATIENT_SECONDS = 20.0  # Python starts slowly where much else runs


@pytest.fixture
def tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BeadsTracker:
    program = tmp_path / "bin" / "bd"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -I\n{FAKE.read_text()}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("BD_JSON_ENVELOPE", raising=False)
    project = tmp_path / "project"
    (project / ".beads").mkdir(parents=True)
    return BeadsTracker(project, timeout_seconds=PATIENT_SECONDS)


@pytest.fixture(params=["bare", "envelope"])
def shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms of its JSON: that of today, and that of the next major version."""
    if request.param == "envelope":
        monkeypatch.setenv("BD_JSON_ENVELOPE", "1")
    return request.param


@pytest.mark.usefixtures("shape")
def test_work_is_created_found_claimed_and_closed(tracker: BeadsTracker) -> None:
    first = tracker.create("--title of it", 1, "-d is no option here")
    second = tracker.create("second", 0, depends_on=[first.id])

    assert (first.title, first.description) == ("--title of it", "-d is no option here")
    assert first.created_ms > 1_700_000_000_000
    assert tracker.show(second.id) == second
    assert second.depends_on == (first.id,)
    assert tracker.list_ready() == [first]
    assert tracker.list_items() == [first, second]

    claimed = tracker.claim(first.id, ANA)
    assert isinstance(claimed, WorkItem)
    assert (claimed.status, claimed.assignee) == ("in_progress", ANA)
    assert claimed.claimed_ms > 1_700_000_000_000
    assert tracker.list_items("in_progress") == [claimed]

    closed = tracker.close(first.id, "--force is no option either")
    assert (closed.status, closed.reason) == ("done", "--force is no option either")
    assert tracker.list_items("done") == [closed]
    assert tracker.list_ready() == [second]


@pytest.mark.usefixtures("shape")
@pytest.mark.parametrize("mode", ["", "quiet_refusal", "json_refusal"])
def test_a_claim_of_what_another_has_names_the_holder(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    item = tracker.create("one")
    tracker.claim(item.id, ANA)
    monkeypatch.setenv("FAKE_BD", mode)

    refusal = tracker.claim(item.id, BO)

    assert isinstance(refusal, BeadHeld)
    assert refusal == BeadHeld(item.id, ANA)
    assert refusal.explain().error == f"`{item.id}` is already claimed by {ANA}"


@pytest.mark.parametrize("mode", ["", "quiet_refusal"])
def test_a_claim_of_what_one_has_already_succeeds(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    item = tracker.create("one")
    claimed = tracker.claim(item.id, ANA)
    monkeypatch.setenv("FAKE_BD", mode)

    repeated = tracker.claim(item.id, ANA)

    assert isinstance(claimed, WorkItem)
    assert isinstance(repeated, WorkItem)
    assert (repeated.assignee, repeated.claimed_ms) == (ANA, claimed.claimed_ms)


def test_a_claim_that_went_to_another_name_is_not_taken_for_ones_own(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = tracker.create("one")
    monkeypatch.setenv("FAKE_BD", "config_actor")

    assert tracker.claim(item.id, ANA) == BeadHeld(item.id, "configured")


def test_a_missing_command_is_a_failure(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DG5."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    with pytest.raises(BeadsFailed, match=r"^`bd` is not in PATH\.$"):
        tracker.list_ready()


def test_a_command_that_comes_with_the_project_is_not_run(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = shutil.which("bd")
    assert program
    shutil.copy(program, tracker.project / "bd")
    monkeypatch.chdir(tracker.project)
    monkeypatch.setenv("PATH", ".:/usr/bin:/bin")

    with pytest.raises(BeadsFailed, match=r"^`bd` is not in PATH\.$"):
        tracker.list_ready()


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_with_all_that_it_has_started(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DG5. What it has started holds a lock for as long as it lives."""
    monkeypatch.setenv("FAKE_BD", "hang")
    hurried = BeadsTracker(tracker.project)

    with pytest.raises(BeadsFailed, match=r"^`bd` took more than 2 s\.$"):
        hurried.list_ready()

    assert (tracker.project / "begun").exists()
    with (tracker.project / "hold.lock").open("w", encoding="utf-8") as lock:
        wait_for_lock(lock.fileno())


def wait_for_lock(file: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert time.monotonic() < deadline, "what it has started is still there"
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("fail", r"^`bd` ended with 3: Error: database is \\x1b\[31mlocked\\x1b\[0m$"),
        ("garbage", r"^`bd` answered with no JSON of Beads\.$"),
        ("huge", r"^`bd` printed more than 1 MiB\.$"),
    ],
)
def test_a_command_that_fails_is_a_failure_in_words(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch, mode: str, message: str
) -> None:
    """DG5."""
    monkeypatch.setenv("FAKE_BD", mode)

    with pytest.raises(BeadsFailed, match=message):
        tracker.list_ready()


def test_an_unknown_item_and_a_project_without_beads_are_failures(tracker: BeadsTracker) -> None:
    with pytest.raises(BeadsFailed, match="no issue found matching 'bd-9'"):
        tracker.show("bd-9")
    with pytest.raises(BeadsFailed, match="no issue found matching '--claim'"):
        tracker.claim("--claim", ANA)

    shutil.rmtree(tracker.project / ".beads")
    with pytest.raises(BeadsFailed, match="no beads database found"):
        tracker.list_ready()
    tracker.project.rmdir()
    with pytest.raises(BeadsFailed, match="`bd` cannot be run"):
        tracker.list_ready()


def test_what_the_command_leaves_running_is_not_waited_for(
    tracker: BeadsTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the output open."""
    monkeypatch.setenv("FAKE_BD", "leave_running")

    assert tracker.list_ready() == []

    with suppress(ProcessLookupError):
        os.kill(int((tracker.project / "daemon.pid").read_text()), signal.SIGKILL)
