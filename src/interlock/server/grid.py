"""CSS classes for the positions in a graph: pages may have no inline styles."""

LANE_PX, ROW_PX = 188, 64
LANES, ROWS = 64, 3_000
_LEFT_PX, _TOP_PX = 10, 10


def _grid_css() -> str:
    lanes = (f".l{lane}{{left:{lane * LANE_PX + _LEFT_PX}px}}" for lane in range(LANES))
    rows = (f".r{row}{{top:{row * ROW_PX + _TOP_PX}px}}" for row in range(ROWS))
    return "\n".join((*lanes, *rows))


GRID_CSS = _grid_css()
