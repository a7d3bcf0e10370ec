"""Canonical JSON against RFC 8785 and against the reference implementation."""

import json
import struct
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from interlock.core import canonical
from interlock.core.canonical import DEPTH_MAX, INT_MAX, Json, NotCanonical, encode
from interlock.core.ids import AttemptId, BlobRef, NodeId, RunId, SessionId
from interlock.core.session.events import (
    ENVELOPE_VERSION,
    AdvanceRecorded,
    Envelope,
    OutputAppended,
    SessionCreated,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rfc8785.json").read_text())

text = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.invariant("canonical-form")
@pytest.mark.parametrize(("bits", "form"), GOLDEN["numbers"].items())
def test_numbers_have_the_form_of_the_rfc(bits: str, form: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))

    assert encode(number) == form.encode()


@pytest.mark.invariant("canonical-form")
def test_the_sample_of_the_rfc_has_its_form() -> None:
    sample: Json = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }

    assert encode(sample) == (
        b'{"literals":[null,true,false],'
        b'"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        b'"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@pytest.mark.invariant("canonical-form")
def test_keys_are_sorted_by_utf16_and_not_by_code_point() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]

    encoded = encode(cast("Json", dict.fromkeys(keys, 0)))

    order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(encoded)) == order


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    event = draw(
        st.one_of(
            st.builds(SessionCreated, text),
            st.builds(OutputAppended, st.builds(AttemptId, text), text),
            st.builds(
                AdvanceRecorded,
                st.builds(AttemptId, text),
                st.builds(BlobRef, text),
                st.builds(NodeId, text),
            ),
        )
    )
    return Envelope(
        v=ENVELOPE_VERSION,
        session=SessionId(draw(text)),
        seq=draw(st.integers(0, INT_MAX)),
        at_ms=draw(st.integers(0, INT_MAX)),
        key=draw(text),
        event=event,
        run=draw(st.none() | st.builds(RunId, text)),
        node=draw(st.none() | st.builds(NodeId, text)),
    )


@pytest.mark.invariant("fast-encoder-agrees")
@given(envelopes())
def test_the_fast_encoder_agrees_with_the_reference_on_our_structs(envelope: Envelope) -> None:
    assert encode(envelope) == rfc8785.dumps(msgspec.to_builtins(envelope))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-INT_MAX, INT_MAX)
    | text
    # A larger whole double is written like an integer, and read back it is one that we refuse.
    | st.floats(-INT_MAX, INT_MAX),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_encoding_what_was_decoded_gives_the_same_bytes(value: Json) -> None:
    once = encode(value)

    assert encode(cast("Json", json.loads(once))) == once


def nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": [1, float("nan")]}, "/a/1"),
        ({"a/b": {"~": float("inf")}}, "/a~1b/~0"),
        ([INT_MAX, INT_MAX + 1], "/1"),
        ({"half": "\ud800"}, "/half"),
        ({"\ud800": 1}, ""),
        (nested(DEPTH_MAX + 1), "/0" * (DEPTH_MAX + 1)),
        ({"set": {1, 2}}, "/set"),
        ({1: "number as key"}, ""),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_its_place(value: Any, pointer: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        encode(value)

    assert refused.value.pointer == pointer


def test_nesting_at_the_limit_is_taken() -> None:
    assert encode(nested(DEPTH_MAX)) == b"[" * DEPTH_MAX + b"1" + b"]" * DEPTH_MAX


def test_a_blob_is_named_by_its_content() -> None:
    assert canonical.blob_ref(b"abc") == (
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
