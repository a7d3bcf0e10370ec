"""A person at a terminal is the overseer, also where one agent alone could be meant."""

import json
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.coordination.attention import attend_to
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate.opt_in import opt_in
from interlock.core.coordination.records import Identity
from interlock.core.protocol.gated_session import Conversation
from tests.cli.conftest import Terminal
from tests.sessions import begin_recorded


@pytest.fixture
def agent(app: App, tmp_path: Path) -> Identity:
    """The only agent of the project."""
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "host-1")).session
    found = register(app, open_desk(app, tmp_path), Participant(session))
    assert isinstance(found, Identity)
    return found


def test_a_person_is_not_the_only_agent_and_takes_over_from_it(
    typed: Terminal, agent: Identity
) -> None:
    report = json.loads(typed("who", "--json").out)

    assert [one["id"] for one in report["active_sessions"]] == [agent.id]
    assert report["identity"] is None
    assert typed("takeover", agent.id).code == 1, "it is there"
    assert typed("takeover", agent.id, "--force", "--without-snapshot").code == 0


def test_the_only_agent_is_told_what_a_person_writes(
    typed: Terminal, agent: Identity, app: App
) -> None:
    assert typed("mail", "send", agent.base, "stop").code == 0

    app.coordination.looked_at.clear()
    told = attend_to(app, agent.session)  # pyright: ignore[reportArgumentType]
    assert told == ("From the overseer (a person): stop",)
    assert typed("mail", "inbox").out == "There are no unacknowledged messages.\n"
    assert "stop" in typed("mail", "inbox", "--session", agent.session).out
