"""Conditions: what is taken, what is answered, and what has no answer."""

import re
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import Json
from interlock.core.workflow import conditions as c
from interlock.core.workflow.conditions import (
    Condition,
    Flaw,
    UnusableValue,
    evaluate,
    look_up,
    parse,
)


def taken(value: Any) -> Condition:
    parsed = parse(value)
    assert not isinstance(parsed, tuple), parsed
    return parsed


def flaws(value: Any, pointer: str = "") -> tuple[Flaw, ...]:
    parsed = parse(value, pointer)
    assert isinstance(parsed, tuple), f"{parsed} was taken"
    return parsed


def answer(value: Any, **context: Json) -> bool | UnusableValue:
    return evaluate(taken(value), context)


def asked(operator: str, wanted: Any, var: str = "x") -> dict[str, Json]:
    return {"var": var, operator: wanted}


@pytest.mark.parametrize("value", [1, -0.5, "a", "false", "0", [0], {"k": None}, True])
def test_a_bare_variable_holds_when_it_is_something(value: Json) -> None:
    assert answer({"var": "x"}, x=value) is True


@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", [], {}])
def test_a_bare_variable_does_not_hold_when_it_is_nothing(value: Json) -> None:
    assert answer({"var": "x"}, x=value) is False
    assert answer({"var": "x"}) is False


@pytest.mark.parametrize(
    ("question", "value", "said"),
    [
        (asked("gt", 5), "b", '"b", and only a number can be asked whether it is more than 5. Set'),
        (asked("gt", 5), "m" * 90, f'"{"m" * 78}…, and only a number can be asked'),
        (asked("contains", "a"), 5, "5, and only a text or a list can be asked whether it cont"),
        (asked("startsWith", "a"), ["a"], "a list, and only a text can be asked whether it starts"),
        (asked("matches", "a"), {"a": 1}, "an object, and only a text can be asked whether it mat"),
    ],
)
def test_a_question_that_makes_no_sense_has_no_answer_and_that_is_not_a_no(
    question: dict[str, Json], value: Json, said: str
) -> None:
    trouble = answer(question, x=value)

    assert isinstance(trouble, UnusableValue)
    assert (trouble.var, trouble.pointer) == ("x", "")
    assert trouble.message.startswith(f"`x` is {said}")
    assert re.search(r"\. Set `x` to a (number|text|text or a list)\.$", trouble.message)
    assert answer({"not": question}, x=value) == UnusableValue("x", "/not", trouble.message)


YES: dict[str, Json] = {"var": "yes"}
NO: dict[str, Json] = {"var": "no"}
CONTEXT: dict[str, Json] = {
    "a": {"b": [{"c": 1}, "two"], "0": "zero", "length": 7},
    "name": "größe",
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b.0.c", 1),
        ("a.b.1", "two"),
        ("a.0", "zero"),
        ("a.length", 7),
        ("a.b.length", 2),
        ("name.length", 5),
    ],
)
def test_a_path_leads_to_a_value(path: str, value: Json) -> None:
    assert look_up(CONTEXT, path) == value
    assert look_up(MappingProxyType(CONTEXT), path) == value


IN_A = ["b.2", "b.00", "b.-1", "b.²", "b.c", "b.0.length", "b.length.length", "length.length"]


@pytest.mark.parametrize(
    "path", [*(f"a.{path}" for path in IN_A), "name.0", "none.x", "unset.x.y", "length"]
)
def test_a_path_that_leads_nowhere_leads_to_null(path: str) -> None:
    assert look_up(CONTEXT, path) is None
    assert look_up(CONTEXT, f"a.b.{'9' * 5_000}") is None


def test_a_condition_is_said_in_words() -> None:
    depth, rigor = asked("equals", "THOROUGH", "depth"), asked("gte", 5, "rigor")
    both = {"and": [depth, {"not": {"var": "done"}}]}

    assert c.describe(taken({"or": [depth, rigor]})) == (
        '`depth` is "THOROUGH" or `rigor` is at least 5'
    )
    assert c.describe(taken({"or": [both, rigor]})) == (
        '(`depth` is "THOROUGH" and not (`done` is set and not false, 0 or empty))'
        " or `rigor` is at least 5"
    )


def test_a_long_condition_is_cut_short() -> None:
    said = c.describe(taken({"or": [asked("equals", "x" * 1_000)] * 60}))

    assert said.startswith('`x` is "xxx')
    assert len(said) == 500
    assert said.endswith("…")


@pytest.mark.parametrize(
    ("value", "pointer", "message"),
    [
        ("x", "", "wants an object with `var`, or with one of `and`, `or`, `not`"),
        ({}, "", "wants `var`, or one of `and`, `or`, `not`"),
        ({"equals": 1}, "", "wants `var`, or one of"),
        (asked("equal", 1), "/equal", "`equal` is not known here; did you mean `equals`?"),
        (asked("EXISTS", 1), "/EXISTS", "`EXISTS` is not known here; did you mean `exists`?"),
        (asked("~/", 1), "/~0~1", "`~/` is not known here; use one of equals, not_equals, equ"),
        (asked("k" * 999, 1), f"/{'k' * 999}", f"`{'k' * 79}…` is not known here"),
        ({**asked("gt", 1), "lt": 5}, "", "has `gt`, `lt`; write a comparison for each and join"),
        (asked("gt", None), "/gt", "wants a number or a text"),
        (asked("exists", "yes"), "/exists", "wants true or false"),
        (asked("matches", "(?=a)"), "/matches", "cannot be searched for in linear time: invalid p"),
        (asked("matches", "a{900}b{900}"), "/matches", "the patterns of a condition may have 1500"),
        (asked("matches", "a" * 1001), "/matches", "has a text of more than 1000 characters"),
        (asked("equals", {"k" * 1001: 1}), "/equals", "has a text of more than 1000 characters"),
        (asked("equals", 2**53), "/equals", "the integer is 2^53 or more"),
        (asked("in", [1e20]), "/in/0", "the integer is 2^53 or more"),
        (asked("gt", float("nan")), "/gt", "nan is not JSON"),
        (asked("equals", "\ud800"), "/equals", "the text has half of a surrogate pair"),
        ({"and": []}, "/and", "wants a list that is not empty"),
        ({"or": {"var": "x"}}, "/or", "wants a list that is not empty"),
        ({"not": [{"var": "x"}]}, "/not", "wants an object with `var`"),
        ({"and": [YES], "or": [NO]}, "", "`and` must stand alone; join it to the rest with"),
        ({"not": YES, "var": ""}, "", "`not` must stand alone"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(value: Json, pointer: str, message: str) -> None:
    [flaw] = flaws(value, "/here")

    assert flaw.pointer == f"/here{pointer}"
    assert flaw.message.startswith(message)


@pytest.mark.parametrize("var", ["x", "_x", "a-b", "a.b.0.length", "a.1.2.3.4.5.6.7", "größe.0-1"])
def test_a_path_of_names_and_numbers_is_taken(var: str) -> None:
    assert taken({"var": var}) == c.TruthTest(var)


@pytest.mark.parametrize(
    "var", [5, None, "", "0.a", "a..b", ".a", "a.", "a b", "a\n", "{{a}}", "a.1.2.3.4.5.6.7.8"]
)
def test_any_other_path_is_refused(var: Json) -> None:
    assert flaws(asked("gt", None) | {"var": var}) == (
        Flaw(
            "/var",
            "is not the path of a variable: use names or numbers with dots between them, at most 8,"
            " the first a name",
        ),
        Flaw("/gt", "wants a number or a text"),
    )


def test_all_flaws_are_told_at_once() -> None:
    wrong: list[Json] = [
        {"var": "", "equal": 1, "gt": [], "in": 1},
        {"not": asked("matches", "(")},
        {"and": [YES, {"or": []}], "not": 7},
        asked("equals", "x" * 1001),
    ]
    found = flaws({"or": wrong}, "/steps/0")

    places = ["/0", "/0/equal", "/0/gt", "/0/in", "/0/var", "/1/not/matches"]
    places += ["/2", "/2/and/1/or", "/2/not", "/3/equals"]
    assert sorted(flaw.pointer for flaw in found) == [f"/steps/0/or{place}" for place in places]


def nested(depth: int) -> Json:
    value: Json = {"var": "x"}
    for level in range(depth):
        value = {"not": value} if level % 2 else {"or": [value]}
    return value


def test_sixteen_levels_are_taken_and_seventeen_are_not() -> None:
    assert evaluate(taken(nested(16)), {"x": 1}) is True
    assert parse(c.to_json(taken(nested(16)))) == taken(nested(16))
    assert flaws(nested(17))[0].message == "nested more than 16 deep"


def test_a_hundred_comparisons_are_taken_and_one_more_is_not() -> None:
    assert answer({"or": [NO] * 100}) is False
    assert flaws({"or": [NO] * 101}, "/x") == (Flaw("/x", "has more than 100 comparisons"),)


def loop() -> list[Any]:
    ring: list[Any] = []
    ring += [ring, ring]
    return ring


HOSTILE: dict[str, Any] = {
    "deep": nested(100_000),
    "deep value": asked("equals", nested(100_000)),
    "wide": {"or": [NO] * 1_000_000},
    "many keys": {f"equal{n}": 1 for n in range(8_000)},
    "many mistakes": {"or": [{"equal": 1} for _ in range(4_000)]},
    "many long texts": {"or": [asked("equals", "k" * 999)] * 100},
    "patterns": {"or": [asked("matches", f"a{{900}}{n}") for n in range(100)]},
    "wide patterns": {"or": [asked("matches", rf"\pL{{99}}{n}") for n in range(100)]},
    "broken patterns": {"or": [asked("matches", f"({n}") for n in range(100)]},
    "a ring": asked("equals", loop()),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_what_would_cost_too_much_is_refused(value: Json) -> None:
    found = flaws(value, "/x")

    assert 1 <= len(found) <= 20
    assert all(flaw.pointer.startswith("/x") and len(flaw.message) < 300 for flaw in found)


KEYS = st.sampled_from(["var", "equals", "gt", "in", "matches", "exists", "and", "or", "not", "~"])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab(.*\\1", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(ANYTHING)
def test_any_value_is_either_taken_or_refused_in_words(value: Json) -> None:
    parsed = parse(value)

    assert parsed
    if not isinstance(parsed, tuple):
        assert parse(c.to_json(parsed)) == parsed
        assert c.describe(parsed)
        evaluate(parsed, {"a": "b"})
