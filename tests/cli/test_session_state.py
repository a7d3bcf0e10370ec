"""The state of a session as it is printed: what the published schema says."""

import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from interlock.core.session.state import SessionState
from tests.cli.conftest import Terminal
from tests.hooks.desk import Desk

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
VALID = jsonschema_rs.validator_for(
    json.loads((REFERENCE / "session-state.schema.json").read_text()), validate_formats=True
)


@pytest.mark.parametrize(
    "change",
    [
        "",
        "session set-state --feature export --task T-1 --phase implementation",
        "mode coding --task T-2",
        "mode disabled",
        "session pause",
        "session end --force",
    ],
)
def test_whatever_state_is_printed_is_as_published(
    typed: Terminal, home: Path, tmp_path: Path, change: str
) -> None:
    typed("init")
    Desk(home, tmp_path).begin()
    (session,) = json.loads(typed("session", "start", "--json").out)["sessionId"].split()
    before = typed("session", "get-state").out
    if change:
        assert typed(*change.split()).code == 0

    printed = typed("session", "get-state", "--session", session).out

    VALID.validate(json.loads(printed))
    assert (printed != before) == bool(change)
    state = msgspec.json.decode(printed, type=SessionState)
    assert json.loads(msgspec.json.encode(state)) == json.loads(printed)
