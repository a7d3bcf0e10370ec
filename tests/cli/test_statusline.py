"""`interlock statusline`: mode and step of a conversation, below its prompt."""

import io
import json
import sys
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.core.protocol.gated_session import Conversation
from tests.cli.conftest import Terminal
from tests.sessions import begin_recorded


def shown(typed: Terminal, monkeypatch: pytest.MonkeyPatch, payload: str) -> str:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payload.encode())))
    said = typed("statusline")
    assert (said.code, said.err) == (0, "")
    return said.out


@pytest.mark.parametrize("payload", ["", "{", "[]", '{"session_id": 7}', '{"session_id": "x"}'])
def test_where_there_is_nothing_to_say_it_says_nothing(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch, payload: str
) -> None:
    assert shown(typed, monkeypatch, payload) == ""


def test_a_conversation_whose_session_was_ended_is_not_shown_as_one_without_hooks(
    app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session
    one, other = (
        json.dumps({"session_id": name, "cwd": str(tmp_path)}) for name in ("one", "other")
    )
    assert shown(typed, monkeypatch, one).startswith("analysis")

    assert typed("session", "end", "--session", session, "--force").code == 0

    assert shown(typed, monkeypatch, one) == (
        "interlock: the session has ended, so only reading is allowed\n"
    )
    assert "no hook was heard of" in shown(typed, monkeypatch, other)
