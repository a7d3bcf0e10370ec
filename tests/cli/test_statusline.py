"""`interlock statusline`: mode and step of a conversation, below its prompt."""

import io
import sys

import pytest

from tests.cli.conftest import Terminal


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
