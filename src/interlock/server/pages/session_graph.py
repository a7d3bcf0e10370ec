"""The graph of a run: its nodes in lanes, with loops and branches folded, and a node beside it."""

from functools import partial
from typing import Any

import msgspec
from starlette.routing import Route

from interlock.app.sessions import session_views
from interlock.core.explanation import Explanation
from interlock.core.ids import NodeId
from interlock.core.views.collapse import CONFIRM_ABOVE, CollapsedGraph, collapse
from interlock.core.views.folded_graph import FoldedGraph
from interlock.core.views.layout import Layout, layout, svg_path
from interlock.core.views.run_nodes import RunNodes
from interlock.core.workflow.operators import clip
from interlock.server.assets import LANE_PX, LANES, ROW_PX, ROWS
from interlock.server.console import Console, Page, PageRequest
from interlock.server.pages.session import session_page, view_session

REASON_CHARS_MAX = 26  # as wide as a node


class EdgeReason(msgspec.Struct, frozen=True):
    """The words beside the line to a branch."""

    x: int
    y: int
    words: str
    whole: str


def routes(console: Console) -> list[Route]:
    return [console.page("/sessions/{session}/graph", graph)]


def graph(request: PageRequest) -> Page | Explanation:
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    session_nodes = session_views.read_nodes(request.app, viewed)
    facts: dict[str, Any] = {"drawn": None}
    if viewed.run is not None:
        nodes = session_nodes.of_run(viewed.run.run)
        forks, shows_ghosts = request.word("forks"), request.word("skipped") == "yes"
        folded = session_views.folded_graph(
            request.app, viewed.run, nodes, opened=_node_ids(forks), has_skipped=shows_ghosts
        )
        facts = {"drawn": None, "count": len(nodes.nodes), "anyway": ""}
        if len(folded.graph.nodes) > CONFIRM_ABOVE and request.word("draw") != "yes":
            facts["anyway"] = request.without(draw="yes")
        else:
            facts |= _drawing_facts(request, nodes, folded, shows_ghosts=shows_ghosts)
    return session_page(request, viewed, "graph", facts, session_nodes)


def _drawing_facts(
    request: PageRequest, nodes: RunNodes, folded: FoldedGraph, *, shows_ghosts: bool
) -> dict[str, Any]:
    forks = request.word("forks")
    expanded = {node.id for node in folded.graph.nodes} if forks == "all" else _node_ids(forks)
    collapsed = collapse(folded.graph, expanded=expanded)
    laid = layout(collapsed.graph, stubs=collapsed.stubs, ghosts=shows_ghosts)
    if laid.width > LANES or laid.height > ROWS:
        return {}
    return {
        "drawn": laid,
        "by_id": {node.id: node for node in collapsed.graph.nodes},
        "folded": folded,
        "width": laid.width * LANE_PX,
        "height": laid.height * ROW_PX,
        "edges": [
            (edge.kind, svg_path(edge, lane_px=LANE_PX, row_px=ROW_PX)) for edge in laid.edges
        ],
        "reasons": _reasons(request, nodes, collapsed, laid),
        "too_much": collapsed.is_too_much,
        "forks": forks,
        "fork_url": partial(_fork_url, request),
        "toggle": request.without("forks") if forks else request.without(forks="all"),
        "ghosts_url": request.without("skipped")
        if shows_ghosts
        else request.without(skipped="yes"),
        "shows_ghosts": shows_ghosts,
    }


def _fork_url(request: PageRequest, node: NodeId) -> str:
    """The address of the page with what is folded at a node opened."""
    return request.without(forks=" ".join([*_node_ids(request.word("forks")), node]))


def _reasons(
    request: PageRequest, nodes: RunNodes, collapsed: CollapsedGraph, laid: Layout
) -> list[EdgeReason]:
    """The first sentence of the submission with which each branch leaves the path."""
    by_id = {node.id: node for node in collapsed.graph.nodes}
    starts = [
        placed
        for placed in laid.nodes
        if not placed.is_preferred
        and placed.kind != "checkpoint"
        and (parent := by_id[placed.id].parent) in by_id
        and by_id[NodeId(str(parent))].is_preferred
    ]
    sentences = session_views.sentences_to(
        request.app, request.params["session"], [nodes.by_id[placed.id] for placed in starts]
    )
    return [
        EdgeReason(
            round((placed.lane + 0.5) * LANE_PX),
            placed.row * ROW_PX + 6,
            clip(sentence, REASON_CHARS_MAX),
            sentence,
        )
        for placed in starts
        if (sentence := sentences[placed.id])
    ]


def _node_ids(names: str) -> list[NodeId]:
    return [NodeId(name) for name in names.split() if name != "all"]
