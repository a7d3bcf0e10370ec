"""The layout of what lies around a note: to its left what links to it, to its right what it names.

How many links something is away is its column; a free lane between two columns leaves room for the
lines and for what kind of link each is. What is linked both ways stands on the right. Within a
column things keep the order in which they were named, behind the order of what led to them, so the
same links always give the same picture.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

Point: TypeAlias = tuple[float, float]

COLUMN_SPACING = 2
"""Lanes from one column to the next."""
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
    """Between two names, whichever way the links go and however many there are."""

    source: str
    target: str
    kinds: tuple[str, ...]
    """Of the links from source to target, each once."""
    back: tuple[str, ...]
    """Of those from target to source."""
    points: tuple[Point, Point, Point, Point]
    """In lanes and rows: start, handles and end of a Bézier curve, from side to side of nodes."""
    label: Point | None
    """Where the outer node is entered, for a word; None between neighbours in one column."""
    is_rightward: bool
    """Which way a word at `label` must grow so that it does not lie on the node."""


class Neighbourhood(msgspec.Struct, frozen=True):
    names: tuple[PlacedName, ...]
    """The one in the middle first."""
    lines: tuple[LinkLine, ...]
    width: int
    """In lanes."""
    height: int
    """In rows."""


def neighbourhood(middle: str, relations: Sequence[Relation], *, depth: int) -> Neighbourhood:
    """What is at most `depth` links away, and all links between those."""
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
    """The `d` of an SVG path, with lanes and rows of this size."""
    start, one, two, end = (f"{round(x * lane_px)} {round(y * row_px)}" for x, y in line.points)
    return f"M{start}C{one} {two} {end}"


def _columns(middle: str, relations: Iterable[Relation], depth: int) -> dict[str, int]:
    """How far each is from the middle, negative on its left; nearer ones first."""
    out, into = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for relation in relations:
        out[relation.source].append(relation.target)
        into[relation.target].append(relation.source)
    columns = {middle: 0}
    edge = [middle]
    for _ in range(depth):
        reached: dict[str, int] = {}
        for name in edge:
            column = columns[name]
            for other, side in (*((o, 1) for o in out[name]), *((o, -1) for o in into[name])):
                if other not in columns:
                    # Further away, what is found stays on the side of what led there.
                    reached.setdefault(other, column + (side if column == 0 else _sign(column)))
        columns |= reached
        edge = list(reached)
    return columns


def _lines(
    relations: Iterable[Relation], cells: Mapping[str, tuple[int, int]], middle: int
) -> Iterable[LinkLine]:
    kinds = defaultdict[tuple[str, str], dict[str, None]](dict)
    for relation in relations:
        is_placed = relation.source in cells and relation.target in cells
        if is_placed and relation.source != relation.target:
            kinds[relation.source, relation.target][relation.kind] = None
    for (source, target), there in kinds.items():
        back = kinds.get((target, source), {})
        if back and (cells[source], source) > (cells[target], target):
            continue  # drawn once, from the one that stands further left or higher
        start, end = cells[source], cells[target]
        yield LinkLine(
            source,
            target,
            tuple(there),
            tuple(back),
            _curve(start, end, middle),
            *_label(start, end, middle),
        )


def _curve(
    source: tuple[int, int], target: tuple[int, int], middle: int
) -> tuple[Point, Point, Point, Point]:
    (lane, row), (to_lane, to_row) = source, target
    x, y, to_x, to_y = lane + 0.5, row + 0.5, to_lane + 0.5, to_row + 0.5
    if lane == to_lane:  # around what stands between them, on the side of the middle
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
