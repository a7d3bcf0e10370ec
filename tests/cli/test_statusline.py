"""`interlock statusline`: mode and step of a conversation, below its prompt."""

import io
import json
import sys
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.runs.start import StartRequest, start
from interlock.core.ids import WorkflowId
from interlock.core.protocol.gated_session import Conversation
from tests.cli.conftest import Terminal
from tests.scenes import install, linear
from tests.sessions import begin_recorded


def shown(typed: Terminal, monkeypatch: pytest.MonkeyPatch, payload: str) -> str:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payload.encode())))
    said = typed("statusline")
    assert (said.code, said.err) == (0, "")
    return said.out


def test_it_shows_mode_task_and_the_pending_step(
    app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt_in(tmp_path, "standard")
    payload = json.dumps({"session_id": "talk", "cwd": str(tmp_path)})
    assert "nothing is enforced" in shown(typed, monkeypatch, payload), "no hook was heard of"
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "talk")).session
    assert shown(typed, monkeypatch, payload) == "analysis\n"

    gated_sessions.change_mode(app, session, "coding", by="user", task="T-1")
    install(app, tmp_path, linear())
    request = StartRequest(WorkflowId("line"), goal="x", workspace=tmp_path, session=session)
    start(app, request)

    assert shown(typed, monkeypatch, payload) == "coding · T-1 · line, 0 of 3 done: Step 1\n"


@pytest.mark.parametrize("payload", ["", "{", "[]", '{"session_id": 7}', '{"session_id": "x"}'])
def test_where_there_is_nothing_to_say_it_says_nothing(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch, payload: str
) -> None:
    assert shown(typed, monkeypatch, payload) == ""
