"""Where runs go: step for step where a naive model with real loops goes, and why."""

from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.canonical import Json
from interlock.core.session.judge import CurrentStep
from interlock.core.workflow import conditions, interpret, positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow, decode_workflow
from interlock.core.workflow.interpret import Context, Destination, Impasse
from interlock.core.workflow.positions import Position
from tests.core.call_counts import count_calls
from tests.core.session.test_judge import judgement
from tests.core.workflow.naive_interpreter import Deed, Model, Odd, written_out
from tests.core.workflow.workflow_samples import (
    WALKED,
    Doc,
    call,
    compiled,
    exists,
    library,
    loop,
    rendered,
    routine,
    step,
    walks,
    workflow,
)
from tests.effort import scale

TRACED_MAX = 100
SANE: Doc = {"a": 1, "b": 1, "n": 1, "xs": [[1]]}


def bound(parts: list[Doc]) -> int:
    """How many steps there can be at most."""
    return sum(
        part.get("loop", {}).get("maxIterations", 1) * bound(part["body"]) if "body" in part else 1
        for part in parts
    )


def loop_names(parts: list[Doc]) -> list[str]:
    inside = [name for part in parts for name in loop_names(part.get("body", []))]
    return [*(part["id"] for part in parts if "body" in part), *inside, "c1", "c2", "c3"]


values = st.sampled_from((0, 1, 2, "x", [1], None))
lists = st.lists(st.sampled_from((0, 1, "x", [1], [0, 1, 2])), max_size=4) | st.sampled_from(
    (None, "x")
)
settings_of = st.fixed_dictionaries(
    {},
    optional={
        "a": values,
        "b": values,
        "n": st.sampled_from((0, 1, 2, 4, "2", "x", None)),
        "xs": lists,
    },
)


def deeds(document: Doc) -> st.SearchStrategy[Deed]:
    names = st.none() | st.sampled_from(loop_names(document["steps"]))
    return st.builds(Deed, settings_of, st.sampled_from((None, "stop", "continue")), names)


def again(position: Position) -> Position:
    return msgspec.json.decode(msgspec.json.encode(position), type=Position)


class Run:
    """A run of the real thing, of which nothing is left between two steps but stored bytes."""

    def __init__(self, document: Doc) -> None:
        pinned = compiled(document, library(WALKED)).pinned
        self._workflow, self._stored = pinned.workflow, decode_workflow(pinned.content)
        self.context: Doc = {}
        self.position: Position | None = None
        self.asked: list[Json] = []

    def after(self, deed: Deed) -> Destination | Impasse:
        context = {**self.context, **deed.sets}
        self.asked = []
        found = self._go(self._workflow, self.position, context, deed)
        asked, self.asked = self.asked, []
        stored = None if self.position is None else again(self.position)
        assert self._go(self._stored, stored, context, deed) == found
        self.asked = asked
        if isinstance(found, Destination):
            self.context, self.position = context, found.position
            assert positions.is_position(self._workflow, found.position)
            assert positions.step_at(self._workflow, found.position) == found.step
        return found

    def seen(self) -> Doc:
        assert self.position is not None
        return positions.scope(self._workflow, self.position, self.context)

    def _go(
        self, workflow: CompiledWorkflow, position: Position | None, context: Doc, deed: Deed
    ) -> Destination | Impasse:
        evaluate = conditions.evaluate

        def noting(asked: Any, context: Context, pointer: str = "", **how: bool) -> Any:
            if not pointer:  # the parts of a condition have one
                self.asked.append(conditions.to_json(asked))
            return evaluate(asked, context, pointer, **how)

        with patch.object(conditions, "evaluate", noting):
            if position is None:
                return interpret.begin(workflow, context)
            return interpret.continue_from(workflow, position, context, deed.control)


def assert_same(
    found: Destination | Impasse, expected: str | Odd | None, run: Run, model: Model
) -> None:
    assert run.asked == model.asked, "each condition is asked once, on arrival, and no other"
    if isinstance(found, Impasse) or isinstance(expected, Odd):
        assert isinstance(found, Impasse)
        assert isinstance(expected, Odd)
        assert found.about == expected.about
        assert found.pointer == expected.pointer
        return
    assert (found.step.id if found.step else None) == expected
    traced = [(entry.what, entry.about) for entry in found.trace]
    if (more := len(model.log) - TRACED_MAX) > 0:
        assert (found.trace[-1].what, found.trace[-1].why) == ("left_out", f"{more} more decisions")
        traced.pop()
    assert traced == model.log[:TRACED_MAX]
    assert all(entry.why for entry in found.trace), "every decision has a reason"
    assert [one.id for one in found.bounded_loops] == model.bounded
    passed_by = [about for what, about in model.log if what in ("skipped", "loop_skipped")]
    assert [one.part.id for one in found.skipped] == list(dict.fromkeys(passed_by))
    if found.step:
        assert run.seen() == model.seen(model.passes)


@pytest.mark.invariant("run-follows-the-model")
@settings(max_examples=scale(400))
@given(walks(), st.data())
def test_a_run_goes_where_the_naive_model_goes(document: Doc, data: st.DataObject) -> None:
    run, model = Run(document), Model(document)
    hand_in = deeds(document)
    deed, steps = Deed(data.draw(settings_of)), 0
    while True:
        found, expected = run.after(deed), model.after(deed)
        assert_same(found, expected, run, model)
        if isinstance(found, Impasse):
            if deed.sets == SANE:
                break  # an item of a list is no list, say: this workflow cannot go on
            deed = deed._replace(sets=SANE)
            continue
        if found.step is None:
            break
        steps += 1
        assert steps <= bound(written_out(document["steps"], "/steps"))
        # After a while the agent has nothing more to say; the bounds end the run all the same.
        deed = data.draw(hand_in) if steps < 8 else NOTHING


def begun(document: Doc, **context: Json) -> Destination | Impasse:
    return interpret.begin(compiled(document).pinned.workflow, {"goal": "g", **context})


NOTHING = Deed({})
TWICE = (step("a"), step("b", outputContract={"contractRef": "loop_control"}))


BAD: Doc = {"not": {"var": "x", "gt": 1}}
BESIDE: Doc = {"id": "p", "type": "parallel", "title": "P", "synthesis": {"prompt": "Join."}}


@pytest.mark.parametrize(
    "document",
    [
        workflow(step(runCondition=BAD)),
        workflow(step(requireConfirmation=BAD)),
        workflow(loop("l", {"type": "for", "count": 1}, step(runCondition=BAD))),
        workflow(loop("l", {"type": "for", "count": 1}, step(), runCondition=BAD)),
        workflow(loop("l", {"type": "for", "count": "x"}, step())),
        workflow(loop("l", {"type": "forEach", "items": "x"}, step())),
        workflow({**BESIDE, "parallelDelegations": [{"goal": "G"}], "runCondition": BAD}),
        workflow(loop("l", {"type": "until", "condition": BAD}, step())),
        workflow(
            loop(
                "l",
                {
                    "type": "while",
                    "conditionSource": {"kind": "context_variable", "condition": BAD},
                },
                step(),
            )
        ),
        workflow(call("c", "r")),
        workflow(call("c", "r", runCondition={"var": "y"})),
        workflow(step(promptFragments=[{"id": "f", "text": "F", "when": BAD}])),
        workflow({**BESIDE, "parallelDelegations": [{"goal": "G", "runCondition": BAD}]}),
    ],
)
def test_what_cannot_be_decided_stops_the_run_and_says_where_in_the_file(document: Doc) -> None:
    """`x` is a text: neither more nor less than a number, no list and no number."""
    known = library(routine("r", step(runCondition=BAD)))
    pinned = compiled(document, known).pinned
    context: Context = {"goal": "g", "x": "many", "y": True}

    found = interpret.begin(pinned.workflow, context)
    if isinstance(found, Destination) and found.step:
        found = rendered(pinned.workflow, found.step, found.position, context=context)

    assert isinstance(found, Impasse), "trouble is not a no"
    assert found.var == "x"
    assert "`x`" in found.message
    assert exists(document, found.pointer), found.pointer


@pytest.mark.parametrize("n", ["x", "", "²", -1, 1.5, True, None, [1], {"n": 1}])
def test_a_count_that_is_no_whole_number_stops_the_run(n: Json) -> None:
    found = begun(workflow(loop("l", {"type": "for", "count": "n"}, step())), n=n)

    assert isinstance(found, Impasse)


def test_a_count_of_thousands_of_digits_stops_the_run_or_meets_the_bound() -> None:
    document = workflow(loop("l", {"type": "for", "count": "n", "maxIterations": 3}, step()))
    endless = begun(document, n="9" * 5_000)

    assert isinstance(endless, Impasse)
    assert (endless.var, endless.pointer) == ("n", "/steps/0/loop/count")
    assert isinstance(begun(document, n="9" * 10), Impasse)
    for n in ("9" * 9, 2**53 - 1):
        passes = begun(document, n=n)
        assert isinstance(passes, Destination)
        assert len(passes.position) == 2, "it is in the loop, which the bound ends"


def test_a_long_way_is_told_as_far_as_there_is_room_and_then_counted() -> None:
    skipped = (step(f"s{n}", runCondition={"var": "x"}) for n in range(149))
    found = begun(workflow(*skipped, step("a")))

    assert isinstance(found, Destination)
    assert [entry.what for entry in found.trace] == [*["skipped"] * TRACED_MAX, "left_out"]
    assert found.trace[-1].why == "50 more decisions"


def over_nothing(condition: Doc) -> Doc:
    rule: Doc = {"type": "for", "count": 1_000, "maxIterations": 1_000}
    return workflow(loop("o", rule, loop("i", rule, step(runCondition=condition))))


@pytest.mark.slow
def test_loops_over_nothing_end_soon_whatever_they_ask() -> None:
    long = [{"var": "x", "not_equals": f"{n}{'q' * 600}"} for n in range(20)]
    for asked in ({"var": "y"}, {"and": [*long, {"var": "y"}]}):
        document = over_nothing(asked)
        found = begun(document, x="a")

        assert isinstance(found, Impasse)
        assert exists(document, found.pointer)
        assert count_calls(partial(begun, document, x="a")) < 2_000_000


@pytest.mark.parametrize("names", [{}, {"itemVar": "inner"}])
def test_a_loop_over_a_part_of_an_outer_item_sees_its_items(names: Doc) -> None:
    inner = loop("i", {"type": "forEach", "items": "currentItem.parts", **names}, step())
    run = Run(workflow(loop("o", {"type": "forEach", "items": "xs"}, inner)))

    found = run.after(Deed({"xs": [{"parts": ["p", "q"]}]}))
    assert isinstance(found, Destination)
    assert run.seen()[names.get("itemVar", "currentItem")] == "p"
    found = run.after(NOTHING)
    assert isinstance(found, Destination)
    assert run.seen()[names.get("itemVar", "currentItem")] == "q"


@pytest.mark.parametrize(
    ("around", "named"),
    [
        ("for", {}),
        ("for", {"loopId": "l"}),
        ("group", {}),
        ("group", {"loopId": "l"}),
        ("while", {"loopId": "l"}),
    ],
)
def test_the_step_before_a_loop_may_decide_about_it_wherever_it_stands(
    around: str, named: Doc
) -> None:
    """Otherwise nothing that it could submit is accepted."""
    owes = step("s", outputContract={"contractRef": "loop_control"})
    behind = loop("l", {"type": "while"}, *TWICE)
    rule: Doc = {"type": "for", "count": 1} if around == "for" else {"type": "while"}
    document = workflow(loop("f", rule, owes, behind))
    if around == "group":
        document = workflow(call("c", "r", runCondition={"var": "x"}), behind)
    found = compiled(document, library(routine("r", step("t"), owes))).pinned.workflow
    context: Context = {"goal": "g", "x": 1}
    moved = interpret.begin(found, context)
    while isinstance(moved, Destination) and moved.step and moved.step.contract is None:
        moved = interpret.continue_from(found, moved.position, context)
    assert isinstance(moved, Destination)
    assert moved.step
    at = CurrentStep(found, moved.position, moved.step, context)
    stop = {"kind": "loop_control", "decision": "stop", **named}

    assert judgement(at, stop).blockers == ()
