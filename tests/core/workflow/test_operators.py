"""Operators: what each answers, what it refuses, and how it is said."""

import pytest

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.workflow.operators import (
    Operator,
    compare,
    expected_operand,
    instruction_count,
    phrase,
    required_variable_kind,
)


@pytest.mark.parametrize(
    ("operator", "value", "wanted", "expected"),
    [
        ("equals", "Small", "SMALL", True),
        ("equals", "STRASSE", "straße", True),
        ("equals", "5", 5, True),
        ("equals", "5.0", "5", True),
        ("equals", "5e0", 5, True),
        ("equals", "007", 7, False),
        ("equals", " 5", 5, False),
        ("equals", "\u0665", 5, False),
        ("equals", "TRUE", True, True),
        ("equals", "false", True, False),
        ("equals", True, 1, False),
        ("equals", "true", 1, False),
        ("equals", "1", True, False),
        ("equals", 0, False, False),
        ("equals", None, None, True),
        ("equals", None, False, False),
        ("equals", "", None, False),
        ("equals", None, "", False),
        ("equals", ["A"], ["a"], False),
        ("equals", [1, {"k": True}], [1.0, {"k": True}], True),
        ("equals", [True], [1], False),
        ("equals", {"k": 1}, {"k": True}, False),
        ("equals", {"k": 1}, {"k": 1, "l": 2}, False),
        ("equals", [1], [1, 2], False),
        ("equals", "9007199254740993", "9007199254740992", False),
        ("equals", "1e999", "2e999", False),
        ("equals", "1" * 5_000, 1, False),
        ("not_equals", "Small", "SMALL", False),
        ("not_equals", None, "Small", True),
        ("not_equals", None, None, False),
        ("equalsExactly", "Small", "SMALL", False),
        ("equalsExactly", "5", 5, False),
        ("equalsExactly", 1.0, 1, True),
        ("equalsExactly", True, 1, False),
        ("equalsExactly", "true", True, False),
        ("equalsExactly", None, None, True),
        ("gt", None, 0, False),
        ("gte", None, "a", False),
        ("contains", None, "", False),
        ("matches", None, "", False),
        ("in", None, [0, "", False], False),
        ("gt", 6, 5, True),
        ("gt", 5, 5, False),
        ("gt", "10", "9", True),
        ("gt", "10", 9.5, True),
        ("gte", 5, "5", True),
        ("lt", "apple", "Banana", True),
        ("lt", "B", "a", False),
        ("lte", "B", "b", True),
        ("lte", -1, 0, True),
        ("lt", 5, 5, False),
        ("contains", "Needs a REVIEW", "review", True),
        ("contains", "abc", "d", False),
        ("contains", ["Web", "db"], "WEB", True),
        ("contains", [1, "5"], 5, True),
        ("contains", [True], 1, False),
        ("contains", ["ab"], "a", False),
        ("startsWith", "Feature/x", "FEAture", True),
        ("startsWith", "x-feature", "feature", False),
        ("endsWith", "a.Py", ".pY", True),
        ("endsWith", ".py.txt", ".py", False),
        ("matches", "abc-12", r"[a-z]+-\d\d", True),
        ("matches", "ABC", "b", False),
        ("matches", "ABC", "(?i)b", True),
        ("matches", "größe", "^gr..e$", True),
        ("in", "b", ["A", "B"], True),
        ("in", "5", [4, 5], True),
        ("in", 1, [True], False),
        ("in", None, ["a", None], True),
        ("in", "a", [], False),
        ("exists", 0, True, True),
        ("exists", None, True, False),
        ("exists", None, False, True),
        ("exists", "", False, False),
    ],
)
def test_a_comparison_is_answered(
    operator: Operator,
    value: Json,
    wanted: Json,
    expected: bool,  # noqa: FBT001
) -> None:
    assert compare(value, operator, wanted) is expected


@pytest.mark.parametrize(
    ("operator", "value", "wanted", "needed"),
    [
        ("gt", "many", 5, "a number"),
        ("gte", True, 1, "a number"),
        ("lt", [1], "5", "a number"),
        ("lte", {}, 5, "a number"),
        ("lt", 5, "b", "a text that is no number"),
        ("lt", "5", "b", "a text that is no number"),
        ("gt", True, "b", "a text that is no number"),
        ("contains", 5, "5", "a text or a list"),
        ("contains", {"a": 1}, "a", "a text or a list"),
        ("contains", "a5", 5, "a list"),
        ("startsWith", 5, "a", "a text"),
        ("endsWith", False, "f", "a text"),
        ("matches", ["a"], "a", "a text"),
    ],
)
def test_a_question_that_makes_no_sense_has_no_answer_and_it_is_known_what_would_have(
    operator: Operator, value: Json, wanted: Json, needed: str
) -> None:
    assert compare(value, operator, wanted) is None
    assert required_variable_kind(operator, wanted) == needed


@pytest.mark.parametrize(
    ("operator", "value", "instead"),
    [
        ("gt", None, "a number or a text"),
        ("lte", True, "a number or a text"),
        ("startsWith", 5, "a text"),
        ("matches", None, "a text"),
        ("in", "a", "a list"),
        ("exists", 1, "true or false"),
        ("exists", "true", "true or false"),
    ],
)
def test_an_operator_says_what_it_wants_instead(
    operator: Operator, value: Json, instead: str
) -> None:
    assert expected_operand(operator, value) == instead


@pytest.mark.parametrize(
    ("operator", "wanted", "said"),
    [
        ("equals", "THOROUGH", 'is "THOROUGH"'),
        ("not_equals", None, "is not null"),
        ("equalsExactly", [1], "is exactly [1]"),
        ("gt", 5, "is more than 5"),
        ("gte", 5, "is at least 5"),
        ("lt", "b", 'is less than "b"'),
        ("lte", 1.5, "is at most 1.5"),
        ("contains", "ä\n", 'contains "ä\\n"'),
        ("startsWith", "a", 'starts with "a"'),
        ("endsWith", "a", 'ends with "a"'),
        ("matches", r"\d+", r"matches /\d+/"),
        ("matches", "a\nb", r'matches "a\nb"'),
        ("in", ["a", 5, None], 'is one of "a", 5, null'),
        ("in", [], "is one of nothing"),
        ("exists", True, "is set"),
        ("exists", False, "is not set"),
    ],
)
def test_a_question_is_said_in_words(operator: Operator, wanted: Json, said: str) -> None:
    assert phrase(operator, wanted) == said


def test_a_long_list_is_cut_short() -> None:
    items: list[Json] = ["x" * 900] * 50
    said = phrase("in", items)

    assert said.startswith('is one of "xxx')
    assert said.endswith("…")
    assert len(said) == len("is one of ") + 500


def test_a_pattern_is_weighed_or_refused_with_the_reason() -> None:
    few, many = instruction_count("abc"), instruction_count("a{900}")

    assert isinstance(few, int)
    assert isinstance(many, int)
    assert few < 10
    assert many > 900
    assert instruction_count("(") == "missing ): ("
    assert instruction_count("(?=a)b") == "invalid perl operator: (?="
    assert instruction_count(r"(a)\1") == "invalid escape sequence: \\1"
    assert instruction_count(r"\pL{99}") == "pattern too large - compile failed"


def test_a_deep_value_is_compared_without_end_of_stack() -> None:
    deep: Json = 1
    for _ in range(canonical.DEPTH_MAX):
        deep = [deep]
    deeper: Json = deep
    for _ in range(100_000):
        deeper = [deeper]

    assert compare(deep, "equals", deep) is True
    assert compare(deeper, "equals", deep) is False
