"""The outline of a run: its path as rows, with groups and loops folded.

A row is a step (with all attempts at it in a row), or a fold: a group, a loop, a stretch of its
passes, or one pass. A fold is counted whether it is open or not, but its rows are made only if it
is; it is open where somebody opened it, or where the node that is looked at lies in it. So the rows
stay few, however long the run is. The passes of a long loop are gathered in stretches of ten, a
hundred and so on, of which at most `ROWS_MAX` are shown at a time.

Keys of folds are made of the place in the workflow and the pass (`2:318`), so that they stay the
same while the run goes on.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

import msgspec

from interlock.core.ids import NodeId
from interlock.core.session.events import NodeKind
from interlock.core.session.run_head import RunHead
from interlock.core.views.path import StepResult, result_at_tip
from interlock.core.views.run_nodes import PlacedRunNode, RunNodes
from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledWorkflow
from interlock.core.workflow.positions import Position

ROWS_MAX = 12
PASSES_PER_STRETCH = 10
GROUP_ROWS_MAX = 4  # a short group is shown as it is: a step and what proves it, mostly


class OutlineBranch(msgspec.Struct, frozen=True):
    """Another attempt at a step, which is not on the path."""

    first: PlacedRunNode
    newest: PlacedRunNode
    node_count: int
    step_count: int


class OutlineStep(msgspec.Struct, frozen=True):
    first: PlacedRunNode
    """The node at which it was given."""
    nodes: tuple[NodeId, ...]
    """That node, and the attempts and approvals after it that are on the path."""
    led_to: tuple[PlacedRunNode, ...]
    """The nodes that its submissions on the path created."""
    result: StepResult
    until_ms: int | None
    """When the next one was given; none for the last."""
    branches: tuple[OutlineBranch, ...]
    checkpoints: tuple[PlacedRunNode, ...]
    is_after_approval: bool
    """Whether somebody let the run go on to it."""
    pass_number: int = 0
    """The pass that it is all of; 0 if there is more to say of the pass, or none."""

    @property
    def refusal_count(self) -> int:
        """The number of attempts that were not accepted."""
        return sum(node.kind == "blocked" for node in self.led_to)


class OutlineFold(msgspec.Struct, frozen=True):
    key: str
    kind: Literal["group", "loop", "passes", "pass"]
    title: str
    first_pass: int
    last_pass: int
    planned_passes: int | None
    """The number of passes that there will be, if that is known; only of a loop."""
    step_count: int
    blocked_count: int
    """The number of its steps at which an attempt was not accepted."""
    branch_count: int
    checkpoint_count: int
    at_ms: int
    until_ms: int | None
    is_pending: bool
    """Whether the run stands in it."""
    is_open: bool
    rows: "tuple[OutlineRow, ...]"


OutlineRow: TypeAlias = OutlineStep | OutlineFold


class Outline(msgspec.Struct, frozen=True):
    rows: tuple[OutlineRow, ...]
    current: NodeId | None
    """The node that is looked at, or the one on the path from which it branches off."""

    def steps(self) -> list[OutlineStep]:
        """The steps that are shown."""
        return _steps_in(self.rows)


def _steps_in(rows: Sequence[OutlineRow]) -> list[OutlineStep]:
    steps: list[OutlineStep] = []
    for row in rows:
        steps += [row] if isinstance(row, OutlineStep) else _steps_in(row.rows)
    return steps


def outline_of(
    run: RunHead,
    nodes: RunNodes,
    workflow: CompiledWorkflow | None,
    *,
    looked_at: NodeId | None,
    opened: Collection[str] = (),
    closed: Collection[str] = (),
    planned_passes: Callable[[CompiledLoop], int | None] = lambda _: None,
) -> Outline:
    """`looked_at`: the node that is shown beside it; where none is, the tip."""
    steps = _PathSteps(run, nodes)
    current = steps.index_of(looked_at)
    builder = _OutlineBuilder(
        steps,
        workflow,
        current=current,
        opened=opened,
        closed=closed,
        planned_passes=planned_passes,
    )
    shown = steps.first(current).id if len(steps) else None
    return Outline(builder.rows(0, len(steps), 0, ""), shown)


class _PathSteps:
    """The steps on the path, of which only those that are shown are made."""

    def __init__(self, run: RunHead, nodes: RunNodes) -> None:
        self._run, self._nodes, self._path = run, nodes, nodes.path
        self._starts = [
            place
            for place, node in enumerate(self._path)
            if node.created.node_kind == "step" or not place
        ]
        self._bounds = [*self._starts, len(self._path)]

    def __len__(self) -> int:
        return len(self._starts)

    def first(self, index: int) -> PlacedRunNode:
        """The node at which a step was given."""
        return self._path[self._starts[index]]

    def position(self, index: int) -> Position:
        return self._path[self._starts[index]].created.position

    def until_ms(self, index: int) -> int | None:
        """When the next step was given; none for the last."""
        end = self._bounds[index + 1]
        return self._path[end].at_ms if end < len(self._path) else None

    def blocked_count(self, start: int, end: int) -> int:
        """The number of the steps from `start` to `end` at which an attempt was not accepted."""
        if self._bounds[end] - self._bounds[start] == end - start:
            return 0  # no step has more than one node
        return sum(
            any(
                node.kind == "blocked" for node in self._path[self._bounds[i] : self._bounds[i + 1]]
            )
            for i in range(start, end)
        )

    def aside_counts(self, start: int, end: int) -> tuple[int, int]:
        """The numbers of branches and of checkpoints beside the steps from `start` to `end`."""
        first, last = self._bounds[start], self._bounds[end]
        beside = [kind for place, kind in self._asides if first <= place < last]
        return len(beside) - beside.count("checkpoint"), beside.count("checkpoint")

    @cached_property
    def _asides(self) -> list[tuple[int, NodeKind]]:
        """Where on the path something branches off, and the kind of each."""
        places = self._nodes.places_on_path
        return [
            (places[parent], node.kind)
            for node in self._nodes.nodes
            if node.id not in places
            and (parent := node.created.parent) is not None
            and parent in places
        ]

    def steps(self, start: int, end: int) -> Iterator[OutlineStep]:
        for index in range(start, end):
            first, last = self._bounds[index], self._bounds[index + 1]
            following = self._path[last] if last < len(self._path) else None
            yield _step(self._run, self._nodes, self._path[first:last], following)

    def index_of(self, node: NodeId | None) -> int:
        """The place of the step at which a node is, or from which the way to it branches off."""
        place = len(self._path) - 1
        if node is not None and node in self._nodes.by_id:
            line = self._nodes.line_to(self._nodes.by_id[node])
            on_path = next(one for one in reversed(line) if one.id in self._nodes.path_ids)
            place = self._nodes.places_on_path[on_path.id]
        return bisect_right(self._starts, place) - 1


def _step(
    run: RunHead,
    nodes: RunNodes,
    own: Sequence[PlacedRunNode],
    following: PlacedRunNode | None,
) -> OutlineStep:
    off_path = [
        child
        for node in own
        for child in nodes.children.get(node.id, ())
        if child.id not in nodes.path_ids
    ]
    parent = own[0].created.parent if own[0].created.parent in nodes.by_id else None
    result = "done" if following else result_at_tip(run, own[-1].kind, own[-1].created.step_id)
    return OutlineStep(
        own[0],
        tuple(node.id for node in own),
        (*own[1:], *((following,) if following else ())),
        result,
        following.at_ms if following else None,
        tuple(_branch(nodes, child) for child in off_path if child.kind != "checkpoint"),
        tuple(child for child in off_path if child.kind == "checkpoint"),
        parent is not None and nodes.by_id[parent].kind == "approval",
    )


def _branch(nodes: RunNodes, first: PlacedRunNode) -> OutlineBranch:
    reached = [node for node in nodes.descendants(first) if node.kind != "checkpoint"]
    step_count = sum(node.kind == "step" for node in reached)
    return OutlineBranch(first, reached[-1], len(reached), step_count)


class _OutlineBuilder:
    def __init__(
        self,
        steps: _PathSteps,
        workflow: CompiledWorkflow | None,
        *,
        current: int,
        opened: Collection[str],
        closed: Collection[str],
        planned_passes: Callable[[CompiledLoop], int | None],
    ) -> None:
        self._steps, self._workflow, self._current = steps, workflow, current
        self._opened, self._closed, self._planned_passes = opened, closed, planned_passes

    def rows(self, start: int, end: int, depth: int, prefix: str) -> tuple[OutlineRow, ...]:
        """The rows of the steps from `start` to `end`, all in one block at this depth."""
        rows: list[OutlineRow] = []
        seen: dict[str, int] = {}
        for first, last in self._stretches(start, end, lambda index: self._block(index, depth)):
            index = self._block(first, depth)
            if index is None:
                rows += self._steps.steps(first, last)
                continue
            loop = self._loop(first, depth)
            if loop and loop.kind == "group" and last - first <= GROUP_ROWS_MAX:
                rows += self.rows(first, last, depth + 1, f"{prefix}{index}/")
                continue
            name = f"{prefix}{index}"
            seen[name] = seen.get(name, 0) + 1
            key = name if seen[name] == 1 else f"{name}~{seen[name]}"
            rows.append(self._block_fold(first, last, depth, key, loop))
        return tuple(rows)

    def _block_fold(
        self, start: int, end: int, depth: int, key: str, loop: CompiledLoop | None
    ) -> OutlineFold:
        title = loop.title if loop else "Loop"
        if loop and loop.kind == "group":
            return self._fold(
                start,
                end,
                key,
                "group",
                title,
                rows=lambda: self.rows(start, end, depth + 1, f"{key}/"),
            )
        passes = list(self._stretches(start, end, lambda index: self._pass_at(index, depth)))
        return self._fold(
            start,
            end,
            key,
            "loop",
            title,
            passes=(self._pass_at(start, depth), self._pass_at(end - 1, depth)),
            planned_passes=self._planned_passes(loop) if loop else None,
            rows=lambda: self._pass_rows(passes, depth, key),
        )

    def _pass_rows(
        self, passes: Sequence[tuple[int, int]], depth: int, key: str
    ) -> tuple[OutlineRow, ...]:
        size = 1
        while len(passes) > ROWS_MAX * size:
            size *= PASSES_PER_STRETCH
        if size > 1:
            chunks = [passes[at : at + size] for at in range(0, len(passes), size)]
            return tuple(self._passes_fold(chunk, depth, key, size) for chunk in chunks)
        if all(end - start == 1 for start, end in passes):
            return tuple(
                msgspec.structs.replace(step, pass_number=self._pass_at(start, depth))
                for start, end in passes
                for step in self._steps.steps(start, end)
            )
        return tuple(self._pass_fold(start, end, depth, key) for start, end in passes)

    def _passes_fold(
        self, passes: Sequence[tuple[int, int]], depth: int, key: str, size: int
    ) -> OutlineFold:
        start, end = passes[0][0], passes[-1][1]
        first, last = self._pass_at(start, depth), self._pass_at(end - 1, depth)
        return self._fold(
            start,
            end,
            f"{key}:{first}-{size}",
            "passes",
            f"Passes {first} to {last}" if first < last else f"Pass {first}",
            passes=(first, last),
            rows=lambda: self._pass_rows(passes, depth, key),
        )

    def _pass_fold(self, start: int, end: int, depth: int, key: str) -> OutlineFold:
        number = self._pass_at(start, depth)
        own_key = f"{key}:{number}"
        return self._fold(
            start,
            end,
            own_key,
            "pass",
            f"Pass {number}",
            passes=(number, number),
            rows=lambda: self.rows(start, end, depth + 1, f"{own_key}/"),
        )

    def _fold(
        self,
        start: int,
        end: int,
        key: str,
        kind: Literal["group", "loop", "passes", "pass"],
        title: str,
        *,
        rows: Callable[[], tuple[OutlineRow, ...]],
        passes: tuple[int, int] = (0, 0),
        planned_passes: int | None = None,
    ) -> OutlineFold:
        steps = self._steps
        is_here = start <= self._current < end and key not in self._closed
        is_open = is_here or key in self._opened
        return OutlineFold(
            key,
            kind,
            title,
            *passes,
            planned_passes,
            end - start,
            steps.blocked_count(start, end),
            *steps.aside_counts(start, end),
            steps.first(start).at_ms,
            steps.until_ms(end - 1),
            end == len(steps),
            is_open,
            rows() if is_open else (),
        )

    def _stretches(
        self, start: int, end: int, key: Callable[[int], int | None]
    ) -> list[tuple[int, int]]:
        """The stretches of steps for which `key` says the same."""
        bounds, before = [start], key(start) if start < end else None
        for index in range(start + 1, end):
            if (now := key(index)) != before:
                bounds.append(index)
                before = now
        return list(pairwise([*bounds, end])) if start < end else []

    def _block(self, index: int, depth: int) -> int | None:
        """The place of the block that a step is in below this depth; none if it is in no other."""
        position = self._steps.position(index)
        return position[depth].index if len(position) > depth + 1 else None

    def _pass_at(self, index: int, depth: int) -> int:
        return self._steps.position(index)[depth].iteration

    def _loop(self, index: int, depth: int) -> CompiledLoop | None:
        if self._workflow is None:
            return None
        loop, parts = None, self._workflow.steps
        for frame in self._steps.position(index)[: depth + 1]:
            part = parts[frame.index] if frame.index < len(parts) else None
            if not isinstance(part, CompiledLoop):
                return None
            loop, parts = part, part.body
        return loop
