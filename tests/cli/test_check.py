"""`interlock check session-log` and `interlock session log`: whole logbooks, and broken ones."""

import json
from pathlib import Path

import pytest

from interlock.app.append_loop import append_plan
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation, change_drafts
from interlock.core.session.plan import Plan, plan
from interlock.core.session.protocol_events import (
    ProtocolEnded,
    ProtocolEndRefused,
    ProtocolEndRequested,
    ProtocolEvent,
)
from tests.cli.conftest import Terminal
from tests.sessions import begin_recorded


@pytest.fixture
def session(app: App, tmp_path: Path) -> SessionId:
    opt_in(tmp_path, "standard")
    return begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session


@pytest.fixture
def logbook(session: SessionId, tmp_path: Path) -> Path:
    assert session
    (path,) = (tmp_path / ".agents" / "sessions").iterdir()
    return path


def record(app: App, session: SessionId, *events: ProtocolEvent) -> None:
    """Record what the job that ends a session records."""

    def decide() -> Plan:
        stream = app.log.stream(session)
        assert stream is not None
        drafts = change_drafts(stream, "test", events)
        return plan(stream, drafts, blobs={}, at_ms=app.clock.now_ms())

    append_plan(app, decide)


def findings(typed: Terminal, *paths: str) -> list[str]:
    said = typed("check", "session-log", *paths, "--json")
    found = [one["problem"] for one in json.loads(said.out)["findings"]]
    assert said.code == (1 if found else 0)
    return found


def test_a_new_logbook_is_clean_and_stays_so_while_the_session_goes_on(
    app: App, typed: Terminal, session: SessionId, logbook: Path
) -> None:
    assert findings(typed) == []
    gated_sessions.change_mode(app, session, "planning", by="user")
    assert findings(typed) == [], "it is not written at every change"
    said = typed("check")
    assert (said.code, said.out) == (0, "1 file checked, 0 problems.\n")

    assert "- Profile: standard\n" in typed("session", "log", session).out
    assert typed("session", "log", "--write").out == f"Wrote .agents/sessions/{logbook.name}\n"
    assert "mode planning" in logbook.read_text()
    shown = json.loads(typed("session", "log", "--write", "--json").out)
    assert shown == {
        "session": session,
        "path": f".agents/sessions/{logbook.name}",
        "isWritten": False,
        "text": shown["text"],
    }
    assert shown["text"] in logbook.read_text()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("| done | no git", "| done | main", "the log has no such line"),
        ("- Profile: standard\n", "", "line of the log is missing"),
        ("end of what is", "end", "gone or broken"),
        ("Branch: no git", "Branch: <branch>", "the log has no such line"),
        ("up to event 4 ", "up to event 4444 ", "the log has no such line"),
    ],
)
def test_a_logbook_that_says_something_else_is_found_and_written_again(
    typed: Terminal, logbook: Path, old: str, new: str, problem: str
) -> None:
    assert old in logbook.read_text()
    logbook.write_text(logbook.read_text().replace(old, new))

    assert any(problem in found for found in findings(typed, str(logbook)))
    assert typed("check").code == 1
    typed("session", "log", "--write")
    assert findings(typed) == []


def test_only_an_ended_session_must_say_what_was_done(
    app: App, typed: Terminal, session: SessionId, logbook: Path
) -> None:
    gated_sessions.change_status(app, session, "ended", "it is over")
    assert findings(typed) == ["nothing says what was done"]

    logbook.write_text(logbook.read_text().replace("done\n", "done\n\nThe parser.\n"))
    assert findings(typed) == []


def test_the_table_of_the_end_comes_once_it_was_tried(
    app: App, typed: Terminal, session: SessionId
) -> None:
    refused = ProtocolEndRefused("job-1", ("sessionLogValidated: nothing says it. Say it.",))
    record(app, session, ProtocolEndRequested("job-1"), refused)
    text = typed("session", "log", session).out
    step = "The logbook has what was done and what is left open"
    assert f"| MUST | {step} | open | nothing says it. Say it. |" in text
    assert "| SHOULD | Nothing is left uncommitted | open | not observed |" in text

    evidence = {"sessionLogValidated": "a.md", "qaValidation": "skipped: docs-only"}
    record(app, session, ProtocolEndRequested("job-2", "The parser."))
    record(app, session, ProtocolEnded("job-2", evidence))
    text = typed("session", "log", session).out
    assert f"| MUST | {step} | done | a.md |" in text
    assert "| skipped | docs-only |" in text
    gated_sessions.change_status(app, session, "ended", "it is over")
    assert findings(typed) == [], "the summary says what was done"


def test_what_is_neither_a_rule_nor_a_file_is_misuse(typed: Terminal, session: SessionId) -> None:
    assert session
    assert typed("check", "session-logs").code == 2
    assert typed("check", "session-log", "nowhere.md").code == 2


def test_a_foreign_logbook_is_judged_by_what_it_says(
    app: App, typed: Terminal, logbook: Path, tmp_path: Path
) -> None:
    assert app
    text = logbook.read_text().replace("ses_", "ses_ff").replace("| done | no git", "| done | x")
    other = tmp_path / "notes.md"
    other.write_text(text)

    assert findings(typed, str(other)) == ["`notes.md` is not the name of a logbook"]
