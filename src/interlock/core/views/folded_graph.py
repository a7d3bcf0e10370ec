"""The run graph from the nodes of a run, with each long loop on the path folded into one node."""

from collections.abc import Collection, Mapping
from itertools import groupby, pairwise

import msgspec

from interlock.core.ids import NodeId
from interlock.core.views.graph import GraphNode, RunGraph, SkippedStep
from interlock.core.views.run_nodes import PlacedRunNode, RunNodes
from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledWorkflow

LOOP_NODES_MAX = 6  # a loop with more nodes on the path is folded


class FoldedLoop(msgspec.Struct, frozen=True):
    title: str
    last_pass: int
    blocked_count: int
    """The number of its attempts that were not accepted."""
    at_ms: int
    until_ms: int | None


class FoldedGraph(msgspec.Struct, frozen=True):
    graph: RunGraph
    loops: dict[NodeId, FoldedLoop]
    """The folded loops, by the node that stands for each: its first one."""
    until_ms: dict[NodeId, int]
    """When the node after each one on the path was made."""


def fold_loops(
    nodes: RunNodes,
    workflow: CompiledWorkflow | None,
    *,
    opened: Collection[NodeId],
    skipped: Mapping[NodeId, tuple[SkippedStep, ...]],
) -> FoldedGraph:
    """`opened`: the loops that these nodes stand for are not folded."""
    stand_ins: dict[NodeId, NodeId] = {}
    loops: dict[NodeId, FoldedLoop] = {}
    path = nodes.path
    until_ms = {node.id: after.at_ms for node, after in pairwise(path)}
    for index, stretch in groupby(path, key=_outer_loop):
        members = list(stretch)
        loop = _loop(workflow, index)
        is_group = loop is not None and loop.kind == "group"
        if index is None or is_group or len(members) <= LOOP_NODES_MAX or members[0].id in opened:
            continue
        stand_ins |= {member.id: members[0].id for member in members}
        loops[members[0].id] = FoldedLoop(
            loop.title if loop else "Loop",
            members[-1].created.position[0].iteration,
            sum(member.kind == "blocked" for member in members),
            members[0].at_ms,
            until_ms.get(members[-1].id),
        )
    graph_nodes = tuple(
        _graph_node(nodes, node, stand_ins, skipped.get(node.id, ()))
        for node in nodes.nodes
        if stand_ins.get(node.id, node.id) == node.id
    )
    tip = nodes.tip.id if nodes.tip else None
    graph = RunGraph(nodes.run, stand_ins.get(tip, tip) if tip else None, graph_nodes)
    return FoldedGraph(graph, loops, until_ms)


def _outer_loop(node: PlacedRunNode) -> int | None:
    position = node.created.position
    return position[0].index if len(position) > 1 else None


def _loop(workflow: CompiledWorkflow | None, index: int | None) -> CompiledLoop | None:
    parts = workflow.steps if workflow else ()
    part = parts[index] if index is not None and index < len(parts) else None
    return part if isinstance(part, CompiledLoop) else None


def _graph_node(
    nodes: RunNodes,
    node: PlacedRunNode,
    stand_ins: Mapping[NodeId, NodeId],
    skipped: tuple[SkippedStep, ...],
) -> GraphNode:
    parent = node.created.parent if node.created.parent in nodes.by_id else None
    tip = nodes.tip.id if nodes.tip else None
    return GraphNode(
        node.id,
        node.kind,
        node.seq,
        node.at_ms,
        stand_ins.get(parent, parent) if parent else None,
        node.created.step_id,
        node.created.step_title,
        "",
        tip is not None and stand_ins.get(tip, tip) == node.id,
        node.id in nodes.path_ids,
        node.created.is_aside,
        skipped,
    )
