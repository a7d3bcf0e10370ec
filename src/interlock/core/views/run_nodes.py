"""The nodes of a run without prompts and submissions, so that thousands load at once."""

from collections.abc import Iterable, Set
from functools import cached_property

import msgspec

from interlock.core.ids import AttemptId, BlobRef, NodeId, RunId
from interlock.core.session.events import NodeKind
from interlock.core.workflow.positions import Position


class RunNode(msgspec.Struct, frozen=True, rename="camel"):
    """The event that created a node, as far as an outline needs it."""

    node_kind: NodeKind
    context: BlobRef
    parent: NodeId | None = None
    attempt: AttemptId | None = None
    """The attempt at `parent` that led here."""
    position: Position = ()
    number: int = 0
    step_id: str | None = None
    """The pending step; none at the end of the run."""
    step_title: str | None = None
    is_aside: bool = False
    asks_user: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether work went on here when it was made."""
        return self.node_kind != "checkpoint" and not self.is_aside


class PlacedRunNode(msgspec.Struct, frozen=True, rename="camel"):
    """A node, and its place in the session."""

    id: NodeId = msgspec.field(name="node")
    run: RunId
    seq: int
    at_ms: int
    created: RunNode = msgspec.field(name="event")

    @property
    def kind(self) -> NodeKind:
        return self.created.node_kind


class SessionNodes:
    """The nodes of all runs of a session, in the order in which they were made."""

    def __init__(self, placed: Iterable[PlacedRunNode]) -> None:
        self.placed = tuple(placed)
        self._runs: dict[RunId, RunNodes] = {}

    @cached_property
    def by_id(self) -> dict[NodeId, PlacedRunNode]:
        return {node.id: node for node in self.placed}

    def of_run(self, run: RunId) -> "RunNodes":
        if run not in self._runs:
            self._runs[run] = RunNodes(run, self.placed)
        return self._runs[run]


decode_run_node = msgspec.json.Decoder(PlacedRunNode).decode


class RunNodes:
    """All nodes of one run, in the order in which they were made."""

    def __init__(self, run: RunId, nodes: Iterable[PlacedRunNode]) -> None:
        self.run = run
        self.nodes = tuple(node for node in nodes if node.run == run)
        self.by_id = {node.id: node for node in self.nodes}

    @cached_property
    def tip(self) -> PlacedRunNode | None:
        """The node made last at which work went on."""
        return next((node for node in reversed(self.nodes) if node.created.goes_on), None)

    @cached_property
    def path(self) -> tuple[PlacedRunNode, ...]:
        """The nodes from the root to the tip."""
        return tuple(self.line_to(self.tip)) if self.tip else ()

    @cached_property
    def places_on_path(self) -> dict[NodeId, int]:
        return {node.id: place for place, node in enumerate(self.path)}

    @property
    def path_ids(self) -> Set[NodeId]:
        return self.places_on_path.keys()

    @cached_property
    def children(self) -> dict[NodeId, list[PlacedRunNode]]:
        """The children of each node that has any, oldest first."""
        children: dict[NodeId, list[PlacedRunNode]] = {}
        for node in self.nodes:
            if node.created.parent is not None:
                children.setdefault(node.created.parent, []).append(node)
        return children

    def line_to(self, node: PlacedRunNode) -> list[PlacedRunNode]:
        """The nodes from the root to `node`."""
        line = [node]
        # A foreign bundle may name a parent in another run; here that node is a root.
        while (parent := line[-1].created.parent) is not None and parent in self.by_id:
            line.append(self.by_id[parent])
        return line[::-1]

    def descendants(self, node: PlacedRunNode) -> list[PlacedRunNode]:
        """A node and everything that came of it, oldest first."""
        found, waiting = [node], [node]
        while waiting:
            following = self.children.get(waiting.pop().id, [])
            found += following
            waiting += following
        return sorted(found, key=lambda one: one.seq)

    def branch_end(self, node: PlacedRunNode) -> PlacedRunNode:
        """The newest node that came of `node` at which work went on; on the path, the tip."""
        if node.id in self.path_ids and self.tip:
            return self.tip
        return next(
            one
            for one in reversed(self.descendants(node))
            if one.kind != "checkpoint" or one is node
        )
