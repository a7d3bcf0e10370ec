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


class _LayoutPart(msgspec.Struct, frozen=True, rename="camel"):
    pass


class PlacedNode(_LayoutPart, frozen=True):
    id: NodeId
    lane: int
    row: int
    kind: NodeKind
    is_preferred: bool


class PlacedStub(_LayoutPart, frozen=True):
    stub: Stub
    lane: int
    row: int


class Ghost(_LayoutPart, frozen=True):
    """A step or loop that was skipped."""

    node: NodeId
    """The node that the run came to instead."""
    step: str
    why: str
    lane: int
    row: int


class LayoutEdge(_LayoutPart, frozen=True):
    """A line down from one row to the next: it crosses no node, only the gap between the rows."""

    source: NodeId
    """Its parent; of a further checkpoint at the same node, the checkpoint before it."""
    target: NodeId
    """Of an edge to a stub, the node at which it hangs; to a ghost, the node that was come to."""
    kind: Literal["path", "branch", "checkpoint", "stub", "ghost"]
    points: tuple[Point, Point, Point, Point]
    """In lanes and rows; the middle of a cell is at one half. As a polyline they are a line with
    two corners, as start, handles and end of a Bézier curve a smooth one."""


class Layout(_LayoutPart, frozen=True):
    nodes: tuple[PlacedNode, ...]
    """In the order in which they were made."""
    edges: tuple[LayoutEdge, ...]
    stubs: tuple[PlacedStub, ...]
    ghosts: tuple[Ghost, ...]
    width: int
    """In lanes."""
    height: int
    """In rows."""


def layout(graph: RunGraph, *, stubs: Sequence[Stub] = (), ghosts: bool = False) -> Layout:
    """`stubs` as `collapse` has made them; `ghosts`: show what was skipped."""
    placing = _LayoutBuilder(graph)
    nodes = tuple(
        PlacedNode(node.id, *placing.cells[node.id], node.kind, node.is_preferred)
        for node in graph.nodes
    )
    placed_stubs = tuple(placing.place_stubs(stubs))
    placed_ghosts = tuple(placing.place_ghosts(graph.nodes)) if ghosts else ()
    edges = (
        *placing.edges(graph.nodes),
        *placing.stub_edges(placed_stubs),
        *placing.ghost_edges(placed_ghosts),
    )
    width, height = placing.grid.width, placing.grid.height
    return Layout(nodes, edges, placed_stubs, placed_ghosts, width, height)


def svg_path(edge: LayoutEdge, *, lane_px: float, row_px: float) -> str:
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

    def occupy(self, lane: int, rows: range) -> None:
        for row in rows:
            self._taken[row] = self._taken.get(row, 0) | 1 << lane
        self.width = max(self.width, lane + 1)
        self.height = max(self.height, rows.stop)

    def occupy_free_lane(self, rows: range, *, right_of: int, preferred: int = 0) -> int:
        """The lane that was `wanted` if it is free over `rows`, else the first that is."""
        taken = (1 << right_of + 1) - 1
        for row in rows:
            taken |= self._taken.get(row, 0)
        first_free = (~taken & taken + 1).bit_length() - 1
        lane = first_free if taken >> preferred & 1 else preferred
        self.occupy(lane, rows)
        return lane


class _LayoutBuilder:
    """One layout in the making. Lives for one call, so it may change."""

    def __init__(self, graph: RunGraph) -> None:
        self.grid = _Grid()
        self.cells: dict[NodeId, _Cell] = {}
        """Lane and row."""
        self._anchors = _find_anchors(graph.nodes)
        rows = self._rows(graph.nodes)
        for node in graph.path:
            row = rows[node.id]
            self.cells[node.id] = 0, row
            self.grid.occupy(0, range(row, row + 1))
        for stretch in _stretches(graph.nodes):
            first = rows[stretch[0].id]
            self._place(stretch, range(first, first + len(stretch)))

    def place_stubs(self, stubs: Iterable[Stub]) -> Iterator[PlacedStub]:
        for stub in stubs:
            lane, row = self.cells[stub.node]
            free = self.grid.occupy_free_lane(range(row + 1, row + 2), right_of=lane)
            yield PlacedStub(stub, free, row + 1)

    def place_ghosts(self, nodes: Iterable[GraphNode]) -> Iterator[Ghost]:
        for node in nodes:
            if not node.skipped:
                continue
            first = self.cells[node.id][1]
            rows = range(first, first + len(node.skipped))
            lane = self.grid.occupy_free_lane(rows, right_of=0)
            for row, skipped in zip(rows, node.skipped, strict=True):
                yield Ghost(node.id, skipped.step, skipped.why, lane, row)

    def edges(self, nodes: Iterable[GraphNode]) -> Iterator[LayoutEdge]:
        for node in nodes:
            source = self._anchors[node.id]
            if source is None:
                continue
            kind = "path" if node.is_preferred else "branch"
            kind = "checkpoint" if node.kind == "checkpoint" else kind
            points = _edge_points(self.cells[source], self.cells[node.id])
            yield LayoutEdge(source, node.id, kind, points)

    def stub_edges(self, stubs: Iterable[PlacedStub]) -> Iterator[LayoutEdge]:
        for placed in stubs:
            at = placed.stub.node
            yield LayoutEdge(
                at, at, "stub", _edge_points(self.cells[at], (placed.lane, placed.row))
            )

    def ghost_edges(self, ghosts: Iterable[Ghost]) -> Iterator[LayoutEdge]:
        """From where the run came, down through what it passed over."""
        before: Ghost | None = None
        for ghost in ghosts:
            to, source = (ghost.lane, ghost.row), self._anchors[ghost.node]
            if before and before.node == ghost.node:
                yield LayoutEdge(
                    ghost.node, ghost.node, "ghost", _edge_points((before.lane, before.row), to)
                )
            elif source is not None:
                yield LayoutEdge(source, ghost.node, "ghost", _edge_points(self.cells[source], to))
            before = ghost

    def _rows(self, nodes: Iterable[GraphNode]) -> dict[NodeId, int]:
        rows: dict[NodeId, int] = {}
        for node in nodes:
            hook = self._anchors[node.id]
            rows[node.id] = 0 if hook is None else rows[hook] + 1
        return rows

    def _place(self, stretch: Sequence[GraphNode], rows: range) -> None:
        first = stretch[0]
        at = self._lane(first.parent)
        if first.kind == "checkpoint":
            # To the right, so that the lane of its node stays free for the work.
            lane = self.grid.occupy_free_lane(
                rows, right_of=at, preferred=self._lane(self._anchors[first.id])
            )
        else:
            lane = self.grid.occupy_free_lane(rows, right_of=0, preferred=at)
        for node, row in zip(stretch, rows, strict=True):
            self.cells[node.id] = lane, row

    def _lane(self, node: NodeId | None) -> int:
        return self.cells[node][0] if node is not None else 0


def _find_anchors(nodes: Iterable[GraphNode]) -> Mapping[NodeId, NodeId | None]:
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


def _edge_points(source: _Cell, target: _Cell) -> tuple[Point, Point, Point, Point]:
    x, y = source[0] + 0.5, source[1] + 0.5
    to_x, to_y = target[0] + 0.5, target[1] + 0.5
    gap = (y + to_y) / 2
    return (x, y), (x, gap), (to_x, gap), (to_x, to_y)
