"""The layout of a run graph: a lane and a row for each node, and the lines between them.

Lane 0 is the path from the root to the tip, and nothing else. A row is the distance from the root.
What is not on the path is laid out *stretch* by stretch, in the order in which they were begun: a
stretch is what was made in one go, without work elsewhere in between, and takes the first lane
that is free over all of its rows; where work was taken up again, the lane that it was in if that is
free. Checkpoints hang to the right of their node, the next one below the one before.

What holds when the graph grows:

- No row ever changes.
- As long as no node joins or leaves the path (it only grows, whatever else is added), nothing
  moves.
- When the path switches, nodes made before the first one that joined or left it do not move;
  neither do those that are on the path before and after. Others may change their lane.

The reason: a stretch ends when work goes on elsewhere, and the last one is always on the path. So
those beside it are complete, and each is placed knowing only those that were begun before.

Stubs and ghosts fill cells that are left, so showing them moves no node. They may move themselves.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from interlock.core.ids import NodeId
from interlock.core.session.events import NodeKind
from interlock.core.views.collapse import Stub
from interlock.core.views.graph import GraphNode, RunGraph

Point: TypeAlias = tuple[float, float]


class _Drawn(msgspec.Struct, frozen=True, rename="camel"):
    pass


class PlacedNode(_Drawn, frozen=True):
    id: NodeId
    lane: int
    row: int
    kind: NodeKind
    is_preferred: bool


class PlacedStub(_Drawn, frozen=True):
    stub: Stub
    lane: int
    row: int


class Ghost(_Drawn, frozen=True):
    """A step or loop that was skipped."""

    node: NodeId
    """The node that the run came to instead."""
    step: str
    why: str
    lane: int
    row: int


class Edge(_Drawn, frozen=True):
    """A line down from one row to the next: it crosses no node, only the gap between the rows."""

    source: NodeId
    """Its parent; of a further checkpoint at the same node, the checkpoint before it."""
    target: NodeId
    """Of an edge to a stub, the node at which it hangs; to a ghost, the node that was come to."""
    kind: Literal["path", "branch", "checkpoint", "stub", "ghost"]
    points: tuple[Point, Point, Point, Point]
    """In lanes and rows; the middle of a cell is at one half. As a polyline they are a line with
    two corners, as start, handles and end of a Bézier curve a smooth one."""


class Layout(_Drawn, frozen=True):
    nodes: tuple[PlacedNode, ...]
    """In the order in which they were made."""
    edges: tuple[Edge, ...]
    stubs: tuple[PlacedStub, ...]
    ghosts: tuple[Ghost, ...]
    width: int
    """In lanes."""
    height: int
    """In rows."""


def layout(graph: RunGraph, *, stubs: Sequence[Stub] = (), ghosts: bool = False) -> Layout:
    """`stubs` as `collapse` has made them; `ghosts`: show what was skipped."""
    placing = _Placing(graph)
    nodes = tuple(
        PlacedNode(node.id, *placing.cells[node.id], node.kind, node.is_preferred)
        for node in graph.nodes
    )
    placed_stubs = tuple(placing.stubs(stubs))
    placed_ghosts = tuple(placing.ghosts(graph.nodes)) if ghosts else ()
    edges = (
        *placing.edges(graph.nodes),
        *placing.stub_edges(placed_stubs),
        *placing.ghost_edges(placed_ghosts),
    )
    width, height = placing.grid.width, placing.grid.height
    return Layout(nodes, edges, placed_stubs, placed_ghosts, width, height)


def svg_path(edge: Edge, *, lane_px: float, row_px: float) -> str:
    """The `d` of an SVG path for a smooth line, with lanes and rows of this size."""
    start, one, two, end = (f"{round(x * lane_px)} {round(y * row_px)}" for x, y in edge.points)
    is_straight = edge.points[0][0] == edge.points[3][0]
    return f"M{start}L{end}" if is_straight else f"M{start}C{one} {two} {end}"


_Cell: TypeAlias = tuple[int, int]


class _Grid:
    """Which cells are taken: for each row a bit for each lane, so that looking is one operation."""

    def __init__(self) -> None:
        self._taken: dict[int, int] = {}
        self.width = 0
        self.height = 0

    def take(self, lane: int, rows: range) -> None:
        for row in rows:
            self._taken[row] = self._taken.get(row, 0) | 1 << lane
        self.width = max(self.width, lane + 1)
        self.height = max(self.height, rows.stop)

    def take_free(self, rows: range, *, right_of: int, wanted: int = 0) -> int:
        """The lane that was `wanted` if it is free over `rows`, else the first that is."""
        taken = (1 << right_of + 1) - 1
        for row in rows:
            taken |= self._taken.get(row, 0)
        first_free = (~taken & taken + 1).bit_length() - 1
        lane = first_free if taken >> wanted & 1 else wanted
        self.take(lane, rows)
        return lane


class _Placing:
    """One layout in the making. Lives for one call, so it may change."""

    def __init__(self, graph: RunGraph) -> None:
        self.grid = _Grid()
        self.cells: dict[NodeId, _Cell] = {}
        """Lane and row."""
        self._hooks = _hooks(graph.nodes)
        rows = self._rows(graph.nodes)
        for node in graph.path:
            row = rows[node.id]
            self.cells[node.id] = 0, row
            self.grid.take(0, range(row, row + 1))
        for stretch in _stretches(graph.nodes):
            first = rows[stretch[0].id]
            self._place(stretch, range(first, first + len(stretch)))

    def stubs(self, stubs: Iterable[Stub]) -> Iterator[PlacedStub]:
        for stub in stubs:
            lane, row = self.cells[stub.node]
            free = self.grid.take_free(range(row + 1, row + 2), right_of=lane)
            yield PlacedStub(stub, free, row + 1)

    def ghosts(self, nodes: Iterable[GraphNode]) -> Iterator[Ghost]:
        for node in nodes:
            if not node.skipped:
                continue
            first = self.cells[node.id][1]
            rows = range(first, first + len(node.skipped))
            lane = self.grid.take_free(rows, right_of=0)
            for row, skipped in zip(rows, node.skipped, strict=True):
                yield Ghost(node.id, skipped.step, skipped.why, lane, row)

    def edges(self, nodes: Iterable[GraphNode]) -> Iterator[Edge]:
        for node in nodes:
            source = self._hooks[node.id]
            if source is None:
                continue
            kind = "path" if node.is_preferred else "branch"
            kind = "checkpoint" if node.kind == "checkpoint" else kind
            points = _line(self.cells[source], self.cells[node.id])
            yield Edge(source, node.id, kind, points)

    def stub_edges(self, stubs: Iterable[PlacedStub]) -> Iterator[Edge]:
        for placed in stubs:
            at = placed.stub.node
            yield Edge(at, at, "stub", _line(self.cells[at], (placed.lane, placed.row)))

    def ghost_edges(self, ghosts: Iterable[Ghost]) -> Iterator[Edge]:
        """From where the run came, down through what it passed over."""
        before: Ghost | None = None
        for ghost in ghosts:
            to, source = (ghost.lane, ghost.row), self._hooks[ghost.node]
            if before and before.node == ghost.node:
                yield Edge(ghost.node, ghost.node, "ghost", _line((before.lane, before.row), to))
            elif source is not None:
                yield Edge(source, ghost.node, "ghost", _line(self.cells[source], to))
            before = ghost

    def _rows(self, nodes: Iterable[GraphNode]) -> dict[NodeId, int]:
        rows: dict[NodeId, int] = {}
        for node in nodes:
            hook = self._hooks[node.id]
            rows[node.id] = 0 if hook is None else rows[hook] + 1
        return rows

    def _place(self, stretch: Sequence[GraphNode], rows: range) -> None:
        first = stretch[0]
        at = self._lane(first.parent)
        if first.kind == "checkpoint":
            # To the right, so that the lane of its node stays free for the work.
            lane = self.grid.take_free(rows, right_of=at, wanted=self._lane(self._hooks[first.id]))
        else:
            lane = self.grid.take_free(rows, right_of=0, wanted=at)
        for node, row in zip(stretch, rows, strict=True):
            self.cells[node.id] = lane, row

    def _lane(self, node: NodeId | None) -> int:
        return self.cells[node][0] if node is not None else 0


def _hooks(nodes: Iterable[GraphNode]) -> Mapping[NodeId, NodeId | None]:
    """What each node hangs at: its parent, or the checkpoint that was set before at the same."""
    hooks: dict[NodeId, NodeId | None] = {}
    last_checkpoint: dict[NodeId | None, NodeId] = {}
    for node in nodes:
        hooks[node.id] = node.parent
        if node.kind == "checkpoint" and node.parent is not None:
            hooks[node.id] = last_checkpoint.get(node.parent, node.parent)
            last_checkpoint[node.parent] = node.id
    return hooks


def _stretches(nodes: Iterable[GraphNode]) -> list[list[GraphNode]]:
    """What is beside the path, as it was made in one go; in the order of their beginnings."""
    found: list[list[GraphNode]] = []
    going: list[GraphNode] = []
    """The stretch that is being made; empty while work is on the path."""
    for node in nodes:
        if node.is_preferred:
            going = []
        elif not node.goes_on:
            found.append([node])
        elif going and node.parent == going[-1].id:
            going.append(node)
        else:
            going = [node]
            found.append(going)
    return found


def _line(source: _Cell, target: _Cell) -> tuple[Point, Point, Point, Point]:
    x, y = source[0] + 0.5, source[1] + 0.5
    to_x, to_y = target[0] + 0.5, target[1] + 0.5
    gap = (y + to_y) / 2
    return (x, y), (x, gap), (to_x, gap), (to_x, to_y)
