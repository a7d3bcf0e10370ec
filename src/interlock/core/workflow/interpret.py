"""The search for the next step of a run: pure functions.

A compiled workflow is a tree: a block is a tuple of parts, and a part is a step or a loop, whose
body is again a block. (A group is a loop with one pass: parts under a common condition.) A
`Position` (in `positions`) is a path into that tree, with one `Frame` for each block that the run
is in: the steps of the workflow, then the body of each loop around the pending step. Nothing else
is remembered, so continuing from a stored position is the same as never having stopped.

`begin` starts at the first part. `continue_from` writes the agent's decisions about loops into
the frames and moves past the accepted step. Then `_StepSearch` turns the frames into a stack of
open blocks and makes one decision at a time, until it is at a step or at the end:

1. At a part: evaluate its run condition, once, on arrival. If it does not hold, go past the part. A
   step is the destination; a loop is entered if a first pass is wanted.
2. At the end of a loop's body: begin another pass if one is wanted and the bound allows it, or else
   leave the loop. A loop that ends only because of its bound is reported (`bounded_loops`).
3. At the end of the outermost block: the run is complete.

Passes are decided between passes and nowhere else (`_wants_more`): by the agent, by a count or a
list, or by a condition. A decision of the agent that is about no loop around its step is held for
the first loop with agent control that the search comes to. A question without an answer is an
`Impasse`, and the run stays where it is. Every decision goes into the trace with its reason. The
number of decisions in one search is bounded, since loops whose steps are all skipped might go round
for very long.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from interlock.core.canonical import Json
from interlock.core.counting import pluralise
from interlock.core.ids import StepId
from interlock.core.workflow import conditions
from interlock.core.workflow.compiled_workflow import (
    CompiledLoop,
    CompiledPart,
    CompiledStep,
    CompiledWorkflow,
)
from interlock.core.workflow.conditions import Condition, UnusableValue
from interlock.core.workflow.packs import LoopControlArtifact
from interlock.core.workflow.positions import (
    EnclosingLoop,
    Frame,
    Position,
    enclosing_loops,
    targeted_loop_index,
    with_loop_variables,
)

DECISIONS_MAX = 5_000  # in one search: a file may loop over nothing 1,000 times 1,000 times
_DIGITS_MAX = 9  # of a count in the context that is written as text
IN_ORDER = "next in order"
_NOTHING_LEFT = "no step is left"
_ENTRIES_MAX = 100  # of a trace; those left out are counted

Context: TypeAlias = Mapping[str, Json]


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
        "proven",
    ]
    about: str
    """The id of the step or loop."""
    why: str = ""


class Destination(msgspec.Struct, frozen=True):
    position: Position
    step: CompiledStep | None
    """The step that is pending there; None where the run is complete."""
    trace: tuple[Entry, ...] = ()
    bounded_loops: tuple[CompiledLoop, ...] = ()
    """Loops that ended because of their bound although another pass was wanted."""
    skipped: "tuple[SkippedPart, ...]" = ()
    """Parts that the search went past, each once."""


class SkippedPart(msgspec.Struct, frozen=True):
    part: CompiledPart
    reason: str
    unset: tuple[str, ...]
    """The keys that its condition reads and nobody has set."""


class Impasse(msgspec.Struct, frozen=True):
    """A decision that cannot be made. The run stays where it is."""

    about: str
    pointer: str
    """The place of the question in the workflow file."""
    var: str
    message: str


def begin(workflow: CompiledWorkflow, context: Context) -> Destination | Impasse:
    """Return the first step of a run."""
    return _StepSearch(workflow, (Frame(0),), context, None).find_next_step()


def continue_from(
    workflow: CompiledWorkflow,
    position: Position,
    context: Context,
    *controls: LoopControlArtifact | None,
) -> Destination | Impasse:
    """Return the destination after the step at `position`, with its decisions about loops."""
    loops = enclosing_loops(workflow, position)
    frames = list(position)
    held_control: LoopControlArtifact | None = None
    for control in controls:
        target = targeted_loop_index(loops, control) if control else None
        if control and target is None:
            held_control = control
        elif control and target is not None:
            stops = control.decision == "stop"
            frames[target] = msgspec.structs.replace(
                frames[target], stops=stops, continues=not stops
            )
    frames[-1] = Frame(frames[-1].index + 1)
    return _StepSearch(workflow, tuple(frames), context, held_control).find_next_step()


def is_plain_trace(trace: tuple[Entry, ...]) -> bool:
    """Whether the trace says no more than that the next step in order came next."""
    return len(trace) == 1 and trace[0].why in (IN_ORDER, _NOTHING_LEFT)


class _OpenBlock(msgspec.Struct):
    """A block that the search is in. `loop` is the loop whose body it is, at pass `iteration`."""

    parts: tuple[CompiledPart, ...]
    index: int
    loop: CompiledLoop | None = None
    iteration: int = 0
    stops: bool = False
    continues: bool = False


class _StepSearch:
    """One search for the next step. Lives for one call, so it may be mutable."""

    def __init__(
        self,
        workflow: CompiledWorkflow,
        position: Position,
        context: Context,
        held_control: LoopControlArtifact | None,
    ) -> None:
        self._context = context
        self._is_lenient = workflow.is_lenient
        self._held_control = held_control
        """A decision of the agent that was made before its loop was entered."""
        self._trace: list[Entry] = []
        self._omitted_count = 0
        self._bounded: list[CompiledLoop] = []
        self._skipped: dict[StepId, SkippedPart] = {}
        self._open_blocks = [_OpenBlock(workflow.steps, position[0].index)]
        for outer, frame in pairwise(position):
            loop = self._open_blocks[-1].parts[outer.index]
            assert isinstance(loop, CompiledLoop), "only a loop has a block of its own"
            open_block = _OpenBlock(
                loop.body, frame.index, loop, outer.iteration, outer.stops, outer.continues
            )
            self._open_blocks.append(open_block)

    def find_next_step(self) -> Destination | Impasse:
        for _ in range(DECISIONS_MAX):
            block = self._open_blocks[-1]
            if block.index < len(block.parts):
                outcome = self._arrive(block, block.parts[block.index])
            elif block.loop is None:
                self._record("complete", "", _NOTHING_LEFT)
                outcome = self._destination(None)
            else:
                outcome = self._end_pass(block, block.loop)
            if outcome is not None:
                return outcome
        block = self._open_blocks[-1]
        about = block.loop.id if block.loop else ""
        pointer = block.loop.pointer if block.loop else ""
        message = f"no step was found in {DECISIONS_MAX} decisions: its loops go round over nothing"
        return Impasse(about, pointer, "", message)

    def _arrive(self, block: _OpenBlock, part: CompiledPart) -> Destination | Impasse | None:
        reason = IN_ORDER
        if part.run_condition is not None:
            condition = conditions.unpack(part.run_condition)
            answer = self._evaluate(condition, self._scope())
            if isinstance(answer, UnusableValue):
                return _impasse(part, "runCondition", answer)
            reason = conditions.describe(condition)
            if not answer:
                kind = "loop_skipped" if isinstance(part, CompiledLoop) else "skipped"
                self._record(kind, part.id, f"not so: {reason}")
                self._skip(block, part, f"only if {reason}", condition)
                return None
        if isinstance(part, CompiledStep):
            self._record("chosen", part.id, reason)
            return self._destination(part)
        return self._enter_loop(block, part)

    def _enter_loop(self, block: _OpenBlock, loop: CompiledLoop) -> Impasse | None:
        decision = self._wants_more(loop, passes=0, stops=self._is_stopped_beforehand(loop))
        if isinstance(decision, Impasse):
            return decision
        is_wanted, reason = decision
        if not is_wanted:
            self._record("loop_skipped", loop.id, reason)
            condition = conditions.unpack(loop.condition) if loop.condition else None
            self._skip(block, loop, _reason_not_to_enter(loop, condition), condition)
            return None
        self._record("loop_entered", loop.id, reason)
        self._open_blocks.append(_OpenBlock(loop.body, 0, loop, 1))
        return None

    def _skip(
        self, block: _OpenBlock, part: CompiledPart, reason: str, condition: Condition | None
    ) -> None:
        """Go past a part that is not done, and remember why."""
        block.index += 1
        unset = conditions.unset_variables(condition, self._scope()) if condition else ()
        reason += "".join(f"; `{name}` is not set" for name in unset)
        self._skipped.setdefault(part.id, SkippedPart(part, reason, unset))

    def _end_pass(self, block: _OpenBlock, loop: CompiledLoop) -> Impasse | None:
        decision = self._wants_more(
            loop, passes=block.iteration, stops=block.stops, continues=block.continues
        )
        if isinstance(decision, Impasse):
            return decision
        is_wanted, reason = decision
        if is_wanted and block.iteration < loop.passes_max:
            block.iteration, block.index = block.iteration + 1, 0
            block.stops = block.continues = False
            self._record("pass_begun", loop.id, f"pass {block.iteration}: {reason}")
            return None
        if is_wanted:
            self._bounded.append(loop)
            self._record("loop_bounded", loop.id, f"made {_passes(loop.passes_max)}; {reason}")
        else:
            self._record("loop_ended", loop.id, f"after {_passes(block.iteration)}: {reason}")
        self._open_blocks.pop()
        self._open_blocks[-1].index += 1
        return None

    def _wants_more(
        self, loop: CompiledLoop, *, passes: int, stops: bool, continues: bool = False
    ) -> tuple[bool, str] | Impasse:
        """Return whether another pass is wanted after so many, and the reason."""
        if loop.takes_decisions and (stops or continues):
            return continues, f"the agent decided to {'go on' if continues else 'stop'}"
        if loop.is_controlled:
            first_reason = "the first pass is always made"
            return True, "the agent did not decide to stop" if passes else first_reason
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
        answer = self._evaluate(condition, with_loop_variables(self._context, loops))
        if isinstance(answer, UnusableValue):
            return _impasse(loop, loop.condition_at, answer)
        description = conditions.describe(condition)
        return answer == (loop.kind == "while"), description if answer else f"not so: {description}"

    def _evaluate(self, condition: Condition, scope: Context) -> bool | UnusableValue:
        return conditions.evaluate(condition, scope, is_lenient=self._is_lenient)

    def _pass_total(self, loop: CompiledLoop) -> int | Impasse:
        """Return the number of passes that `for` and `forEach` ask for now."""
        name = loop.items if loop.kind == "forEach" else loop.count
        if isinstance(name, int):
            return name
        value = conditions.look_up(
            with_loop_variables(self._context, self._open_loops(excluding=loop)), name
        )
        if loop.kind == "forEach":
            if isinstance(value, list):
                return len(value)
            unusable = UnusableValue(name, "", f"`{name}` is not a list")
            return _impasse(loop, "loop/items", unusable)
        if isinstance(value, str) and len(value) <= _DIGITS_MAX and value.isdecimal():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        return _impasse(
            loop, "loop/count", UnusableValue(name, "", f"`{name}` is not a whole number")
        )

    def _is_stopped_beforehand(self, loop: CompiledLoop) -> bool:
        if self._held_control is None or not loop.takes_decisions:
            return False
        control, self._held_control = self._held_control, None
        names = (None, "", loop.id, loop.control_id)
        return control.decision == "stop" and control.loop_id in names

    def _open_loops(self, *, excluding: CompiledLoop | None = None) -> tuple[EnclosingLoop, ...]:
        return tuple(
            EnclosingLoop(block.loop, block.iteration)
            for block in self._open_blocks
            if block.loop is not None and block.loop is not excluding
        )

    def _scope(self) -> dict[str, Json]:
        return with_loop_variables(self._context, self._open_loops())

    def _record(self, kind: Any, about: str, reason: str) -> None:
        if len(self._trace) < _ENTRIES_MAX:
            self._trace.append(Entry(kind, about, reason))
        else:
            self._omitted_count += 1

    def _destination(self, step: CompiledStep | None) -> Destination:
        trace = tuple(self._trace)
        if self._omitted_count:
            trace = (*trace, Entry("left_out", "", pluralise(self._omitted_count, "more decision")))
        # The pass of a loop is stored with the part that the loop is, in the block around its body.
        bodies = [*self._open_blocks[1:], None]
        position = tuple(
            Frame(block.index, body.iteration, body.stops, body.continues)
            if body
            else Frame(block.index)
            for block, body in zip(self._open_blocks, bodies, strict=True)
        )
        return Destination(
            position, step, trace, tuple(self._bounded), tuple(self._skipped.values())
        )


def _reason_not_to_enter(loop: CompiledLoop, condition: Condition | None) -> str:
    if condition is None:
        return "you decided so" if loop.takes_decisions else "there is nothing to go through"
    description = conditions.describe(condition)
    return f"only while {description}" if loop.kind == "while" else f"only until {description}"


def _passes(count: int) -> str:
    return pluralise(count, "pass")


def _impasse(part: CompiledPart, path: str, unusable: UnusableValue) -> Impasse:
    return Impasse(part.id, pointer_in(part, path, unusable), unusable.var, unusable.message)


def pointer_in(part: CompiledPart, path: str, unusable: UnusableValue) -> str:
    """Return the pointer in the file of a question that has no answer."""
    return part.pointer if part.is_elsewhere else f"{part.pointer}/{path}{unusable.pointer}"
