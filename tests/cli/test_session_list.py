"""`interlock session list`: every session that there is, with or without a run."""

import json
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation
from tests.cli.conftest import Terminal
from tests.scenes import handed_in, started


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose runs do not join the session here."""
    return tmp_path_factory.mktemp("elsewhere")


def begun(typed: Terminal, project: Path) -> str:
    """A session in which nobody has started a run."""
    opt_in(project, "standard")
    return json.loads(typed("session", "start", "--json").out)["sessionId"]


@pytest.mark.both_stores
def test_the_newest_session_comes_first_whether_or_not_it_has_a_run(
    app: App, typed: Terminal, tmp_path: Path, elsewhere: Path
) -> None:
    bare = begun(typed, tmp_path)
    first = started(app, elsewhere)
    handed_in(app, first)

    def listed(*options: str) -> list[str]:
        rows = json.loads(typed("session", "list", "--json", *options).out)
        return [row["session"] for row in rows]

    assert listed() == [first.session, bare]
    assert listed("--limit", "1") == [first.session]
    typed("session", "set-state", "--task", "T-1", "--session", bare)
    assert listed() == [bare, first.session]


def test_an_archived_session_without_a_run_is_listed_if_asked_for(
    app: App, typed: Terminal, tmp_path: Path, elsewhere: Path
) -> None:
    bare, other = begun(typed, tmp_path), started(app, elsewhere).session
    assert typed("session", "archive", bare).out.startswith(f"Archived {bare}.")

    assert bare not in typed("session", "list").out
    shown = typed("session", "list", "--all").out
    assert bare in shown
    assert other in shown
    typed("session", "archive", bare, "--undo")
    assert bare in typed("session", "list").out


def test_a_session_in_which_nothing_was_recorded_is_named_too(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    talk = Conversation("claude-code", "talk-1")
    session = gated_sessions.begin(app, tmp_path, talk).session

    listed = typed("session", "list")

    assert f"{session}: open in {tmp_path}, nothing is recorded yet" in listed.out
    assert session not in typed("session", "list", "--search", "zebra").out


@pytest.mark.parametrize("limit", ["0", "-1", "99999999999999999999"])
def test_a_limit_that_makes_no_sense_is_misuse(typed: Terminal, limit: str) -> None:
    assert typed("session", "list", "--limit", limit).code == 2
