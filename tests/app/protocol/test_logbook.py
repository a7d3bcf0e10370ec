"""The file in the project that a session begins with."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import delegations, gated_sessions, session_files
from interlock.app.sessions.logbook_file import (
    LogbookFile,
    SessionLog,
    load_session_log,
    render_region,
)
from interlock.core.protocol.delegation import CompletionRequest, DecisionRequest, DelegationRequest
from interlock.core.protocol.gated_session import Conversation
from interlock.core.protocol.logbook import END_MARKER, find_region
from interlock.core.session.delegation_events import VerdictGiven
from interlock.core.session.state import SessionState
from interlock.workspace.projects import logbooks
from tests.scenes import handed_in, started
from tests.sessions import begin_recorded

TALK = Conversation("claude-code", "one")
PASSED = VerdictGiven("PASS", 90, "all green")


def begun(app: App, root: Path, conversation: Conversation = TALK) -> SessionState:
    return begin_recorded(app, root, conversation).state


def test_a_session_that_begins_opens_one_and_says_where(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    state = begun(app, tmp_path)
    (path,) = (tmp_path / ".agents" / "sessions").iterdir()
    text = path.read_text()

    assert re.fullmatch(r"\d{4}-\d\d-\d\d-session-01\.md", path.name)
    assert state.protocol_start_evidence["sessionLogCreated"] == f".agents/sessions/{path.name}"
    assert state.session_id in text
    assert "| MUST | The branch is known | done | no git |" in text
    assert "## End" not in text, "nothing is ticked in advance"


def test_going_on_opens_none_and_another_session_has_the_next_number(
    app: App, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    begun(app, tmp_path)
    begun(app, tmp_path)
    begun(app, tmp_path, Conversation("claude-code", "two"))

    names = sorted(path.name[-5:-3] for path in (tmp_path / ".agents" / "sessions").iterdir())
    assert names == ["01", "02"]


def test_one_that_cannot_be_written_stops_nobody_and_is_said(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    (tmp_path / ".agents").write_text("a file")
    state = begun(app, tmp_path)

    assert not state.protocol_start_complete
    evidence = state.protocol_start_evidence["sessionLogCreated"]
    assert evidence.startswith("open: not written: ")

    (tmp_path / ".agents").unlink()
    written = session_files.write_logbook(app, gated_sessions.SessionId(state.session_id))
    assert written.fault == "nothing is under ## What was done", "what is open was found out"
    (tmp_path / written.path).write_text(
        (tmp_path / written.path).read_text().replace("done\n", "done\n\nThe parser.\n")
    )
    written = session_files.write_logbook(app, gated_sessions.SessionId(state.session_id))
    assert not written.fault
    assert state.session_id in (tmp_path / written.path).read_text()
    again = session_files.write_logbook(app, gated_sessions.SessionId(state.session_id))
    assert again == LogbookFile(written.path), "it is found by what it says"


def test_a_link_leads_nowhere(app: App, tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    opt_in(root, "standard")
    (root / ".agents").symlink_to(outside)
    state = begun(app, root)

    evidence = state.protocol_start_evidence["sessionLogCreated"]
    assert evidence == "open: not written: Not a directory"
    assert list(outside.iterdir()) == []


def test_sessions_that_begin_at_once_have_a_logbook_each(tmp_path: Path) -> None:
    def begin(_: int) -> Path:
        return logbooks.create_logbook(tmp_path, "2026-11-16", str)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(begin, range(24)))

    assert len(set(made)) == 24
    assert sorted((tmp_path / path).read_text() for path in made) == sorted(map(str, range(1, 25)))


def test_it_follows_the_log_and_keeps_what_people_wrote(app: App, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-qb", "a|b", str(tmp_path)], check=True)
    opt_in(tmp_path, "strict")
    session = gated_sessions.SessionId(begun(app, tmp_path).session_id)
    (path,) = (tmp_path / ".agents" / "sessions").iterdir()
    path.write_text(f"{path.read_text()}\nMine: 1 < 2\n")
    first = render_region(_log(app, session))
    hostile = f"Test | it\n{END_MARKER}\n# <!-- hidden"
    delegations.delegate(app, session, DelegationRequest("qa", hostile))
    decided = DecisionRequest("process", "Use one file", "It is small", "architect")
    delegations.record_decision(app, session, decided)
    run = handed_in(app, started(app, tmp_path, session=session), "Read the parser.")
    gated_sessions.change_status(app, session, "paused", "lunch")
    text = path.read_text()

    assert text.endswith("\nMine: 1 < 2\n")
    assert render_region(_log(app, session)) in text
    region = find_region(text)
    assert region is not None
    assert region.text.count(END_MARKER) == 1
    rows = [line for line in region.text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    for line in ("session paused: lunch", "architect decided (process): Use one file", "- Run of"):
        assert line in region.text
    assert "- qa works on: Test \\| it" in region.text
    for _ in range(2):
        run = handed_in(app, run)
    delegations.complete(app, session, CompletionRequest("qa", "It holds.", verdict=PASSED))
    session_files.write_logbook(app, session)
    text = path.read_text()
    assert "run of line complete: done" in text
    assert "qa completed, verdict approve: It holds." in text
    assert render_region(_log(app, session), 7) != first == render_region(_log(app, session), 5)


def _log(app: App, session: gated_sessions.SessionId) -> SessionLog:
    log = load_session_log(app.reader, session)
    assert log is not None
    return log
