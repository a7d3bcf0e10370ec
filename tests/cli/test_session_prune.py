"""`interlock session prune` and `commands`: what is left of conversations, and what they ran."""

import json
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate import gate_journal
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.presence import end_departed_sessions
from interlock.core.protocol.gated_session import Conversation, WorkUpdate
from tests.cli.conftest import Terminal
from tests.scenes import started
from tests.sessions import begin_recorded


def ended(app: App, root: Path, name: str) -> str:
    """A session of a conversation that is over."""
    session = begin_recorded(app, root, Conversation("claude-code", name)).session
    gate_journal.journal_event(app.home, "claude-code", "session-end", name, detail="other")
    return session


@pytest.fixture
def root(tmp_path: Path) -> Path:
    opt_in(tmp_path, "standard")
    return tmp_path


def test_sessions_in_which_nothing_was_done_go_with_all_that_they_left(
    app: App, typed: Terminal, root: Path
) -> None:
    empty = ended(app, root, "empty")
    working = begin_recorded(app, root, Conversation("claude-code", "working")).session
    worked = ended(app, root, "worked")
    gated_sessions.change_work(app, gated_sessions.SessionId(worked), WorkUpdate(task="T-1"))
    run = started(app, root).session
    written = root / ".agents" / "sessions" / "written.md"
    logbooks = sorted((root / ".agents" / "sessions").glob("*.md"))
    listed = json.loads(typed("session", "list", "--json").out)
    statuses = {row["session"]: row["status"]["word"] for row in listed}
    assert (statuses[worked], statuses[working]) == ("disconnected", "active")
    assert end_departed_sessions(app) == 0, "the list has noticed it"

    shown = json.loads(typed("session", "prune", "--dry-run", "--json").out)
    assert [each["session"] for each in shown["sessions"]] == [empty]
    said = typed("session", "prune", "--yes")

    assert said.code == 0
    assert "1 session deleted." in said.out
    left = set(app.reader.all_sessions())
    assert left == {working, worked, run}
    assert len([*(root / ".agents" / "sessions").glob("*.md")]) == len(logbooks) - 1
    assert not written.exists()
    assert not [*(root / ".interlock").rglob(f"*{empty}*")], "nor is its note there"
    assert "nothing to prune" in typed("session", "prune").out


def test_a_logbook_that_somebody_wrote_into_stays(app: App, typed: Terminal, root: Path) -> None:
    ended(app, root, "empty")
    (logbook,) = (root / ".agents" / "sessions").glob("*.md")
    logbook.write_text(f"{logbook.read_text()}\nRead the parser.\n")

    typed("session", "prune", "--yes")

    assert app.reader.all_sessions() == []
    assert logbook.exists()


def test_the_commands_of_a_session_are_listed_with_their_outcomes(
    app: App, typed: Terminal, root: Path
) -> None:
    session = begin_recorded(app, root, Conversation("claude-code", "mine")).session
    for name, command, outcome in (
        ("mine", "make test", "failure"),
        ("other", "make up", "success"),
        ("mine", "make test", "success"),
    ):
        gate_journal.journal_event(
            *(app.home, "claude-code", "post-tool", name),
            tool="Bash",
            detail=command,
            outcome=outcome,
            cwd=str(root),
        )

    listed = json.loads(typed("session", "commands", session, "--json").out)

    ran = [(line["detail"], line["outcome"]) for line in listed]
    assert ran == [("make test", "failure"), ("make test", "success")]
    assert "make test" in typed("session", "commands", session).out
