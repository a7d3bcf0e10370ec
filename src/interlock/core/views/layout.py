"""The layout of a run graph: a lane and a row for each node, and the lines between them.

Lane 0 is the path from the root to the tip, and nothing else. A row is the distance from the root.
Nodes off the path are laid out *stretch* by stretch, in the order in which they were begun: a
stretch was made in one go, without work elsewhere in between, and occupies the first lane that is
free over all of its rows; where work was resumed, the lane of the node it continues, if that is
free. Checkpoints hang to the right of their node, each below the one before.

What holds when the graph grows:

- No row ever changes.
- As long as no node joins or leaves the path (it only grows, whatever else is added), nothing
  moves.
- When the path switches, nodes made before the first one that joined or left it do not move;
  neither do those that are on the path before and after. Others may change their lane.

The reason: a stretch ends when work goes on elsewhere, and the last one is always on the path. So
those off the path are complete, and each is placed knowing only those that were begun before.

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
    """The parent; for a further checkpoint at the same node, the checkpoint before it."""
    target: NodeId
    """For an edge to a stub, the node at which it hangs; to a ghost, the node reached instead."""
    kind: Literal["path", "branch", "checkpoint", "stub", "ghost"]
    points: tuple[Point, Point, Point, Point]
    """Points in lanes and rows; the middle of a cell is at one half. As a polyline they are a line
    with two corners; as start, handles and end of a Bézier curve, a smooth one."""


class Layout(_LayoutPart, frozen=True):
    nodes: tuple[PlacedNode, ...]
    """The nodes in the order in which they were made."""
    edges: tuple[LayoutEdge, ...]
    stubs: tuple[PlacedStub, ...]
    ghosts: tuple[Ghost, ...]
    width: int
    """The width in lanes."""
    height: int
    """The height in rows."""


def layout(graph: RunGraph, *, stubs: Sequence[Stub] = (), ghosts: bool = False) -> Layout:
    """Place every node. `stubs` are those that `collapse` made; `ghosts`: show what was skipped."""
    builder = _LayoutBuilder(graph)
    nodes = tuple(
        PlacedNode(node.id, *builder.cells[node.id], node.kind, node.is_preferred)
        for node in graph.nodes
    )
    placed_stubs = tuple(builder.place_stubs(stubs))
    placed_ghosts = tuple(builder.place_ghosts(graph.nodes)) if ghosts else ()
    edges = (
        *builder.edges(graph.nodes),
        *builder.stub_edges(placed_stubs),
        *builder.ghost_edges(placed_ghosts),
    )
    width, height = builder.grid.width, builder.grid.height
    return Layout(nodes, edges, placed_stubs, placed_ghosts, width, height)


def svg_path(edge: LayoutEdge, *, lane_px: float, row_px: float) -> str:
    """Return the `d` of an SVG path for a smooth line, with lanes and rows of this size."""
    start, start_handle, end_handle, end = (
        f"{round(x * lane_px)} {round(y * row_px)}" for x, y in edge.points
    )
    is_straight = edge.points[0][0] == edge.points[3][0]
    return f"M{start}L{end}" if is_straight else f"M{start}C{start_handle} {end_handle} {end}"


_Cell: TypeAlias = tuple[int, int]


class _Grid:
    """The occupied cells: for each row a bit for each lane, so that a lookup is one operation."""

    def __init__(self) -> None:
        self._occupied: dict[int, int] = {}
        self.width = 0
        self.height = 0

    def occupy(self, lane: int, rows: range) -> None:
        for row in rows:
            self._occupied[row] = self._occupied.get(row, 0) | 1 << lane
        self.width = max(self.width, lane + 1)
        self.height = max(self.height, rows.stop)

    def occupy_free_lane(self, rows: range, *, right_of: int, preferred: int = 0) -> int:
        """Occupy the `preferred` lane if it is free over `rows`, else the first that is."""
        occupied = (1 << right_of + 1) - 1
        for row in rows:
            occupied |= self._occupied.get(row, 0)
        first_free = (~occupied & occupied + 1).bit_length() - 1
        lane = first_free if occupied >> preferred & 1 else preferred
        self.occupy(lane, rows)
        return lane


class _LayoutBuilder:
    """A layout while it is being built. It exists for one call, so it may change."""

    def __init__(self, graph: RunGraph) -> None:
        self.grid = _Grid()
        self.cells: dict[NodeId, _Cell] = {}
        """The lane and row of each node."""
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
            node = placed.stub.node
            yield LayoutEdge(
                node, node, "stub", _edge_points(self.cells[node], (placed.lane, placed.row))
            )

    def ghost_edges(self, ghosts: Iterable[Ghost]) -> Iterator[LayoutEdge]:
        """The edges from where the run came, down through what it passed over."""
        previous: Ghost | None = None
        for ghost in ghosts:
            cell, source = (ghost.lane, ghost.row), self._anchors[ghost.node]
            if previous and previous.node == ghost.node:
                yield LayoutEdge(
                    ghost.node,
                    ghost.node,
                    "ghost",
                    _edge_points((previous.lane, previous.row), cell),
                )
            elif source is not None:
                yield LayoutEdge(
                    source, ghost.node, "ghost", _edge_points(self.cells[source], cell)
                )
            previous = ghost

    def _rows(self, nodes: Iterable[GraphNode]) -> dict[NodeId, int]:
        rows: dict[NodeId, int] = {}
        for node in nodes:
            anchor = self._anchors[node.id]
            rows[node.id] = 0 if anchor is None else rows[anchor] + 1
        return rows

    def _place(self, stretch: Sequence[GraphNode], rows: range) -> None:
        first = stretch[0]
        parent_lane = self._lane(first.parent)
        if first.kind == "checkpoint":
            # To the right, so that the lane of its node stays free for the work.
            lane = self.grid.occupy_free_lane(
                rows, right_of=parent_lane, preferred=self._lane(self._anchors[first.id])
            )
        else:
            lane = self.grid.occupy_free_lane(rows, right_of=0, preferred=parent_lane)
        for node, row in zip(stretch, rows, strict=True):
            self.cells[node.id] = lane, row

    def _lane(self, node: NodeId | None) -> int:
        return self.cells[node][0] if node is not None else 0


def _find_anchors(nodes: Iterable[GraphNode]) -> Mapping[NodeId, NodeId | None]:
    """Return what each node hangs at: its parent, or the previous checkpoint at the same parent."""
    anchors: dict[NodeId, NodeId | None] = {}
    last_checkpoint: dict[NodeId | None, NodeId] = {}
    for node in nodes:
        anchors[node.id] = node.parent
        if node.kind == "checkpoint" and node.parent is not None:
            anchors[node.id] = last_checkpoint.get(node.parent, node.parent)
            last_checkpoint[node.parent] = node.id
    return anchors


def _stretches(nodes: Iterable[GraphNode]) -> list[list[GraphNode]]:
    """Return the nodes off the path, grouped as they were made in one go, by their beginnings."""
    stretches: list[list[GraphNode]] = []
    # The stretch that is being made; empty while work is on the path.
    current: list[GraphNode] = []
    for node in nodes:
        if node.is_preferred:
            current = []
        elif not node.goes_on:
            stretches.append([node])
        elif current and node.parent == current[-1].id:
            current.append(node)
        else:
            current = [node]
            stretches.append(current)
    return stretches


def _edge_points(source: _Cell, target: _Cell) -> tuple[Point, Point, Point, Point]:
    x, y = source[0] + 0.5, source[1] + 0.5
    to_x, to_y = target[0] + 0.5, target[1] + 0.5
    gap = (y + to_y) / 2
    return (x, y), (x, gap), (to_x, gap), (to_x, to_y)
