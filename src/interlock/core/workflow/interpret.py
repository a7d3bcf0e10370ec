"""Where a run stands in its workflow, and where it goes from there. Values in, values out.

A position is a frame for each block that the run is in: the steps of the workflow, then the body of
each loop around the pending step. It is all that is remembered, so going on from a stored position
is the same as never having stopped. Conditions are looked at once, on arrival; loops decide where a
pass begins and nowhere else.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import conditions
from interlock.core.workflow.compiled import (
    CompiledLoop,
    CompiledPart,
    CompiledStep,
    CompiledWorkflow,
)
from interlock.core.workflow.conditions import UnusableValue
from interlock.core.workflow.packs import LoopControlArtifact

DECISIONS_MAX = 5_000  # in one go: a file may loop over nothing a thousand times a thousand times
_DIGITS_MAX = 9  # of a count that is written as text
IN_ORDER = "next in order"
_NOTHING_LEFT = "no step is left"
_ENTRIES_MAX = 100  # of a trace; what is left out is counted

Context: TypeAlias = Mapping[str, Json]


class Frame(msgspec.Struct, frozen=True, array_like=True):
    index: int
    """Which part of the block; behind the last one where the block is done."""
    iteration: int = 0
    """The pass of the loop at `index`, counted from 1; 0 where no loop is there."""
    stops: bool = False
    """The agent has said that this pass is the last."""


Position: TypeAlias = tuple[Frame, ...]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was decided, and why."""

    what: Literal[
        "skipped",
        "chosen",
        "loop_entered",
        "loop_skipped",
        "pass_begun",
        "loop_ended",
        "loop_bounded",
        "complete",
        "left_out",
        "branched",
        "blocked",
        "passed",
        "approval",
        "fragment_given",
        "fragment_left_out",
    ]
    about: str
    """The step or loop, by id."""
    why: str = ""


class Destination(msgspec.Struct, frozen=True):
    position: Position
    step: CompiledStep | None
    """The step that is pending there; none where the run is complete."""
    trace: tuple[Entry, ...] = ()
    bounded_loops: tuple[CompiledLoop, ...] = ()
    """Loops that ended because of their bound and not because they were done."""


class Impasse(msgspec.Struct, frozen=True):
    """A decision that cannot be made. The run stays where it is."""

    about: str
    pointer: str
    """Where in the workflow."""
    var: str
    message: str


class EnclosingLoop(msgspec.Struct, frozen=True):
    """A loop that a position is in, and the pass it is at."""

    loop: CompiledLoop
    iteration: int


def begin(workflow: CompiledWorkflow, context: Context) -> Destination | Impasse:
    """The first step of a run."""
    return _StepSearch(workflow, (Frame(0),), context, None).find_next_step()


def continue_from(
    workflow: CompiledWorkflow,
    position: Position,
    context: Context,
    *controls: LoopControlArtifact | None,
) -> Destination | Impasse:
    """Where the run goes when the step at `position` was accepted, with what it decided."""
    loops = enclosing_loops(workflow, position)
    frames = list(position)
    beforehand: LoopControlArtifact | None = None
    for control in controls:
        target = targeted_loop_index(loops, control) if control else None
        if control and target is None:
            beforehand = control
        elif control and target is not None:
            stops = control.decision == "stop"
            frames[target] = msgspec.structs.replace(frames[target], stops=stops)
    frames[-1] = Frame(frames[-1].index + 1)
    return _StepSearch(workflow, tuple(frames), context, beforehand).find_next_step()


def is_plain_trace(trace: tuple[Entry, ...]) -> bool:
    """Whether it says no more than that the next step in order came next."""
    return len(trace) == 1 and trace[0].why in (IN_ORDER, _NOTHING_LEFT)


def is_position(workflow: CompiledWorkflow, position: Position) -> bool:
    """Whether a run of this workflow can stand there: for positions that came from elsewhere."""
    block = workflow.steps
    for depth, frame in enumerate(position, start=1):
        is_last = depth == len(position)
        if not 0 <= frame.index < len(block):
            return is_last and depth == 1 and frame.index == len(block)
        part = block[frame.index]
        if is_last or isinstance(part, CompiledStep):
            return is_last and isinstance(part, CompiledStep)
        if not 1 <= frame.iteration <= part.passes_max:
            return False
        block = part.body
    return False


def step_at(workflow: CompiledWorkflow, position: Position) -> CompiledStep | None:
    """The step that is pending at `position`."""
    block = workflow.steps
    for frame in position[:-1]:
        part = block[frame.index]
        assert isinstance(part, CompiledLoop), "only a loop has a block of its own"
        block = part.body
    last = position[-1].index
    part = block[last] if last < len(block) else None
    assert not isinstance(part, CompiledLoop), "a run stands at a step, not at a loop"
    return part


def enclosing_loops(workflow: CompiledWorkflow, position: Position) -> tuple[EnclosingLoop, ...]:
    """The loops that `position` is in, from the outermost on."""
    found: list[EnclosingLoop] = []
    block = workflow.steps
    for frame in position[:-1]:
        loop = block[frame.index]
        assert isinstance(loop, CompiledLoop), "only a loop has a block of its own"
        found.append(EnclosingLoop(loop, frame.iteration))
        block = loop.body
    return tuple(found)


def scope(workflow: CompiledWorkflow, position: Position, context: Context) -> dict[str, Json]:
    """What prompts and conditions at `position` see: the context and the loops' variables."""
    return _with_loop_variables(context, enclosing_loops(workflow, position))


def controlled_loop_names(workflow: CompiledWorkflow) -> tuple[str, ...]:
    """The names of the loops that the agent decides about."""
    loops = {id(loop): loop for _, around_ in workflow.steps_with_loops() for loop in around_}
    found = [loop for loop in loops.values() if loop.is_controlled]
    return tuple(name for loop in found for name in (loop.id, loop.control_id) if name)


def targeted_loop_index(
    loops: tuple[EnclosingLoop, ...], control: LoopControlArtifact
) -> int | None:
    """Which of the loops around a step its decision is about: the one named, or the innermost."""
    for index in reversed(range(len(loops))):
        loop = loops[index].loop
        if loop.is_controlled and control.loop_id in (None, "", loop.id, loop.control_id):
            return index
    return None


def _with_loop_variables(context: Context, loops: tuple[EnclosingLoop, ...]) -> dict[str, Json]:
    seen: dict[str, Json] = dict(context)
    for found in loops:
        loop, index = found.loop, found.iteration - 1
        if loop.kind == "group":
            continue
        seen[loop.iteration_var] = found.iteration
        if loop.kind == "forEach":
            items = conditions.look_up(seen, loop.items)  # as it is outside of this loop
            seen[loop.index_var] = index
            is_there = isinstance(items, list) and index < len(items)
            seen[loop.item_var] = items[index] if is_there and isinstance(items, list) else None
    return seen


class _OpenBlock(msgspec.Struct):
    """A block that the walk is in; `loop` is the one whose body it is."""

    block: tuple[CompiledPart, ...]
    index: int
    loop: CompiledLoop | None = None
    iteration: int = 0
    stops: bool = False


class _StepSearch:
    """One search for the next step. Lives for one call, so it may change."""

    def __init__(
        self,
        workflow: CompiledWorkflow,
        position: Position,
        context: Context,
        control: LoopControlArtifact | None,
    ) -> None:
        self._context = context
        self._control = control
        """A decision that was made before its loop began."""
        self._trace: list[Entry] = []
        self._omitted_count = 0
        self._bounded: list[CompiledLoop] = []
        self._open_blocks = [_OpenBlock(workflow.steps, position[0].index)]
        for outer, frame in pairwise(position):
            loop = self._open_blocks[-1].block[outer.index]
            assert isinstance(loop, CompiledLoop), "only a loop has a block of its own"
            opened = _OpenBlock(loop.body, frame.index, loop, outer.iteration, outer.stops)
            self._open_blocks.append(opened)

    def find_next_step(self) -> Destination | Impasse:
        for _ in range(DECISIONS_MAX):
            here = self._open_blocks[-1]
            if here.index < len(here.block):
                found = self._arrive(here, here.block[here.index])
            elif here.loop is None:
                self._record("complete", "", _NOTHING_LEFT)
                found = self._destination(None)
            else:
                found = self._end_pass(here, here.loop)
            if found is not None:
                return found
        here = next(reversed(self._open_blocks))
        about = here.loop.id if here.loop else ""
        pointer = here.loop.pointer if here.loop else ""
        what = f"no step was found in {DECISIONS_MAX} decisions: its loops go round over nothing"
        return Impasse(about, pointer, "", what)

    def _arrive(self, here: _OpenBlock, part: CompiledPart) -> Destination | Impasse | None:
        why = IN_ORDER
        if part.run_condition is not None:
            condition = conditions.unpack(part.run_condition)
            held = conditions.evaluate(condition, self._scope())
            if isinstance(held, UnusableValue):
                return _impasse(part, "runCondition", held)
            why = conditions.describe(condition)
            if not held:
                what = "loop_skipped" if isinstance(part, CompiledLoop) else "skipped"
                self._record(what, part.id, f"not so: {why}")
                here.index += 1
                return None
        if isinstance(part, CompiledStep):
            self._record("chosen", part.id, why)
            return self._destination(part)
        return self._enter_loop(here, part)

    def _enter_loop(self, here: _OpenBlock, loop: CompiledLoop) -> Impasse | None:
        more = self._wants_more(loop, passes=0, stops=self._is_stopped_beforehand(loop))
        if isinstance(more, Impasse):
            return more
        wants, why = more
        if not wants:
            self._record("loop_skipped", loop.id, why)
            here.index += 1
            return None
        self._record("loop_entered", loop.id, why)
        self._open_blocks.append(_OpenBlock(loop.body, 0, loop, 1))
        return None

    def _end_pass(self, here: _OpenBlock, loop: CompiledLoop) -> Impasse | None:
        more = self._wants_more(loop, passes=here.iteration, stops=here.stops)
        if isinstance(more, Impasse):
            return more
        wants, why = more
        if wants and here.iteration < loop.passes_max:
            here.iteration, here.index, here.stops = here.iteration + 1, 0, False
            self._record("pass_begun", loop.id, f"pass {here.iteration}: {why}")
            return None
        if wants:
            self._bounded.append(loop)
            self._record("loop_bounded", loop.id, f"{loop.passes_max} passes were made; {why}")
        else:
            self._record("loop_ended", loop.id, f"after {here.iteration} passes: {why}")
        self._open_blocks.pop()
        self._open_blocks[-1].index += 1
        return None

    def _wants_more(
        self, loop: CompiledLoop, *, passes: int, stops: bool
    ) -> tuple[bool, str] | Impasse:
        """Whether another pass is wanted after so many, and why."""
        if loop.is_controlled:
            if stops:
                return False, "the agent decided to stop"
            first = "the first pass is always made"
            return True, "the agent did not decide to stop" if passes else first
        if loop.kind == "group":
            return passes == 0, "what it belongs to was chosen" if passes == 0 else "it is done"
        if loop.kind in ("for", "forEach"):
            total = self._pass_total(loop)
            if isinstance(total, Impasse):
                return total
            return passes < total, f"{passes} of {total} are done"
        assert loop.condition is not None, "the other loops have a condition"
        condition = conditions.unpack(loop.condition)
        loops = (*self._open_loops(excluding=loop), EnclosingLoop(loop, passes + 1))
        held = conditions.evaluate(condition, _with_loop_variables(self._context, loops))
        if isinstance(held, UnusableValue):
            return _impasse(loop, loop.condition_at, held)
        words = conditions.describe(condition)
        return held == (loop.kind == "while"), words if held else f"not so: {words}"

    def _pass_total(self, loop: CompiledLoop) -> int | Impasse:
        """How many passes `for` and `forEach` ask for now."""
        name = loop.items if loop.kind == "forEach" else loop.count
        if isinstance(name, int):
            return name
        value = conditions.look_up(
            _with_loop_variables(self._context, self._open_loops(excluding=loop)), name
        )
        if loop.kind == "forEach":
            if isinstance(value, list):
                return len(value)
            trouble = UnusableValue(name, "", f"`{name}` is not a list")
            return _impasse(loop, "loop/items", trouble)
        if isinstance(value, str) and len(value) <= _DIGITS_MAX and value.isdecimal():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        return _impasse(
            loop, "loop/count", UnusableValue(name, "", f"`{name}` is not a whole number")
        )

    def _is_stopped_beforehand(self, loop: CompiledLoop) -> bool:
        control, self._control = self._control, None
        if control is None or not loop.is_controlled:
            self._control = control
            return False
        names = (None, "", loop.id, loop.control_id)
        return control.decision == "stop" and control.loop_id in names

    def _open_loops(self, *, excluding: CompiledLoop | None = None) -> tuple[EnclosingLoop, ...]:
        return tuple(
            EnclosingLoop(found.loop, found.iteration)
            for found in self._open_blocks
            if found.loop is not None and found.loop is not excluding
        )

    def _scope(self) -> dict[str, Json]:
        return _with_loop_variables(self._context, self._open_loops())

    def _record(self, what: Any, about: str, why: str) -> None:
        if len(self._trace) < _ENTRIES_MAX:
            self._trace.append(Entry(what, about, why))
        else:
            self._omitted_count += 1

    def _destination(self, step: CompiledStep | None) -> Destination:
        trace = tuple(self._trace)
        if self._omitted_count:
            trace = (*trace, Entry("left_out", "", f"{self._omitted_count} more decisions"))
        inner = [*self._open_blocks[1:], None]
        position = tuple(
            Frame(opened.index, next_.iteration, next_.stops) if next_ else Frame(opened.index)
            for opened, next_ in zip(self._open_blocks, inner, strict=True)
        )
        return Destination(position, step, trace, tuple(self._bounded))


def _impasse(part: CompiledPart, place: str, unusable: UnusableValue) -> Impasse:
    return Impasse(part.id, pointer_in(part, place, unusable), unusable.var, unusable.message)


def pointer_in(part: CompiledPart, place: str, unusable: UnusableValue) -> str:
    """Where in the file a question stands that has no answer."""
    return part.pointer if part.is_elsewhere else f"{part.pointer}/{place}{unusable.pointer}"
