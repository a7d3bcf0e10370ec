"""What only the user does: preferences, unblocking, gaps, archiving, deleting, keys."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import deletion, gated_sessions
from interlock.app.refusals import NoSuchRun
from interlock.app.runs import user_actions
from interlock.app.runs.advance import advance
from interlock.app.runs.rehydrate import show_pending_step
from interlock.app.sessions.lookup import check_stream, list_sessions
from interlock.core.gate.state import GateRow, UnknownState
from interlock.core.ids import GapId
from interlock.core.preferences import Preferences, Wish
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.answer import RenderedAnswer
from interlock.store import gate_rows
from tests.scenes import handed_in, output, refusal_code, started
from tests.sessions import begin_recorded


def test_preferences_apply_from_the_next_step_on(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    chosen = user_actions.set_preferences(app, first.run, Wish("full_auto_never_stop"))

    assert chosen == Preferences("full_auto_never_stop", "conservative")
    following = handed_in(app, first, "")
    assert following.answer.kind == "ok", "never stopping, missing notes are a gap"
    assert [gap.severity for gap in following.answer.gaps] == ["warning"]
    again = show_pending_step(app, following.answer.continue_token)
    assert isinstance(again, RenderedAnswer)
    assert again.answer.introduction is not None
    assert again.answer.introduction.preferences == chosen
    assert again.answer.gaps == following.answer.gaps
    assert user_actions.set_preferences(app, "run_none", Wish()) == NoSuchRun("run_none", ())


def test_gaps_are_listed_and_closed(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    gap = {"kind": "gap", "severity": "critical", "summary": "No tests"}
    answered = advance(app, first.answer.continue_token, output("done", gap))
    assert isinstance(answered, RenderedAnswer)
    session = answered.session

    (found,) = user_actions.open_gaps(app, session)
    assert (found.gap.summary, found.run) == ("No tests", answered.run)
    assert user_actions.resolve_gap(app, session, found.gap.gap, "wrote them") == found.gap

    assert list(user_actions.open_gaps(app, session)) == []
    for gap in (found.gap.gap, GapId("gap_x")):
        assert refusal_code(user_actions.resolve_gap(app, session, gap, "again")) == "unknown_gap"
    closing = {"kind": "gap_resolution", "gapId": found.gap.gap, "how": "too late"}
    late = advance(app, answered.answer.continue_token, output("done", closing))
    assert isinstance(late, RenderedAnswer)
    assert "no open gap" in late.answer.warnings[0]


def test_archiving_hides_and_undoing_brings_back(app: App, tmp_path: Path) -> None:
    session = started(app, tmp_path).session

    user_actions.set_archived(app, session, is_archived=True)
    archived = app.reader.stream(session)
    user_actions.set_archived(app, session, is_archived=True)
    assert app.reader.stream(session) == archived, "it is recorded once"
    assert list_sessions(app, limit=9) == []
    assert [row.session for row in list_sessions(app, limit=9, archived=True)] == [session]
    user_actions.set_archived(app, session, is_archived=False)
    assert [row.session for row in list_sessions(app, limit=9)] == [session]
    assert check_stream(app.reader, session).state == "healthy"


@pytest.mark.both_stores
def test_a_deleted_session_is_gone_and_others_are_whole(app: App, tmp_path: Path) -> None:
    gone, kept = started(app, tmp_path), handed_in(app, started(app, tmp_path))

    deletion.delete(app, gone.session)

    refusal = advance(app, gone.answer.continue_token, output("x"))
    assert refusal_code(refusal) == "node_gone"
    assert check_stream(app.reader, kept.session).state == "healthy"
    assert handed_in(app, kept).answer.pending is not None


def test_deleting_removes_what_was_written_into_it(app: App, home: Path, tmp_path: Path) -> None:
    gone = handed_in(app, started(app, tmp_path), "PLUTONIUM " * 50)
    handed_in(app, started(app, tmp_path), "something else")

    deletion.delete(app, gone.session)

    files = [path for path in home.iterdir() if path.is_file()]
    left = [path.name for path in files if b"PLUTONIUM" in path.read_bytes()]
    assert left == []


def test_deleting_takes_the_session_from_the_gate_too(app: App, home: Path, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "talk-1")).session
    gated_sessions.change_mode(app, session, "coding", by="user", task="PLUTONIUM " * 5)
    assert isinstance(gate_rows.read_state(home, "claude-code", "talk-1"), GateRow)

    deletion.delete(app, session)

    assert isinstance(gate_rows.read_state(home, "claude-code", "talk-1"), UnknownState)
    files = [path for path in home.iterdir() if path.is_file()]
    left = [path.name for path in files if b"PLUTONIUM" in path.read_bytes()]
    assert left == []


def test_tokens_survive_a_change_of_keys_until_the_old_one_is_revoked(
    app: App, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    old = app.keyring.current().id

    fresh = app.keyring.rotate()
    second = handed_in(app, first)
    assert app.keyring.current() == fresh
    assert app.keyring.revoke(fresh.id) is False, "the current key cannot be revoked"
    assert app.keyring.revoke(old) is True

    assert refusal_code(advance(app, first.answer.continue_token, output("x"))) == "token_revoked"
    assert handed_in(app, second).answer.kind == "ok"
