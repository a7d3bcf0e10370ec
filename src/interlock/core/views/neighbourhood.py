"""The layout of a note's neighbourhood: notes that link to it on its left, those it names on its
right.

The column of a note is the number of links between it and the middle; a free lane between two
columns leaves room for the lines and for the kind of each link. A note that is linked both ways is
on the right. Within a column the notes keep the order in which they were named, behind the order of
the notes that led to them, so the same links always give the same picture.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

Point: TypeAlias = tuple[float, float]

COLUMN_SPACING = 2
"""The number of lanes from one column to the next."""
_HALF_NODE_WIDTH = 0.447  # of a node's width, in lanes
_BULGE = 0.4


class Relation(msgspec.Struct, frozen=True):
    source: str
    target: str
    kind: str


class PlacedName(msgspec.Struct, frozen=True):
    name: str
    lane: int
    row: int


class LinkLine(msgspec.Struct, frozen=True):
    """A line between two names, whichever way the links go and however many there are."""

    source: str
    target: str
    kinds: tuple[str, ...]
    """The kinds of the links from source to target, each once."""
    back: tuple[str, ...]
    """The kinds of the links from target to source."""
    points: tuple[Point, Point, Point, Point]
    """Start, handles and end of a Bézier curve between the sides of nodes, in lanes and rows."""
    label: Point | None
    """The place for a word, at the side of the outer node; None within one column."""
    is_rightward: bool
    """Whether a word at `label` must grow to the right so that it does not cover the node."""


class Neighbourhood(msgspec.Struct, frozen=True):
    names: tuple[PlacedName, ...]
    """The placed names, the one in the middle first."""
    lines: tuple[LinkLine, ...]
    width: int
    """The width in lanes."""
    height: int
    """The height in rows."""


def neighbourhood(middle: str, relations: Sequence[Relation], *, depth: int) -> Neighbourhood:
    """Place the notes at most `depth` links away, and all links between them."""
    columns = _columns(middle, relations, depth)
    members = defaultdict[int, list[str]](list)
    for name, column in columns.items():
        members[column].append(name)
    height = max(map(len, members.values()))
    leftmost, rightmost = min(members), max(members)
    cells: dict[str, tuple[int, int]] = {}
    for column, names in members.items():
        first = (height - len(names)) // 2
        for row, name in enumerate(names, first):
            cells[name] = (column - leftmost) * COLUMN_SPACING, row
    return Neighbourhood(
        tuple(PlacedName(name, *cells[name]) for name in columns),
        tuple(_lines(relations, cells, cells[middle][0])),
        (rightmost - leftmost) * COLUMN_SPACING + 1,
        height,
    )


def svg_curve(line: LinkLine, *, lane_px: float, row_px: float) -> str:
    """Return the `d` of an SVG path, with lanes and rows of this size."""
    start, start_handle, end_handle, end = (
        f"{round(x * lane_px)} {round(y * row_px)}" for x, y in line.points
    )
    return f"M{start}C{start_handle} {end_handle} {end}"


def _columns(middle: str, relations: Iterable[Relation], depth: int) -> dict[str, int]:
    """Return the column of each name, negative left of the middle; nearer ones first."""
    targets, sources = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for relation in relations:
        targets[relation.source].append(relation.target)
        sources[relation.target].append(relation.source)
    columns = {middle: 0}
    frontier = [middle]
    for _ in range(depth):
        reached: dict[str, int] = {}
        for name in frontier:
            column = columns[name]
            for neighbour, side in (
                *((n, 1) for n in targets[name]),
                *((n, -1) for n in sources[name]),
            ):
                if neighbour not in columns:
                    # Further away, a note stays on the side of the one that led to it.
                    reached.setdefault(neighbour, column + (side if column == 0 else _sign(column)))
        columns |= reached
        frontier = list(reached)
    return columns


def _lines(
    relations: Iterable[Relation], cells: Mapping[str, tuple[int, int]], middle: int
) -> Iterable[LinkLine]:
    kinds = defaultdict[tuple[str, str], dict[str, None]](dict)
    for relation in relations:
        is_placed = relation.source in cells and relation.target in cells
        if is_placed and relation.source != relation.target:
            kinds[relation.source, relation.target][relation.kind] = None
    for (source, target), forward in kinds.items():
        back = kinds.get((target, source), {})
        if back and (cells[source], source) > (cells[target], target):
            continue  # drawn once, from the one further left or higher
        start, end = cells[source], cells[target]
        yield LinkLine(
            source,
            target,
            tuple(forward),
            tuple(back),
            _curve(start, end, middle),
            *_label(start, end, middle),
        )


def _curve(
    source: tuple[int, int], target: tuple[int, int], middle: int
) -> tuple[Point, Point, Point, Point]:
    (lane, row), (to_lane, to_row) = source, target
    x, y, to_x, to_y = lane + 0.5, row + 0.5, to_lane + 0.5, to_row + 0.5
    if lane == to_lane:  # around the nodes between them, on the side of the middle
        side = 1 if lane < middle else -1
        edge = x + side * _HALF_NODE_WIDTH
        return (edge, y), (edge + side * _BULGE, y), (edge + side * _BULGE, to_y), (edge, to_y)
    side = _sign(to_lane - lane)
    start, end = x + side * _HALF_NODE_WIDTH, to_x - side * _HALF_NODE_WIDTH
    half = (start + end) / 2
    return (start, y), (half, y), (half, to_y), (end, to_y)


def _label(
    source: tuple[int, int], target: tuple[int, int], middle: int
) -> tuple[Point | None, bool]:
    if source[0] == target[0]:
        return None, False
    lane, row = max(source, target, key=lambda cell: abs(cell[0] - middle))
    is_rightward = lane < middle
    return (
        lane + 0.5 + (_HALF_NODE_WIDTH if is_rightward else -_HALF_NODE_WIDTH),
        row + 0.5,
    ), is_rightward


def _sign(number: int) -> int:
    return 1 if number > 0 else -1
