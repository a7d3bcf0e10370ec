"""Contracts: what is taken, what is a breach, and that doing as one is told leads to acceptance."""

import copy
import json
import re
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import Json
from interlock.core.workflow import contracts, packs
from interlock.core.workflow.contracts import (
    Breach,
    Contract,
    built_in_contract,
    check,
    instructions,
    local_contract,
)
from interlock.core.workflow.operators import clip
from tests.blanks import fill
from tests.core.workflow.workflow_samples import value_at

REMEDIES = "Send there: .|Put your own value there|Change it so that it has the form of the example"
Schema = dict[str, Any]
TICKET: Schema = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 5, "maxLength": 40, "description": "For people."},
        "size": {"enum": ["small", "large"]},
        "links": {"type": "array", "items": {"$ref": "#/$defs/link"}, "minItems": 1},
        "estimate": {"type": ["integer", "null"], "minimum": 1},
    },
    "required": ["title", "size", "links"],
    "$defs": {
        "link": {
            "properties": {"to": {"type": "string"}, "why": {"enum": ["blocks", "follows"]}},
            "required": ["to", "why"],
        }
    },
}
OWN: dict[str, tuple[Schema, Any]] = {
    "ticket": (
        TICKET,
        {
            "title": "<what is to be done>",
            "size": "small",
            "links": [{"to": "<ticket>", "why": "blocks"}],
        },
    ),
    "count": ({"properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"n": 3}),
    "closed": (
        {"properties": {"say": {"pattern": "^.{3,}$"}}, "additionalProperties": False},
        {"kind": "closed", "say": "<say it>"},
    ),
    "referring": (
        {
            "$ref": "#/$defs/it",
            "$defs": {"it": {"properties": {"a": {"const": True}}, "required": ["a"]}},
        },
        {"a": True},
    ),
    "either": (
        {"anyOf": [{"required": ["yes"]}, {"required": ["no"]}]},
        {"no": "<why not>"},
    ),
    "anything": ({}, {}),
}


def own(name: str) -> Contract:
    made = local_contract(name, *OWN[name], "")
    assert not isinstance(made, tuple), made
    return made


def pack(name: str) -> Contract:
    made = built_in_contract(name)
    assert made is not None
    return made


ALL: dict[str, Contract] = {
    **{name: pack(name) for name in packs.names()},
    **{name: own(name) for name in OWN},
}


def decoded(text: str) -> Any:
    return msgspec.json.decode(text)


def filled(example: str) -> Any:
    """The example with its blanks replaced."""
    return fill(decoded(example))


def repair(contract: Contract, sent: list[Any], found: tuple[Breach, ...]) -> list[Any]:
    """One who sends the example that every answer shows."""
    kept = [value for index, value in enumerate(sent) if index != found[0].index]
    assert all(breach.is_missing or re.match(REMEDIES, breach.suggestion) for breach in found)
    return [*kept, filled(contract.example)]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value but the whole."""
    here = cast("dict[Any, Any]", value if isinstance(value, dict) else {})
    here = dict(enumerate(cast("list[Any]", value))) if isinstance(value, list) else here
    below = [(*path, key) for key in here]
    return below + [place for one in below for place in paths(value[one[-1]], one)]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with something else at a place, or nothing."""
    value = copy.deepcopy(value)
    here = value
    for step in path[:-1]:
        here = here[step]
    if new is ...:
        del here[path[-1]]
    else:
        here[path[-1]] = new
    return value


def wrong_starts(contract: Contract) -> list[list[Any]]:
    """No artifact, the wrong kind, blanks left, and each place missing or wrong."""
    example, good = decoded(contract.example), filled(contract.example)
    spoilt = [changed(good, path, ...) for path in paths(good) if path != ("kind",)]
    spoilt += [changed(good, path, "no such thing") for path in paths(good) if path != ("kind",)]
    spoilt += [changed(good, path, {"a": [1]}) for path in paths(good) if path != ("kind",)]
    others: list[list[Any]] = [
        [],
        [{"kind": "other"}],
        [7, {**good, "kind": "wr.other"}],
        [example],
    ]
    return others + [[one] for one in spoilt]


@pytest.mark.parametrize("contract", ALL.values(), ids=ALL)
@pytest.mark.invariant("contract-is-repairable")
def test_one_who_does_what_is_suggested_is_accepted(contract: Contract) -> None:
    refused = 0
    for sent in wrong_starts(contract):
        found, _ = check(contract, sent)
        refused += bool(found)
        if found:
            assert check(contract, repair(contract, sent, found)) == ((), ())

    assert refused >= 3


@pytest.mark.parametrize("contract", ALL.values(), ids=ALL)
def test_words_of_the_example_that_were_not_replaced_are_a_breach(contract: Contract) -> None:
    blanks = re.findall(r"\"<(?:[^\"\\\\]|\\\\.)+>\"", contract.example)
    found, _ = check(contract, [decoded(contract.example)])

    assert sorted(breach.message.partition("it still says ")[2] for breach in found) == sorted(
        clip(json.loads(blank), 80) for blank in blanks
    )
    assert all(breach.suggestion == "Put your own value there." for breach in found)


def test_what_was_sent_and_what_is_needed_is_told() -> None:
    sent: list[Json] = [{"kind": "wr.gap"}, {"kind": "gap"}, {"kind": "gap"}, {"kind": 7}, "words"]

    [breach], _ = check(pack("loop_control"), sent)
    [none], _ = check(pack("loop_control"), [])

    need = "An artifact of kind `loop_control` is needed; sent: "
    assert breach == Breach(
        is_missing=True,
        index=None,
        pointer="/output/artifacts",
        message=f"{need}`wr.gap`, `gap`, 2 without a kind",
        suggestion="Add it to `output.artifacts`, in the form that this answer shows.",
    )
    assert none.message == f"{need}none"


def test_the_place_is_that_in_the_call_and_the_first_of_the_kind_counts() -> None:
    bad = {"kind": "wr.gap", "severity": "huge", "summary": "x"}
    sent: list[Any] = [{"kind": "other"}, bad, {"kind": "gap"}]
    [breach], _ = check(pack("gap"), sent)

    assert breach.index == 1
    assert breach.pointer == "/output/artifacts/1/severity"
    assert breach.message == (
        "`/severity` of the artifact of kind `gap`: "
        'it is not one of "critical", "info", "warning" (found "huge")'
    )
    assert breach.suggestion == 'Send there: one of "critical", "info", "warning".'


def test_of_several_of_a_kind_one_that_passes_is_enough() -> None:
    good = filled(pack("gap").example)

    assert check(pack("gap"), [{"kind": "gap"}, decoded(pack("gap").example), good]) == ((), ())


def test_what_is_not_required_may_be_left_out_but_must_be_right() -> None:
    contract = msgspec.structs.replace(pack("gap"), is_required=False)

    assert check(contract, [{"kind": "other"}]) == ((), ())
    assert check(contract, [{"kind": "gap"}])[0]
    assert instructions(contract).startswith("If it applies, submit this artifact")


def test_a_field_that_nobody_reads_is_a_warning_and_no_breach() -> None:
    good = {**filled(pack("gap").example), "sevrity": "high"}

    assert check(pack("gap"), [0, good]) == (
        (),
        ("`/output/artifacts/1/sevrity` is not a field of `gap`: it is kept and not read",),
    )


LEAVES: st.SearchStrategy[Json] = st.none() | st.integers(0, 1) | st.text("a<>", max_size=3)
VALUES: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~"), inner, max_size=3),
    max_leaves=4,
)


@given(st.sampled_from(sorted(ALL)), st.data())
def test_a_changed_example_passes_or_each_breach_has_a_place(
    name: str, data: st.DataObject
) -> None:
    contract = ALL[name]
    value: Any = filled(contract.example)
    for _ in range(data.draw(st.integers(1, 3))):
        where = [path for path in paths(value) if path != ("kind",)] or [("more",)]
        path = data.draw(st.sampled_from(where))
        new = data.draw(VALUES | st.just(...) if path in paths(value) else VALUES)
        value = changed(value, path, copy.deepcopy(new))

    found, _ = check(contract, [None, value])

    assert contracts.schemas.validator(decoded(contract.schema))(value) == (found == ())
    for breach in found:
        parent, _, _ = breach.pointer.rpartition("/")
        assert isinstance(value_at({"output": {"artifacts": [None, value]}}, parent), dict | list)
        assert breach.message
        assert breach.suggestion


@pytest.mark.parametrize("contract", ALL.values(), ids=ALL)
def test_the_instructions_show_the_example_in_one_line_and_the_form_of_what_it_leaves_out(
    contract: Contract,
) -> None:
    shown, *more = instructions(contract).splitlines()
    is_told = bool(more) and more[-1].startswith("It may also have: ")
    optional: dict[str, Any] = (
        decoded(more.pop().removeprefix("It may also have: ")) if is_told else {}
    )

    example = decoded(shown[shown.index("{") :])
    assert example == decoded(contract.example)
    assert example["kind"] == contract.name
    assert more == [rule.rule for rule in contract.rules]
    assert {*example, *optional} >= set(decoded(contract.schema)["properties"])
    whole = fill({**example, **optional})
    assert check(contract, [whole]) == ((), ())


def test_the_instructions_tell_the_limits_in_the_blanks() -> None:
    assert (
        instructions(own("ticket"))
        == """\
Submit this artifact, with your own values in place of each <…>: {"kind":"ticket","links":\
[{"to":"<ticket>","why":"<blocks | follows>"}],"size":"<small | large>","title":\
"<what is to be done, 5 to 40 characters>"}
It may also have: {"estimate":"<whole number, at least 1>"}"""
    )


def test_the_kind_is_demanded_of_a_contract_of_one_s_own() -> None:
    assert decoded(own("count").example) == {"kind": "count", "n": "<whole number, like 3>"}
    assert check(own("count"), [{"kind": "count", "n": 1}]) == ((), ())
    assert check(own("closed"), [{"kind": "closed", "say": "yes"}]) == ((), ())
    assert check(own("count"), [{"n": 1}])[0][0].is_missing
    assert check(own("count"), [{"kind": "wr.count", "n": 1}])[0][0].pointer.endswith("/0/kind")


@pytest.mark.timeout(20)
def test_a_large_artifact_is_judged_in_little_time() -> None:
    good = filled(pack("review_verdict").example)
    large: Json = [{"severity": "no", "summary": "x" * 20} for _ in range(5_000)]

    [breach], _ = check(pack("review_verdict"), [{**good, "findings": large}] * 20)

    assert breach.pointer == "/output/artifacts/0/findings/0/severity"
    assert "critical" in breach.message
