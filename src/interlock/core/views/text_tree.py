"""The run graph drawn with characters, for a terminal.

A node is recorded with the notes that led to it, which are those of the step before. Here notes
are drawn beside the step they were submitted for, and an attempt that was not accepted has its own.
"""

from collections.abc import Iterator, Sequence

from interlock.core.ids import NodeId
from interlock.core.views.graph import GraphNode, RunGraph
from interlock.core.workflow.operators import clip

_MARKS = {"step": "●", "blocked": "✗", "checkpoint": "◆", "approval": "⏸"}
_EXCERPT_CHARS_MAX = 60


def draw_tree(graph: RunGraph) -> list[str]:
    """Return one line for each node. A branch is indented under the node that it leaves."""
    children = graph.children()
    roots = children.get(None, ())
    return [line for root in roots for line in _draw_branch(children, None, root, "")]


_Children = dict[NodeId | None, list[GraphNode]]


def _draw_branch(
    children: _Children, parent: GraphNode | None, first: GraphNode, edge: str
) -> Iterator[str]:
    """Draw a line of nodes, each with its branches. `parent` is the node that it leaves."""
    # A loop down the line and recursion into branches only: a run may have thousands of steps.
    nodes = list(_main_line(children, first))
    notes_before, *notes_after = _accepted_notes(nodes)
    if parent and notes_before:
        yield f"{edge}○ {parent.title}, another attempt{_excerpt(notes_before)}"
    for index, node in enumerate(nodes):
        if node.skipped:
            yield f"{edge}· skipped: {', '.join(skipped.step for skipped in node.skipped)}"
        yield f"{edge}{_MARKS[node.kind]} {_label(node, notes_after[index])}"
        main = nodes[index + 1] if index + 1 < len(nodes) else None
        for branch in children.get(node.id, []):
            if branch is not main:
                yield from _draw_branch(
                    children, node, branch, f"{edge}│ " if main else f"{edge}  "
                )


def _main_line(children: _Children, first: GraphNode) -> Iterator[GraphNode]:
    current: GraphNode | None = first
    while current is not None:
        yield current
        going_on = [child for child in children.get(current.id, []) if child.kind != "checkpoint"]
        preferred = next((child for child in going_on if child.is_preferred), None)
        current = preferred or (going_on[-1] if going_on else None)


def _accepted_notes(nodes: Sequence[GraphNode]) -> list[str]:
    """Return the notes that were accepted next: before the first node, and after each of them."""
    notes = [""]
    for node in reversed(nodes):
        notes.append(node.notes if node.kind in ("step", "approval") else notes[-1])
    return notes[::-1]


def _label(node: GraphNode, accepted_notes: str) -> str:
    if node.kind == "checkpoint":
        return f"checkpoint {node.id}{_excerpt(node.notes)}"
    title = node.title or "complete"
    tip = "  ← here" if node.is_tip else ""
    if node.kind == "blocked":
        return f"not accepted: {title}  {node.id}{_excerpt(node.notes)}{tip}"
    notes = accepted_notes if node.kind == "step" else ""
    return f"{title}  {node.id}{_excerpt(notes)}{tip}"


def _excerpt(notes: str) -> str:
    line = notes.strip().partition("\n")[0]
    return f"  “{clip(line, _EXCERPT_CHARS_MAX)}”" if line else ""
