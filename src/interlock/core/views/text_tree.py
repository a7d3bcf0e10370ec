"""The run graph drawn with characters, for a terminal."""

from collections.abc import Iterator

from interlock.core.ids import NodeId
from interlock.core.views.graph import GraphNode, RunGraph

_MARKS = {"step": "●", "blocked": "✗", "checkpoint": "◆", "approval": "⏸"}


def draw_tree(graph: RunGraph) -> list[str]:
    """Return one line for each node. A branch is indented under the node that it leaves."""
    children = graph.children()
    return [line for root in children.get(None, ()) for line in _draw_branch(children, root, "")]


_Children = dict[NodeId | None, list[GraphNode]]


def _draw_branch(children: _Children, node: GraphNode, edge: str) -> Iterator[str]:
    # A loop down the main line and recursion into branches only: a run may have thousands of steps.
    current: GraphNode | None = node
    while current is not None:
        yield f"{edge}{_MARKS[current.kind]} {_label(current)}"
        main, others = _split_children(children.get(current.id, []))
        for branch in others:
            yield from _draw_branch(children, branch, f"{edge}│ " if main else f"{edge}  ")
        current = main


def _split_children(children: list[GraphNode]) -> tuple[GraphNode | None, list[GraphNode]]:
    """Return the child that continues the main line, and the others."""
    going_on = [child for child in children if child.kind != "checkpoint"]
    main = next((child for child in going_on if child.is_preferred), None)
    main = main or (going_on[-1] if going_on else None)
    return main, [child for child in children if child is not main]


def _label(node: GraphNode) -> str:
    line = node.notes.strip().partition("\n")[0]
    excerpt = f"  “{line[:60]}{'…' if len(line) > 60 else ''}”" if line else ""  # noqa: PLR2004
    if node.kind == "checkpoint":
        return f"checkpoint {node.id}{excerpt}"
    title = node.title or "complete"
    tip = "  ← here" if node.is_tip else ""
    kind = "not accepted: " if node.kind == "blocked" else ""
    return f"{kind}{title}  {node.id}{excerpt}{tip}"
