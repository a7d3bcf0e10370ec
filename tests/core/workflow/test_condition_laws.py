"""The laws of conditions: properties that hold for every condition and every context."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.workflow import conditions as c
from interlock.core.workflow.conditions import UnusableValue, evaluate, look_up, parse
from interlock.core.workflow.operators import OPERATORS, compare, expected_operand
from tests.core.workflow.test_conditions import taken

VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 1, 1.5, "", "5", "a", "A", "TRUE", [], ["a"], [1, "5"], {}, {"k": True}]
)
VARS = st.sampled_from(["x", "y.k", "y.length", "z.0"])
CONTEXTS = st.fixed_dictionaries({}, optional={"x": VALUES, "y": VALUES, "z": VALUES})


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Json]:
    if draw(st.integers(0, 9)) == 0:
        return {"var": draw(VARS)}
    operator = draw(st.sampled_from(OPERATORS))
    kinds = VALUES | st.lists(VALUES, max_size=3) | st.booleans()
    wanted = kinds.filter(lambda value: expected_operand(operator, value) is None)
    return {"var": draw(VARS), operator: draw(wanted)}


def joined(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"and": several}),
        st.fixed_dictionaries({"or": several}),
        st.fixed_dictionaries({"not": parts}),
    )


CONDITIONS: st.SearchStrategy[Any] = st.recursive(comparisons(), joined, max_leaves=8)


class NoAnswer(Exception):
    pass


def naive(condition: Any, context: dict[str, Json]) -> bool:
    match condition:
        case {"and": parts}:
            return all(naive(part, context) for part in parts)
        case {"or": parts}:
            return any(naive(part, context) for part in parts)
        case {"not": part}:
            return not naive(part, context)
        case {"var": var, **rest}:
            value = look_up(context, var)
            if not rest:
                return value not in (None, False, 0, "", [], {})
            [(operator, wanted)] = rest.items()
            if (found := compare(value, operator, wanted)) is None:
                raise NoAnswer(var)
            return found
        case _:
            raise AssertionError


@given(CONDITIONS, CONTEXTS)
def test_the_answer_is_that_of_a_naive_reader(written: Json, context: dict[str, Json]) -> None:
    found = evaluate(taken(written), context)

    if not isinstance(found, UnusableValue):
        assert found is naive(written, context)
    else:
        with pytest.raises(NoAnswer, match=f"^{found.var}$"):
            naive(written, context)
        here: Any = written
        for step in found.pointer.split("/")[1:]:
            here = here[int(step)] if step.isdigit() else here[step]
        assert here["var"] == found.var


@given(CONDITIONS)
def test_a_condition_comes_back_from_its_one_form(written: Json) -> None:
    condition = taken(written)
    content = canonical.encode(c.to_json(condition))

    assert content == canonical.encode(written)
    for again in (parse(c.to_json(condition)), c.unpack(content), c.unpack(content.decode())):
        assert not isinstance(again, tuple)
        assert again == condition
        assert canonical.encode(c.to_json(again)) == content  # to which true is not 1


@given(CONDITIONS)
def test_every_variable_is_named_once_in_the_order_in_which_they_are_read(written: Json) -> None:
    read = re.findall(r'"var": "([^"]+)"', json.dumps(written))

    assert c.variables(taken(written)) == tuple(dict.fromkeys(read))
