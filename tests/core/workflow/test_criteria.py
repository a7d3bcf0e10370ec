"""Criteria: what is taken, what is met, and how what is missing is said."""

import re
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.workflow import conditions
from interlock.core.workflow import criteria as c
from interlock.core.workflow.criteria import Criterion, Flaw, Issue, check, parse, requirements

FINDING: dict[str, Any] = {"properties": {"line": {"type": "integer"}}, "required": ["line"]}


def taken(value: Any) -> Criterion:
    parsed = parse(value)
    assert not isinstance(parsed, tuple), parsed
    return parsed


def flaws(value: Any, pointer: str = "") -> tuple[Flaw, ...]:
    parsed = parse(value, pointer)
    assert isinstance(parsed, tuple), f"{parsed} was taken"
    return parsed


def issues(value: Any, notes: str = "", *artifacts: Any) -> tuple[Issue, ...]:
    return check(taken(value), notes=notes, artifacts=artifacts)


def contains(value: str) -> dict[str, Any]:
    return {"type": "contains", "value": value}


def regex(pattern: str, flags: str = "") -> dict[str, Any]:
    return {"type": "regex", "pattern": pattern, "flags": flags}


def length(least: int | None = None, most: int | None = None) -> dict[str, Any]:
    return {"type": "length", "min": least, "max": most}


def schema(body: dict[str, Any]) -> dict[str, Any]:
    return {"type": "schema", "schema": body}


@pytest.mark.parametrize(
    ("rule", "notes", "artifacts"),
    [
        (contains("jwt"), "a jwt in the header", []),
        (regex(r"\b(401|unauthorized)\b", "i"), "Unauthorized", []),
        (regex("^two$", "m"), "one\ntwo\nthree", []),
        (regex("one.two", "s"), "one\ntwo", []),
        (length(3, 3), "äöü", []),
        (schema(FINDING), "", [{}, {"line": 1}]),
        (schema({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}, "$id": "http://x"}), "", [1]),
        (schema({"$schema": "https://json-schema.org/draft/2020-12/schema"}), "", [None]),
    ],
)
def test_an_output_that_meets_a_rule_has_no_issue(
    rule: Json, notes: str, artifacts: list[Json]
) -> None:
    assert issues(rule, notes, *artifacts) == ()


def test_a_text_that_is_missing_is_named() -> None:
    message, suggestion = 'The notes do not contain "jwt"', 'Write this in the notes: "jwt"'

    assert issues(contains("jwt"), "a token") == (Issue("contains", "", message, suggestion),)
    assert issues(contains("jwt"), "a JWT")[0].message == f"{message} with these capitals"


def test_a_pattern_that_is_not_found_is_shown() -> None:
    [issue] = issues(regex("^ok$", "im"), "no")

    assert issue.message == "Nothing in the notes matches /^ok$/im"
    [named] = issues({**regex("^Changelog:"), "message": "Begin with Changelog:"}, "no")
    assert named.message.startswith("Begin with Changelog: Nothing in")
    assert issue.suggestion == "Write something in the notes that matches /^ok$/im"


def test_notes_that_are_too_short_or_too_long_are_told_by_how_much() -> None:
    [short], [long] = issues(length(40, 50), "x" * 12), issues(length(40, 50), "x" * 53)

    assert short.message == "The notes are too short: 12 of at least 40 characters"
    assert short.suggestion == "Add 28 or more characters."
    assert long.message == "The notes are too long: 53 of at most 50 characters"
    assert long.suggestion == "Remove 3 or more characters."


def test_an_artifact_that_does_not_fit_is_told_where_and_why() -> None:
    [none], [one] = issues(schema(FINDING)), issues(schema(FINDING), "", {"line": "12"})
    [two] = issues(schema(FINDING), "", {}, {"line": 1.5})
    unmet = "does not satisfy the schema"

    assert none.message == "There is no artifact; one is wanted that satisfies the schema"
    assert none.suggestion.endswith(
        ' {"properties":{"line":{"type":"integer"}},"required":["line"]}'
    )
    assert one.message == f'The artifact {unmet} at /line: it is not of type "integer" (found "12")'
    assert two.message.startswith(
        f'The first of 2 artifacts {unmet}: "line" is a required property'
    )


def test_the_author_s_words_stand_before_ours() -> None:
    rule = {**contains("jwt"), "message": "Should return JWT token"}

    assert issues(rule)[0].message == 'Should return JWT token: The notes do not contain "jwt"'
    assert requirements(taken(rule)) == ('Should return JWT token (the notes contain "jwt")',)


def test_each_part_of_a_list_has_its_own_issue_and_its_own_place() -> None:
    found = issues([contains("a"), {"and": [length(1)]}])

    assert [issue.rule for issue in found] == ["contains", "length"]
    assert [issue.pointer for issue in found] == ["/and/0", "/and/1/and/0"]


def test_alternatives_make_one_issue_that_suggests_the_nearest() -> None:
    [issue] = issues({"or": [[contains("a"), contains("b")], length(5)]}, "xyz")

    assert issue.rule == "or"
    assert issue.message == (
        'None of the 2 alternatives is met: The notes do not contain "a"; nor: '
        "The notes are too short: 3 of at least 5 characters"
    )
    assert issue.suggestion == "Add 2 or more characters."


BUG = {"var": "task.kind", "equals": "bug"}


def test_a_rule_counts_only_where_its_condition_holds() -> None:
    wanted = taken({"or": [{**contains("cause"), "condition": BUG}, contains("ok")]})

    def found(kind: str, notes: str) -> tuple[Issue, ...]:
        return check(wanted, notes=notes, artifacts=(), context={"task": {"kind": kind}})

    assert found("bug", "the cause") == found("bug", "ok") == found("chore", "ok") == ()
    assert [issue.rule for issue in found("chore", "the cause")] == ["or"]
    assert requirements(taken({**contains("cause"), "condition": BUG})) == (
        'If `task.kind` is "bug": the notes contain "cause"',
    )


def test_a_condition_that_has_no_answer_is_an_issue_wherever_it_stands() -> None:
    rule = {**contains("a"), "condition": {"and": [{"var": "n", "gt": 1}]}}
    [issue] = check(taken({"not": [rule]}), notes="", artifacts=(), context={"n": [3]})

    assert issue.rule == "condition"
    assert issue.pointer == "/not/and/0/condition/and/0"
    assert issue.message.startswith("Whether this rule counts cannot be said: `n` is ")
    assert issue.suggestion == "Set `n` in the context to a value that can be compared."


def test_what_must_not_be_so_is_told_when_it_is() -> None:
    [issue] = issues({"not": contains("TODO")}, "TODO!")

    assert issue.rule == "not"
    assert issue.message == 'This is so and must not be: the notes contain "TODO"'
    assert issue.suggestion.startswith("Make a change, so that this is not so: ")


TEXTS = st.text("abAB 1", min_size=1, max_size=3)
SIZES = st.integers(1, 6)
TYPES = {"string": str, "integer": int, "object": dict}
RULES: st.SearchStrategy[Criterion] = st.one_of(
    st.builds(c.ContainsRule, TEXTS, st.none() | TEXTS),
    st.builds(c.RegexRule, TEXTS, st.sampled_from(["", "i", "ims"])),
    st.builds(c.LengthRule, SIZES, st.none()),
    st.builds(c.LengthRule, st.none(), SIZES),
    st.sampled_from(sorted(TYPES)).map(lambda name: c.SchemaRule({"type": name})),
)


ASKED = ['{"var": "x"}', '{"var": "x", "gt": 1}', '{"not": {"var": "x", "gt": 1}}']
CONDITIONAL = st.builds(c.ConditionalRule, st.sampled_from(ASKED).map(conditions.unpack), RULES)


def joins(parts: st.SearchStrategy[Criterion]) -> st.SearchStrategy[Criterion]:
    several = st.lists(parts, min_size=1, max_size=3).map(tuple)
    return st.one_of(st.builds(c.And, several), st.builds(c.Or, several), st.builds(c.Not, parts))


CRITERIA = st.recursive(RULES | CONDITIONAL, joins, max_leaves=8)
CONTEXTS: st.SearchStrategy[dict[str, Json]] = st.sampled_from([{}, {"x": 1}, {"x": 2}, {"x": [1]}])
ARTIFACTS = st.lists(st.sampled_from(["x", 1, {"a": 1}, None]), max_size=3)


def naive(
    criterion: Criterion, notes: str, artifacts: list[Json], context: dict[str, Json]
) -> bool | Literal["unknown"] | None:
    """Whether it is met; None if it does not count."""
    match criterion:
        case c.And(parts) | c.Or(parts):
            decides = isinstance(criterion, c.Or)
            found = [naive(part, notes, artifacts, context) for part in parts]
            if {*found} == {None}:
                return None
            return decides if decides in found else "unknown" if "unknown" in found else not decides
        case c.Not(part):
            found = naive(part, notes, artifacts, context)
            return not found if isinstance(found, bool) else found
        case c.ConditionalRule(condition, rule):
            answer = conditions.evaluate(condition, context)
            if not isinstance(answer, bool):
                return "unknown"
            return naive(rule, notes, artifacts, context) if answer else None
        case c.ContainsRule(value):
            return value in notes
        case c.RegexRule(pattern, flags):
            return bool(re.search(pattern, notes, re.IGNORECASE if "i" in flags else 0))
        case c.LengthRule(least, most):
            return (least or 0) <= len(notes) <= (most or len(notes))
        case c.SchemaRule(body):
            return any(isinstance(artifact, TYPES[body["type"]]) for artifact in artifacts)


@given(CRITERIA, st.text("abAB 1", max_size=8), ARTIFACTS, CONTEXTS)
def test_there_is_an_issue_exactly_when_a_naive_reader_says_no(
    criterion: Criterion, notes: str, artifacts: list[Json], context: dict[str, Json]
) -> None:
    found = check(criterion, notes=notes, artifacts=artifacts, context=context)
    answer = naive(criterion, notes, artifacts, context)

    assert (found == ()) == (answer is True or answer is None)
    assert ({issue.rule == "condition" for issue in found} == {True}) == (answer == "unknown")
    assert all(issue.message and issue.suggestion for issue in found)


@given(CRITERIA)
def test_criteria_come_back_from_their_one_form(criterion: Criterion) -> None:
    content = canonical.encode(c.to_json(criterion))

    assert parse(c.to_json(criterion)) == criterion
    assert c.unpack(content) == c.unpack(msgspec.Raw(content)) == criterion


def test_a_list_and_an_and_have_the_same_form() -> None:
    assert c.to_json(taken([contains("a")])) == c.to_json(taken({"and": [contains("a")]}))


@given(CRITERIA)
def test_what_is_demanded_is_told_beforehand_in_a_few_lines(criterion: Criterion) -> None:
    lines = requirements(criterion)

    assert 1 <= len(lines) <= 8
    assert all(line and "\n" not in line and len(line) <= 500 for line in lines)


def test_what_is_demanded_is_told_in_words() -> None:
    joined = [{"or": [contains("a"), regex("b+")]}, {"not": [contains("c"), contains("d")]}]
    wanted = [length(40, 400), *joined, schema({"type": "null"})]

    assert requirements(taken(wanted)) == (
        "The notes have at least 40 and at most 400 characters",
        'One of these: (the notes contain "a"; or something in the notes matches /b+/)',
        'This is not so: (all of these: (the notes contain "c"; and the notes contain "d"))',
        'An artifact satisfies the JSON Schema {"type":"null"}',
    )


def test_beyond_eight_lines_the_rest_is_counted() -> None:
    *seven, last = requirements(taken([contains(str(n)) for n in range(20)]))

    assert len(seven) == 7
    assert last == "And 13 more; a rejection names those that are not met"


@pytest.mark.parametrize(
    ("value", "pointer", "message"),
    [
        ({"type": "contains"}, "", "Object missing required field `value`"),
        (contains(""), "/value", "Expected `str` of length >= 1"),
        ({**contains("a"), "when": {}}, "", "Object contains unknown field `when`"),
        ({**contains("a"), "condition": {}}, "/condition", "wants `var`"),
        (contains("\ud800"), "/value", "the text has half of a surrogate"),
        (regex("a" * 1001), "/pattern", "Expected `str` of length <= 1000"),
        (regex("a", "g"), "/flags", "Expected `str` matching regex '^i?m?s?$'"),
        (regex("(?=a)b"), "/pattern", "cannot be searched for in linear time: invalid perl"),
        (length(), "", "wants `min` or `max`"),
        (length(3, 2), "", "no text has at least 3 and at most 2"),
        ({"type": "length", "min": True}, "/min", "Expected `int | null`, got `bool`"),
        (schema({"maximum": 1e20}), "/schema/maximum", "the integer is 2^53 or more"),
        ({"type": "schema", "schema": True}, "/schema", "Expected `object`, got `bool`"),
        ({"and": [contains("a")], "or": [contains("a")]}, "", "wants a `type`"),
        ({"type": "glob", "value": "*"}, "", "wants a `type`"),
        ({"or": []}, "", "wants a `type`"),
        ([], "", "wants a `type`"),
        ("notes", "", "wants a `type`"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(value: Json, pointer: str, message: str) -> None:
    [flaw] = flaws(value, "/here")

    assert flaw.pointer == f"/here{pointer}"
    assert flaw.message.startswith(message)


def test_all_flaws_are_told_at_once() -> None:
    wrong = [contains(""), {"not": regex("(")}, [contains("ok"), length()], 7]
    found = flaws({"or": [*wrong, schema({"type": "text"})]}, "/steps/0")

    places = ["/0/value", "/1/not/pattern", "/2/1", "/3", "/4/schema/type"]
    assert sorted(flaw.pointer for flaw in found) == [f"/steps/0/or{place}" for place in places]


def nested(depth: int) -> Json:
    value: Json = contains("x")
    for level in range(depth):
        value = {"not": value} if level % 2 else [value]
    return value


def test_sixteen_levels_are_taken_and_seventeen_are_not() -> None:
    assert parse(c.to_json(taken(nested(16)))) == taken(nested(16))
    assert flaws(nested(17))[0].message == "nested more than 16 deep"
    assert flaws(nested(100_000))[0].message == "nested more than 64 levels deep"


def test_a_hundred_rules_are_taken_and_one_more_is_not() -> None:
    assert requirements(taken([contains("x")] * 100))
    assert flaws([contains("x")] * 101) == (Flaw("", "more than 100 rules"),)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["((a{30}){30}){30}", r"\pL{99}", "a{0,1000}", r"(\PL{9}){9}"])
def test_a_pattern_that_would_cost_too_much_is_refused(pattern: str) -> None:
    patterns = [f"{pattern}{n}" for n in range(100)]

    assert flaws([regex(each) for each in patterns])
    assert flaws([{**length(1), "condition": {"var": "x", "matches": each}} for each in patterns])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)*$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+"])
def test_a_pattern_takes_linear_time_in_notes_and_in_artifacts(pattern: str) -> None:
    notes = "a" * 100_000 + "b"

    assert issues({"or": [regex(pattern), schema({"pattern": pattern})]}, notes, notes)


KEYS = st.sampled_from(["type", "value", "pattern", "schema", "and", "or", "not", "$ref", "min"])
WORDS = st.text("ab(.*\\$/#", max_size=4) | st.sampled_from(["contains", "regex", "schema"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_is_either_taken_or_refused_in_words(value: Json) -> None:
    parsed = parse(value)

    assert parsed
    assert isinstance(parsed, tuple) or parse(c.to_json(parsed)) == parsed
