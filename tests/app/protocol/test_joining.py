"""A conversation that goes on in an older session: the gate follows, and gives nobody more."""

from pathlib import Path

import pytest

from interlock.app.callers.caller import local_caller, resolve_caller
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.gated_sessions import StartedSession
from interlock.core.gate.state import GateRow, Mode
from interlock.core.protocol.gated_session import ChangeNotAllowed
from interlock.core.session.state import SessionState
from interlock.store import gate_rows as rows
from tests.app.callers.conversations import begun, in_client, project, talk
from tests.scenes import started


def mode_at_gate(home: Path, name: str) -> str:
    row = rows.read_state(home, "claude-code", name)
    return f"{row.session} {row.mode}" if isinstance(row, GateRow) else row.why


def test_the_gate_follows_a_conversation_to_an_older_session(
    app: App, home: Path, root: Path, child: int
) -> None:
    old, new = begun(app, root, "before", "planning"), begun(app, root, "now")
    app = in_client(app, child, "now")
    assert gated_sessions.sessions_to_move_to(
        app, local_caller(app, root), {old: str(root), new: str(root)}, new
    ) == {old}

    taken = gated_sessions.move_conversation(app, local_caller(app, root), old)

    assert isinstance(taken, StartedSession)
    assert mode_at_gate(home, "now") == f"{old} planning"
    assert resolve_caller(app, local_caller(app, root)) == old
    gated_sessions.change_mode(app, new, "coding", by="user")
    assert mode_at_gate(home, "now") == f"{old} planning", "the session that was left has no say"
    gated_sessions.change_mode(app, old, "analysis", by="user")
    assert mode_at_gate(home, "now") == f"{old} analysis"
    assert isinstance(
        gated_sessions.move_conversation(app, local_caller(app, root), new), ChangeNotAllowed
    )
    gated_sessions.change_mode(app, new, "analysis", by="user")
    assert isinstance(
        gated_sessions.move_conversation(app, local_caller(app, root), new), StartedSession
    )
    assert mode_at_gate(home, "now") == f"{new} analysis", "and back again"


def test_a_session_that_was_left_does_not_go_on(app: App, root: Path, child: int) -> None:
    old, new = begun(app, root, "before"), begun(app, root, "now")
    in_client(app, child, "now")
    assert resolve_caller(app, local_caller(app, root)) == new

    gated_sessions.join(app, root, talk("now"), old)

    assert resolve_caller(app, local_caller(app, root)) == old


@pytest.mark.parametrize(
    "case",
    [
        ("analysis", "analysis", "", True),
        ("coding", "analysis", "", True),
        ("analysis", "coding", "", False),
        ("analysis", "coding", "T-1", False),
        ("coding", "coding", "", True),
        ("analysis", "disabled", "T-1", False),
        ("coding", "disabled", "T-1", False),
        ("disabled", "disabled", "", True),
    ],
)
def test_joining_a_session_gives_no_agent_a_mode_that_is_not_its_to_take(
    app: App, home: Path, root: Path, child: int, case: tuple[Mode, Mode, str, bool]
) -> None:
    before, there, task, may = case
    old = begun(app, root, "before", there)
    gated_sessions.change_work(app, old, gated_sessions.WorkUpdate(task=task))
    new = begun(app, root, "now", before)
    app = in_client(app, child, "now")

    taken = gated_sessions.move_conversation(app, local_caller(app, root), old)

    assert isinstance(taken, StartedSession if may else ChangeNotAllowed)
    assert mode_at_gate(home, "now") == (f"{old} {there}" if may else f"{new} {before}")
    started_there = gated_sessions.start(app, local_caller(app, root, session=old))
    assert isinstance(started_there, StartedSession if may else ChangeNotAllowed), (
        "nor does starting it"
    )


def test_a_conversation_that_joins_a_session_is_asked_anew_before_it_goes_on_to_coding(
    app: App, root: Path, child: int
) -> None:
    old = begun(app, root, "before", "coding")
    gated_sessions.change_mode(app, old, "analysis", by="agent")
    begun(app, root, "now")
    app = in_client(app, child, "now")

    assert isinstance(
        gated_sessions.move_conversation(app, local_caller(app, root), old), StartedSession
    )

    refused = gated_sessions.change_mode(app, old, "coding", by="agent")
    assert isinstance(refused, ChangeNotAllowed)
    assert refused.is_askable
    gated_sessions.change_mode(app, old, "coding", by="user")
    gated_sessions.change_mode(app, old, "analysis", by="agent")
    assert gated_sessions.begin(app, root, talk("renamed", "clear")).session == old
    again = gated_sessions.change_mode(app, old, "coding", by="agent")
    assert isinstance(again, SessionState), "it is the same conversation"


@pytest.mark.parametrize("mode", ["analysis", "coding", "disabled"])
def test_a_session_that_was_ended_does_not_give_coding_back(
    app: App, home: Path, root: Path, child: int, mode: Mode
) -> None:
    old = begun(app, root, "before", "coding")
    gated_sessions.change_mode(app, old, mode, by="agent" if mode == "analysis" else "user")
    in_client(app, child, "before")
    gated_sessions.change_status(app, old, "ended", "the work is done")

    cleared = gated_sessions.begin(app, root, talk("cleared", "clear"))

    assert cleared.session != old
    assert mode_at_gate(home, "cleared") == f"{cleared.session} analysis"
    begun(app, root, "third")
    joined = gated_sessions.join(app, root, talk("third"), old)
    assert isinstance(joined, StartedSession), "the mode it was left in is not the one it has now"
    gated_sessions.change_status(app, old, "ended", "the work is done")
    resumed = gated_sessions.begin(app, root, talk("third", "resume"))
    assert (resumed.session, resumed.state.current_mode) == (old, "analysis")
    refused = gated_sessions.change_mode(app, old, "coding", by="agent", task="T-1")
    assert isinstance(refused, ChangeNotAllowed)
    assert refused.is_askable


def test_a_session_that_was_ended_codes_again_where_the_config_says_so(
    app: App, home: Path, tmp_path: Path
) -> None:
    root = tmp_path / "light"
    root.mkdir()
    opt_in(root, "light")
    trust_checkout(home, root, at_ms=1)
    old = begun(app, root, "before", "analysis")
    gated_sessions.change_status(app, old, "ended", "the work is done")

    gated_sessions.begin(app, root, talk("before", "resume"))

    assert mode_at_gate(home, "before") == f"{old} coding"


def test_a_session_of_another_project_is_not_joined(
    app: App, tmp_path: Path, root: Path, child: int
) -> None:
    elsewhere = begun(app, project(tmp_path / "elsewhere"), "before")
    begun(app, root, "now")
    app = in_client(app, child, "now")

    directories = {elsewhere: str(tmp_path / "elsewhere")}
    assert (
        gated_sessions.sessions_to_move_to(app, local_caller(app, root), directories, None) == set()
    )
    assert isinstance(
        gated_sessions.move_conversation(app, local_caller(app, root), elsewhere), ChangeNotAllowed
    )
    refused = gated_sessions.start(app, local_caller(app, root, session=elsewhere))
    assert isinstance(refused, ChangeNotAllowed)
    assert str(tmp_path / "elsewhere") in refused.reason


def test_a_session_without_a_gate_gets_one_when_it_is_taken_up(
    app: App, home: Path, root: Path, child: int
) -> None:
    old = started(app, root, "before there was a gate").session
    begun(app, root, "now")
    app = in_client(app, child, "now")

    assert isinstance(
        gated_sessions.move_conversation(app, local_caller(app, root), old), StartedSession
    )

    assert mode_at_gate(home, "now") == f"{old} analysis"
