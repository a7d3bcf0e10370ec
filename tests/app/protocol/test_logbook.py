"""The file in the project that a session begins with."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import gated_sessions
from interlock.core.protocol import logbook
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.state import SessionState
from interlock.workspace.projects import logbooks
from tests.sessions import begin_recorded

TALK = Conversation("claude-code", "one")


def begun(app: App, root: Path, conversation: Conversation = TALK) -> SessionState:
    return begin_recorded(app, root, conversation).state


def test_a_session_that_begins_opens_one_and_says_where(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    state = begun(app, tmp_path)
    (path,) = (tmp_path / ".agents" / "sessions").iterdir()
    text = path.read_text()

    assert re.fullmatch(r"\d{4}-\d\d-\d\d-session-01\.md", path.name)
    assert state.protocol_start_evidence["logbook"] == f".agents/sessions/{path.name}"
    assert state.session_id in text
    assert "| MUST | The branch is known | done | no git |" in text


def test_going_on_opens_none_and_another_session_has_the_next_number(
    app: App, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    begun(app, tmp_path)
    begun(app, tmp_path)
    begun(app, tmp_path, Conversation("claude-code", "two"))

    names = sorted(path.name[-5:-3] for path in (tmp_path / ".agents" / "sessions").iterdir())
    assert names == ["01", "02"]


def test_the_light_profile_has_none(app: App, home: Path, tmp_path: Path) -> None:
    opt_in(tmp_path, "light")
    trust_checkout(home, tmp_path, at_ms=app.clock.now_ms())
    begun(app, tmp_path)

    assert not (tmp_path / ".agents").exists()


def test_one_that_cannot_be_written_stops_nobody_and_is_said(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    (tmp_path / ".agents").write_text("a file")
    state = begun(app, tmp_path)

    assert state.protocol_start_complete
    assert state.protocol_start_evidence["logbook"].startswith("not written: ")


def test_a_link_leads_nowhere(app: App, tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    opt_in(root, "standard")
    (root / ".agents").symlink_to(outside)
    state = begun(app, root)

    assert "leads out" in state.protocol_start_evidence["logbook"]
    assert list(outside.iterdir()) == []


def test_sessions_that_begin_at_once_have_a_logbook_each(tmp_path: Path) -> None:
    def begin(_: int) -> Path:
        return logbooks.create_logbook(tmp_path, "2026-11-16", str)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(begin, range(24)))

    assert len(set(made)) == 24
    assert sorted((tmp_path / path).read_text() for path in made) == sorted(map(str, range(1, 25)))


@pytest.mark.parametrize("branch", ["main", "a|b"])
def test_the_branch_is_a_cell_and_the_main_one_is_warned_about(branch: str) -> None:
    text = logbook.initial_text(
        gated_sessions.SessionId("ses_1"), 1, branch=branch, profile="strict", at_ms=0
    )
    rows = [line for line in text.splitlines() if line.startswith("| ")]

    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert ("of its own" in text) == (branch == "main")
