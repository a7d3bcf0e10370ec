"""Templates put values of strangers into goals, and nothing else happens."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.triggers.goal_template import (
    TEXT_CHARS_MAX,
    MissingValue,
    render_template,
    template_faults,
    template_paths,
)

PAYLOAD: dict[str, Any] = {
    "event": {"title": "Add\n a  cache", "number": 7, "is_draft": False, "labels": ["a", "b"]},
    "nothing": None,
    "deep": {"er": {"still": 1.5}},
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Review !{{ event.number }}", "Review !7"),
        ("{{event.title}}", "Add\n a  cache"),
        ("{{ event.title | oneline }}", "Add a cache"),
        ("{{ event.title | oneline | trunc(5) }}", "Add …"),
        ("{{ event.title | trunc(0) }}", "…"),
        ("{{ event.is_draft }} {{ deep.er.still }}", "false 1.5"),
        ("{{ event.labels.1 }}", "b"),
        ("no place", "no place"),
        ("{{ event.labels }}", MissingValue("event.labels")),
        ("{{ event.labels.2 }}", MissingValue("event.labels.2")),
        ("{{ nothing }}", MissingValue("nothing")),
        ("{{ event.number.real }}", MissingValue("event.number.real")),
        ("{{ event.__class__ }}", MissingValue("event.__class__")),
    ],
)
def test_a_template_takes_plain_values_by_their_paths(template: str, expected: object) -> None:
    assert render_template(template, PAYLOAD) == expected


def test_a_value_is_never_taken_for_a_template_and_controls_nothing() -> None:
    hostile = "{{ secret }} \x1b[2J\x00\x9b {{ event.number | trunc(1) }} \\1"

    rendered = render_template("Look: {{ text }}", {"text": hostile, "secret": "s3cret"})

    assert rendered == "Look: {{ secret }}  [2J   {{ event.number | trunc(1) }} \\1"


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{{ event.title | upper }}", "there is no filter `upper`"),
        ("{{ event.title | trunc(-1) }}", "there is no filter"),
        ("{{ 1 + 1 }}", "must begin with a dotted path"),
        ("{{ }}", "must begin with a dotted path"),
        ("{{ event.title }", "has no `}}`"),
    ],
)
def test_a_fault_of_a_template_is_said(template: str, fault: str) -> None:
    (said,) = template_faults(template)

    assert fault in said


def test_the_paths_of_a_template_are_known_before_it_is_used() -> None:
    assert template_faults("{{ a.b | oneline }} and {{c}}") == []
    assert template_paths("{{ a.b | oneline }} and {{c}}") == ("a.b", "c")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=3))
def test_no_template_and_no_payload_makes_it_fail(template: str, payload: dict[str, Any]) -> None:
    rendered = render_template(template, payload)

    assert isinstance(rendered, MissingValue) or len(rendered) <= TEXT_CHARS_MAX
    assert isinstance(template_faults(template), list)
