"""A step that a command must prove: what hooks saw decides, else the agent's word, marked so."""

import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.runs.advance import advance
from interlock.app.runs.start import StartRequest, start
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.preferences import Wish
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.events import EvidenceRecorded, decode_envelope
from interlock.core.workflow.definition import Verification
from interlock.workspace.machine.spool import JournalLine, append_line
from tests.scenes import install, linear, output
from tests.sessions import begin_recorded

COMMAND = "make test"
NOW = time.time_ns() / 1e9
TALK = Conversation("claude-code", "talk-1")


@pytest.fixture
def project(tmp_path: Path, app: App) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "code.py").write_text("x = 1\n")
    workflow = linear(2)
    proven = msgspec.structs.replace(workflow.steps[0], verification=Verification(COMMAND))
    install(app, tmp_path, msgspec.structs.replace(workflow, steps=(proven, workflow.steps[1])))
    return tmp_path


def begin(
    app: App, project: Path, *, is_attended: bool, wish: Wish | None = None
) -> RenderedAnswer:
    session: SessionId | None = None
    if is_attended:
        opt_in(project, "light")
        session = begin_recorded(app, project, TALK).session
    request = StartRequest(
        WorkflowId("line"),
        goal="Prove it",
        caller=local_caller(app, project, session=session),
        preferences=wish or Wish(),
    )
    answered = start(app, request)
    assert isinstance(answered, RenderedAnswer)
    return answered


def see(app: App, command: str, outcome: str) -> None:
    """A hook sees a command end, now."""
    line = JournalLine(
        "1",
        time.time_ns() // 1_000_000 + 1,
        TALK.host,
        "post-tool",
        host_session=TALK.id,
        detail=command,
        outcome=outcome,
    )
    append_line(app.home, line)


def hand_in(app: App, before: RenderedAnswer, *reports: dict[str, object]) -> RenderedAnswer:
    sent = [{"kind": "verification", "summary": "it ran", **report} for report in reports]
    answered = advance(app, before.answer.continue_token, output("done", *sent))
    assert isinstance(answered, RenderedAnswer), answered
    return answered


def pending(answered: RenderedAnswer) -> str:
    return answered.answer.pending.step_id if answered.answer.pending else ""


def blockers(answered: RenderedAnswer) -> list[str]:
    return [one.code for one in answered.answer.blocked.blockers] if answered.answer.blocked else []


def evidence(app: App, answered: RenderedAnswer) -> list[tuple[str, str]]:
    events = [decode_envelope(link.body).event for link in app.reader.links(answered.session)]
    return [(one.command, one.basis) for one in events if isinstance(one, EvidenceRecorded)]


def test_what_was_seen_to_pass_before_is_not_asked_for_again(app: App, project: Path) -> None:
    first = begin(app, project, is_attended=True)
    see(app, f"cd {project} && {COMMAND}", "success")

    answered = hand_in(app, first)

    assert pending(answered) == "step-2"
    assert evidence(app, answered) == [(COMMAND, "observed")]
    assert answered.answer.warnings == ()
    assert f"\n`{COMMAND}` was seen to pass, so “" in answered.text
    assert "__verification" not in answered.text
    (run,) = app.reader.runs(answered.session)
    assert (run.steps_done, run.self_attested) == (2, ())


@pytest.mark.parametrize(
    ("seen", "code", "reason"),
    [
        (("make lint", "success"), "verification_missing", "no run of it was recorded"),
        ((f"{COMMAND} | tail", "success"), "verification_missing", "run it alone"),
        ((COMMAND, "failure"), "verification_failed", "it failed when it was last run"),
    ],
)
def test_the_agents_word_does_not_count_against_what_was_seen(
    app: App, project: Path, seen: tuple[str, str], code: str, reason: str
) -> None:
    first = begin(app, project, is_attended=True)
    see(app, *seen)
    asked = hand_in(app, first)
    assert pending(asked) == "step-1__verification"

    refused = hand_in(app, asked, {"command": COMMAND, "exitCode": 0})

    assert blockers(refused) == [code]
    assert reason in refused.text
    assert evidence(app, refused) == []
    see(app, COMMAND, "success")
    assert pending(hand_in(app, refused)) == "step-2"


def test_a_run_before_the_last_change_proves_nothing(app: App, project: Path) -> None:
    first = begin(app, project, is_attended=True)
    see(app, COMMAND, "success")
    later = NOW + 36_000
    os.utime(project / "code.py", (later, later))

    refused = hand_in(app, hand_in(app, first))

    assert blockers(refused) == ["verification_missing"]
    assert "files have changed since" in refused.text


def test_an_ignored_file_and_our_own_are_no_change(app: App, project: Path) -> None:
    first = begin(app, project, is_attended=True)
    see(app, COMMAND, "success")
    (project / ".gitignore").write_text("cache\n")
    old = NOW - 36_000
    os.utime(project / ".gitignore", (old, old))
    later = NOW + 36_000
    for path in (project / "cache", project / ".interlock" / "log"):
        path.write_text("x")
        os.utime(path, (later, later))

    assert pending(hand_in(app, first)) == "step-2"


@pytest.mark.parametrize("outcome", ["", "unknown"])
def test_where_nobody_can_tell_the_agents_word_counts_and_is_marked(
    app: App, project: Path, outcome: str
) -> None:
    asked = hand_in(app, begin(app, project, is_attended=bool(outcome)))
    if outcome:
        see(app, COMMAND, outcome)

    answered = hand_in(app, asked, {"command": COMMAND, "exitCode": 0})

    assert pending(answered) == "step-2"
    assert evidence(app, answered) == [(COMMAND, "self_attested")]
    assert [run.self_attested for run in app.reader.runs(answered.session)] == [(COMMAND,)]


@pytest.mark.parametrize(
    ("report", "code", "text"),
    [
        ({"command": "true", "exitCode": 0}, "verification_missing", "`true` was reported"),
        ({"command": COMMAND, "exitCode": 1}, "verification_failed", "Fix what is wrong"),
    ],
)
def test_a_wrong_or_failed_report_is_never_answered_with_a_passing_one(
    app: App, project: Path, report: dict[str, object], code: str, text: str
) -> None:
    asked = hand_in(app, begin(app, project, is_attended=False))

    refused = hand_in(app, asked, report)

    assert blockers(refused) == [code]
    assert text in refused.text
    assert '"exitCode":"<whole number>"' in refused.text
    assert 'exitCode":0' not in refused.text


def test_a_run_that_never_stops_goes_on_with_a_critical_gap(app: App, project: Path) -> None:
    wish = Wish("full_auto_never_stop", "aggressive")
    asked = hand_in(app, begin(app, project, is_attended=False, wish=wish))

    answered = hand_in(app, asked, {"command": COMMAND, "exitCode": 2})

    assert pending(answered) == "step-2"
    assert [gap.severity for gap in answered.answer.gaps] == ["critical"]
    assert "has failed" in answered.answer.gaps[0].summary
    assert evidence(app, answered) == []
