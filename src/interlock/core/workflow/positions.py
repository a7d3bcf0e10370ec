"""Positions in a workflow: where a run is, with the step, the loops and the variables there."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import conditions
from interlock.core.workflow.compiled_workflow import (
    CompiledLoop,
    CompiledPart,
    CompiledStep,
    CompiledWorkflow,
)
from interlock.core.workflow.packs import LoopControlArtifact


class Frame(msgspec.Struct, frozen=True, array_like=True):
    index: int
    """The current part of the block; one past the last where the block is finished."""
    iteration: int = 0
    """The pass of the loop at `index`, counted from 1; 0 where there is no loop."""
    stops: bool = False
    """Whether the agent has decided that this pass of the loop is the last."""
    continues: bool = False
    """Whether the agent has decided that another pass follows."""


Position: TypeAlias = tuple[Frame, ...]
"""A path into the tree of a workflow: a frame for each block that the run is in."""


class EnclosingLoop(msgspec.Struct, frozen=True):
    """A loop that a position is in, and its current pass."""

    loop: CompiledLoop
    iteration: int


def is_position(workflow: CompiledWorkflow, position: Position) -> bool:
    """Whether a run of this workflow can be at `position`, which came from elsewhere."""
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
    """Return the step that is pending at `position`; None where the run is complete."""
    block = workflow.steps
    for frame in position[:-1]:
        part = block[frame.index]
        assert isinstance(part, CompiledLoop), "only a loop has a block of its own"
        block = part.body
    last = position[-1].index
    part = block[last] if last < len(block) else None
    assert not isinstance(part, CompiledLoop), "a run stands at a step, not at a loop"
    return part


def next_part(workflow: CompiledWorkflow, position: Position) -> CompiledPart | None:
    """Return the part that follows in the same block; None at its end."""
    block = workflow.steps
    for frame in position[:-1]:
        part = block[frame.index]
        assert isinstance(part, CompiledLoop), "only a loop has a block of its own"
        block = part.body
    index = position[-1].index + 1
    return block[index] if index < len(block) else None


def enclosing_loops(workflow: CompiledWorkflow, position: Position) -> tuple[EnclosingLoop, ...]:
    """Return the loops that `position` is in, from the outermost."""
    loops: list[EnclosingLoop] = []
    block = workflow.steps
    for frame in position[:-1]:
        loop = block[frame.index]
        assert isinstance(loop, CompiledLoop), "only a loop has a block of its own"
        loops.append(EnclosingLoop(loop, frame.iteration))
        block = loop.body
    return tuple(loops)


def scope(
    workflow: CompiledWorkflow, position: Position, context: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the variables of prompts and conditions at `position`: the context and the loops'."""
    return with_loop_variables(context, enclosing_loops(workflow, position))


def planned_passes(loop: CompiledLoop, outside: Mapping[str, Json]) -> Json:
    """Return the passes of a loop over a count or a list, by the variables outside of it.

    Nothing, or what else stands there, where they do not say.
    """
    value = conditions.look_up(outside, loop.items or str(loop.count))
    return len(value) if isinstance(value, list) else value or loop.count


def controlled_loop_names(workflow: CompiledWorkflow) -> tuple[str, ...]:
    """Return the names of the loops that the agent may decide about."""
    loops = {id(loop): loop for _, enclosing in workflow.steps_with_loops() for loop in enclosing}
    controlled = [loop for loop in loops.values() if loop.takes_decisions]
    return tuple(name for loop in controlled for name in (loop.id, loop.control_id) if name)


def targeted_loop_index(
    loops: tuple[EnclosingLoop, ...], control: LoopControlArtifact
) -> int | None:
    """Return the index of the loop that a decision is about: the one named, or the innermost."""
    for index in reversed(range(len(loops))):
        loop = loops[index].loop
        if loop.takes_decisions and control.loop_id in (None, "", loop.id, loop.control_id):
            return index
    return None


def with_loop_variables(
    context: Mapping[str, Json], loops: tuple[EnclosingLoop, ...]
) -> dict[str, Json]:
    """Return the context with the variables of these loops, which are from the outermost."""
    variables: dict[str, Json] = dict(context)
    for enclosing in loops:
        loop, index = enclosing.loop, enclosing.iteration - 1
        if loop.kind == "group":
            continue
        variables[loop.iteration_var] = enclosing.iteration
        if loop.kind == "forEach":
            items = conditions.look_up(variables, loop.items)  # evaluated outside of this loop
            variables[loop.index_var] = index
            variables[loop.item_var] = (
                items[index] if isinstance(items, list) and index < len(items) else None
            )
    return variables
