"""Compare two branches of a run by their submissions since they parted."""

import msgspec

from interlock.app.context import App
from interlock.app.refusals import NoSuchNode
from interlock.app.sessions.session_views import ViewedSession, context_at, read_blobs, read_nodes
from interlock.core.ids import BlobRef, NodeId, RunId
from interlock.core.views.comparison import BranchComparison, compare, parting
from interlock.core.views.node_panel import shown_json
from interlock.core.views.run_nodes import PlacedRunNode

COMPARED_BYTES_MAX = 20_000  # of an artifact; what is larger is named only


class ComparedBranches(msgspec.Struct, frozen=True):
    """Two branches of a run and their submissions."""

    left: PlacedRunNode
    right: PlacedRunNode
    """The newest nodes of the two."""
    fork: PlacedRunNode
    comparison: BranchComparison
    artifacts: dict[BlobRef, str]
    """The contents of artifacts, as far as they were read."""


def compare_branches(
    app: App, viewed: ViewedSession, *, left: str, right: str
) -> ComparedBranches | NoSuchNode:
    """Compare the branches that two nodes are on, each from the fork to where it ends.

    Without `left`: the path of the viewed run.
    """
    nodes = read_nodes(app, viewed).of_run(viewed.run.run if viewed.run else RunId(""))
    ends = [
        nodes.branch_end(nodes.by_id[NodeId(name)]) if name in nodes.by_id else None
        for name in (left or (nodes.tip.id if nodes.tip else ""), right)
    ]
    first, second = ends
    parted = parting(nodes, first, second) if first and second else None
    if first is None or second is None or parted is None:
        return NoSuchNode(right if first else left, viewed.session)
    events = app.reader.events_with_keys(viewed.session, parted.output_keys)
    found = compare(parted, events, context_at(app, first), context_at(app, second))
    refs = [
        artifact.ref
        for step in found.steps
        for entry in (step.left, step.right)
        if entry and not step.is_same
        for artifact in entry.artifacts
        if artifact.size <= COMPARED_BYTES_MAX
    ]
    contents = {ref: shown_json(content) for ref, content in read_blobs(app, refs).items()}
    return ComparedBranches(first, second, parted.fork, found, contents)
