"""The schema of a session's state: it takes every state that is printed, and nothing odd."""

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.session import orchestration, state
from interlock.core.session.state import SessionState, session_state_schema, timestamp
from tests.core.any_struct import some
from tests.effort import scale

SCHEMA: dict[str, Any] = json.loads(session_state_schema())
VALID = jsonschema_rs.validator_for(SCHEMA, validate_formats=True)
SHAPES = [
    found
    for found in (*vars(state).values(), *vars(orchestration).values())
    if isinstance(found, type) and issubclass(found, msgspec.Struct)
    # The bases of them all, and what comes from elsewhere, are not printed.
    if issubclass(found, state._State | orchestration.OrchestrationPart)  # pyright: ignore[reportPrivateUsage]
    if found.__struct_fields__
]


@settings(max_examples=scale(150))
@given(some(SessionState, st.text(max_size=5)))
def test_every_state_is_valid_and_comes_back_from_json_as_it_was(found: SessionState) -> None:
    content = msgspec.json.encode(found)

    VALID.validate(json.loads(content))
    assert msgspec.json.decode(content, type=SessionState) == found


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_it_has_every_field_of_every_part(shape: type[msgspec.Struct]) -> None:
    known = SCHEMA if shape is SessionState else SCHEMA["$defs"][shape.__name__]
    names = [field.encode_name for field in msgspec.structs.fields(shape)]

    assert list(known["properties"]) == names
    assert known["required"] == names


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("currentMode", "yolo"),
        ("version", -1),
        ("createdAt", "yesterday"),
        ("status", None),
        ("modeHistory", [{"mode": "coding"}]),
        ("orchestratorWorkflow", {}),
        ("protocolStartEvidence", {"branch": 1}),
    ],
)
def test_what_is_no_state_is_refused(field: str, value: object) -> None:
    sound = json.loads(
        msgspec.json.encode(SessionState("ses_1", "p", "/p", timestamp(0), timestamp(0), 1))
    )
    assert VALID.is_valid(sound)

    assert not VALID.is_valid({**sound, field: value})
    assert not VALID.is_valid({key: one for key, one in sound.items() if key != field})
