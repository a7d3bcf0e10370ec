"""Two branches of a run side by side, from where they part: notes, artifacts, context.

Steps are paired by what they are and in which pass, in the order of the left branch; what only the
right one has comes after the step before it. Made in two passes, so that only what is needed gets
read: `parting` finds the nodes, `compare` tells what was submitted there.
"""

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from interlock.core.ids import NodeId
from interlock.core.session.context import Context
from interlock.core.session.events import Envelope, OutputAppended, StoredArtifact
from interlock.core.views.node_panel import Change, context_changes
from interlock.core.views.outline_details import output_key_to
from interlock.core.views.run_nodes import PlacedRunNode, RunNodes

STEPS_MAX = 200  # of each branch; what came after is not compared


class Parting(msgspec.Struct, frozen=True):
    """Where two branches part, and the nodes of each from there on."""

    fork: PlacedRunNode
    """The last node that both have."""
    left: tuple[PlacedRunNode, ...]
    right: tuple[PlacedRunNode, ...]

    @property
    def output_keys(self) -> list[str]:
        return [key for node in (*self.left, *self.right) if (key := output_key_to(node))]


class BranchEntry(msgspec.Struct, frozen=True):
    """The output that was submitted last for a step on one of the branches."""

    node: NodeId
    """The node where the step was given."""
    notes: str
    artifacts: tuple[StoredArtifact, ...]


class ComparedStep(msgspec.Struct, frozen=True):
    title: str
    passes: tuple[int, ...]
    left: BranchEntry | None
    right: BranchEntry | None

    @property
    def is_same(self) -> bool:
        """Whether both have submitted the same."""
        return (
            self.left is not None
            and self.right is not None
            and (self.left.notes, self.left.artifacts) == (self.right.notes, self.right.artifacts)
        )


class BranchComparison(msgspec.Struct, frozen=True):
    steps: tuple[ComparedStep, ...]
    context: tuple[Change, ...]
    """The keys whose values differ where the branches stand: `before` is left, `after` right."""
    is_cut: bool


def parting(nodes: RunNodes, left: PlacedRunNode, right: PlacedRunNode) -> Parting | None:
    """None where the two have nothing in common."""
    lines = nodes.line_to(left), nodes.line_to(right)
    shared = 0
    for one, other in zip(*lines, strict=False):
        if one.id != other.id:
            break
        shared += 1
    if not shared:
        return None
    return Parting(lines[0][shared - 1], tuple(lines[0][shared:]), tuple(lines[1][shared:]))


def compare(
    parted: Parting, events: Mapping[str, Envelope], left: Context, right: Context
) -> BranchComparison:
    """`left` and `right`: the contexts where the branches stand."""
    lefts = _entries((parted.fork, *parted.left), events)
    rights = _entries((parted.fork, *parted.right), events)
    steps: list[ComparedStep] = []
    waiting = dict(rights)
    for key, entry in lefts.items():
        for earlier in list(waiting) if key in waiting else ():
            if earlier == key:
                break
            if earlier not in lefts:
                steps.append(_compared_step(earlier, None, waiting.pop(earlier)))
        steps.append(_compared_step(key, entry, waiting.pop(key, None)))
    steps += [_compared_step(key, None, entry) for key, entry in waiting.items()]
    is_cut = max(len(parted.left), len(parted.right)) > STEPS_MAX
    return BranchComparison(tuple(steps), context_changes(left, right), is_cut)


_StepKey = tuple[str, str, tuple[int, ...]]
"""The id and the title of a step, and the passes around it."""


def _entries(
    line: Sequence[PlacedRunNode], events: Mapping[str, Envelope]
) -> dict[_StepKey, BranchEntry]:
    """The last submission of each step on the line."""
    entries: dict[_StepKey, BranchEntry] = {}
    for given, came_of_it in itertools.pairwise(line):
        created = given.created
        recorded = events.get(output_key_to(came_of_it))
        if recorded is None or not isinstance(recorded.event, OutputAppended):
            continue
        passes = tuple(frame.iteration for frame in created.position[:-1])
        key = (created.step_id or "", created.step_title or "", passes)
        entries[key] = BranchEntry(given.id, recorded.event.notes, recorded.event.artifacts)
        if len(entries) == STEPS_MAX:
            break
    return entries


def _compared_step(
    key: _StepKey, left: BranchEntry | None, right: BranchEntry | None
) -> ComparedStep:
    _, title, passes = key
    return ComparedStep(title, passes, left, right)
