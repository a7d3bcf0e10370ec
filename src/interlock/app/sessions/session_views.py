"""Look at one session closely: its runs, the path of one, a node, its events.

All is read as it is stored. Whether the chain is sound is checked in `lookup`.
"""

import contextlib
from collections.abc import Collection, Iterable, Sequence
from functools import partial

import msgspec

from interlock.app.context import App
from interlock.app.refusals import NoSuchNode, NoSuchRun, NoSuchSession
from interlock.app.sessions.lookup import find_session
from interlock.app.sessions.statuses import Observer
from interlock.core.canonical import Json
from interlock.core.ids import BlobRef, GapId, NodeId, SessionId
from interlock.core.session import context as contexts
from interlock.core.session.context import Context
from interlock.core.session.events import Envelope, GapRecorded, TraceAppended, decode_envelope
from interlock.core.session.fact_events import gap_resolved_key
from interlock.core.session.head import Head
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead
from interlock.core.views import node_panel
from interlock.core.views.activity import pass_text
from interlock.core.views.decisions import titles_of
from interlock.core.views.events import EventRow, event_row
from interlock.core.views.folded_graph import FoldedGraph, fold_loops
from interlock.core.views.graph import SkippedStep, skipped_steps
from interlock.core.views.node_panel import NodePanel, places_around
from interlock.core.views.outline import Outline, outline_of
from interlock.core.views.outline_details import (
    StepDetails,
    detail_keys,
    notes_to,
    output_key_to,
    step_details,
)
from interlock.core.views.path import Path, closed_gaps, path_of
from interlock.core.views.run_nodes import PlacedRunNode, RunNodes, SessionNodes
from interlock.core.views.sentences import first_sentence
from interlock.core.views.status import SessionStatus, Status, run_status
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledWorkflow
from interlock.store import queries
from interlock.store.failures import StoreFailure

SCANNED_EVENTS_MAX = 20_000  # events that a filter may pass over before a page comes back
CHUNK = 500


class ViewedSession(msgspec.Struct, frozen=True):
    """A session as it stands, with one of its runs."""

    session: SessionId
    head: Head
    stream: Stream
    """The end of its stream."""
    runs: tuple[RunHead, ...]
    """All of its runs, in the order in which they were started."""
    run: RunHead | None
    """The requested one, or the newest."""
    status: SessionStatus
    last_ms: int
    """When its agent was last active."""
    client: str
    """Its client; empty if unknown."""

    @property
    def needs_user(self) -> bool:
        """Whether it has a card in the inbox."""
        both = (self.status.main, self.status.beside)
        return not self.head.is_archived and any(one and one.needs_user for one in both)

    def status_of(self, run: RunHead) -> Status:
        """Return the status of one of its runs."""
        return run_status(run, self.head)


class EventRowPage(msgspec.Struct, frozen=True):
    rows: tuple[EventRow, ...]
    next: int | None
    """The next page begins before the event of this number; none on the last page."""


def view_session(
    app: App, id_or_prefix: str, run: str = ""
) -> ViewedSession | NoSuchSession | NoSuchRun:
    session = find_session(app.reader, id_or_prefix)
    if isinstance(session, NoSuchSession):
        return session
    stream = app.reader.stream(session)
    assert stream is not None, "it was found a moment ago"
    assert stream.head is not None, "a stored stream has a head"
    head, runs = stream.head, tuple(app.reader.runs(session))
    run_head = next((candidate for candidate in runs if candidate.run == run), None)
    if run and run_head is None:
        return NoSuchRun(run, tuple(candidate.run for candidate in runs))
    run_head = run_head or (runs[-1] if runs else None)
    observer = Observer(app)
    return ViewedSession(
        session=session,
        head=head,
        stream=stream,
        runs=runs,
        run=run_head,
        status=observer.status(session, head, run_head),
        last_ms=observer.last_ms(session, head),
        client=observer.client_name(session, head),
    )


def history(app: App, viewed: ViewedSession) -> Sequence[Envelope]:
    """All events of the session, which the views below are built from: read once for a page."""
    return app.reader.history(viewed.session)


def path(app: App, viewed: ViewedSession, envelopes: Sequence[Envelope]) -> Path | None:
    """The path of the viewed run; None where the session has no run."""
    if viewed.run is None:
        return None
    return path_of(
        viewed.run,
        envelopes,
        titles=_step_titles(app, viewed.run),
    )


def read_nodes(app: App, viewed: ViewedSession) -> SessionNodes:
    """The nodes of all runs of a session."""
    return app.node_cache.nodes(app.reader, viewed.stream)


def outline(
    app: App,
    run: RunHead,
    nodes: RunNodes,
    *,
    looked_at: NodeId | None,
    opened: Collection[str],
    closed: Collection[str],
) -> Outline:
    """The path of a run, with everything folded that is neither opened nor looked at."""
    return outline_of(
        run,
        nodes,
        _workflow(app, run),
        looked_at=looked_at,
        opened=opened,
        closed=closed,
        planned_passes=partial(_planned_passes, context_at(app, nodes.tip)),
    )


def pass_of(app: App, run: RunHead, nodes: SessionNodes) -> str:
    """The pass of the loop in which a run stands, in words; empty if it stands in none."""
    tip, workflow = nodes.by_id.get(run.tip) if run.tip else None, _workflow(app, run)
    if tip is None or workflow is None or len(tip.created.position) < 2:  # noqa: PLR2004
        return ""
    return pass_text(workflow, tip.created.position, context_at(app, tip))


def context_at(app: App, node: PlacedRunNode | None) -> Context:
    try:
        return contexts.decode(app.reader.blob(node.created.context)) if node else {}
    except StoreFailure:
        return {}


def _planned_passes(context: Context, loop: CompiledLoop) -> int | None:
    planned = positions.planned_passes(loop, context)
    return planned if isinstance(planned, int) and planned > 0 else None


def outline_details(
    app: App, session: SessionId, run: RunHead, shown: Outline
) -> dict[NodeId, StepDetails]:
    """The notes and decisions of the steps that are shown, by the node where each was given."""
    steps = shown.steps()
    events = app.reader.events_with_keys(session, detail_keys(steps))
    return step_details(steps, events, _step_titles(app, run))


def folded_graph(
    app: App,
    run: RunHead,
    nodes: RunNodes,
    *,
    opened: Collection[NodeId],
    has_skipped: bool,
) -> FoldedGraph:
    """The graph of a run with long loops folded; with the steps that were skipped if asked for."""
    skipped: dict[NodeId, tuple[SkippedStep, ...]] = {}
    if has_skipped and nodes.nodes:
        session = _session_of(app, run)
        traces = app.reader.ask(queries.events_with_prefixes([(session, "trace:")])).values()
        skipped = {
            trace.node: skipped_steps(trace.event.entries)
            for trace in traces
            if trace.node and isinstance(trace.event, TraceAppended)
        }
    return fold_loops(nodes, _workflow(app, run), opened=opened, skipped=skipped)


def _session_of(app: App, run: RunHead) -> SessionId:
    return next(session for match, session in app.reader.find_run(run.run) if match == run.run)


def sentences_to(app: App, session: str, nodes: Sequence[PlacedRunNode]) -> dict[NodeId, str]:
    """The first sentence of the submission that led to each node."""
    keys = [key for node in nodes if (key := output_key_to(node))]
    events = app.reader.events_with_keys(SessionId(session), keys)
    return {node.id: first_sentence(notes_to(node, events)) for node in nodes}


def node(
    app: App, viewed: ViewedSession, node_id: str, session_nodes: SessionNodes
) -> NodePanel | NoSuchNode:
    """Return a node of any run of the session, with its prompt and its submissions."""
    found = session_nodes.by_id.get(NodeId(node_id))
    run = next((one for one in viewed.runs if found and one.run == found.run), None)
    if found is None or run is None:
        return NoSuchNode(node_id, viewed.session)
    nodes = session_nodes.of_run(found.run)
    envelopes = [
        decode_envelope(link.body)
        for start, end in places_around(nodes, found.id)
        for link in app.reader.links_between(viewed.session, start, end)
    ]
    surroundings = node_panel.node_surroundings(
        nodes, envelopes, found.id, closed_gaps=_closed_gaps(app, viewed.session, envelopes)
    )
    blobs = read_blobs(app, surroundings.blob_refs)
    return node_panel.panel(surroundings, blobs, titles=_step_titles(app, run))


def events(
    app: App,
    viewed: ViewedSession,
    *,
    before: int | None,
    limit: int,
    only_failures: bool,
    words: str,
) -> EventRowPage:
    """A page of events, newest first. A filter may give fewer than `limit` and still go on."""
    at = viewed.stream.version if before is None else before
    folded_words, rows, scanned = words.casefold(), list[EventRow](), 0
    while at > 0 and len(rows) < limit and scanned < SCANNED_EVENTS_MAX:
        links = app.reader.links_before(viewed.session, at, limit=CHUNK)
        for link in links:
            at = link.seq
            scanned += 1
            row = event_row(decode_envelope(link.body))
            if (row.is_failure or not only_failures) and folded_words in (
                f"{row.kind} {row.summary}".casefold()
            ):
                rows.append(row)
            if len(rows) == limit:
                break
        if not links:
            break
    return EventRowPage(tuple(rows), at if at > 0 else None)


def event(app: App, viewed: ViewedSession, seq: int) -> Json:
    """One event as it is recorded; None if there is no such event."""
    links = app.reader.links_before(viewed.session, seq + 1, limit=1)
    return msgspec.json.decode(links[0].body) if links and links[0].seq == seq else None


def read_blobs(app: App, refs: Iterable[BlobRef]) -> dict[BlobRef, bytes]:
    """The contents, without those that cannot be read: they are shown as missing."""
    blobs: dict[BlobRef, bytes] = {}
    for ref in dict.fromkeys(refs):
        with contextlib.suppress(StoreFailure):
            blobs[ref] = app.reader.blob(ref)
    return blobs


def _closed_gaps(app: App, session: SessionId, envelopes: Sequence[Envelope]) -> frozenset[GapId]:
    """Those of the gaps recorded here that were closed since."""
    events = (envelope.event for envelope in envelopes)
    keys = [gap_resolved_key(event.gap) for event in events if isinstance(event, GapRecorded)]
    resolved = app.reader.events_with_keys(session, keys).values()
    return closed_gaps(resolved)


def _workflow(app: App, run: RunHead) -> CompiledWorkflow | None:
    """The workflow as it was when the run began; None where it cannot be read."""
    try:
        return app.pinned_workflow(run.workflow_hash)
    except StoreFailure:
        return None


def _step_titles(app: App, run: RunHead) -> dict[str, str]:
    workflow = _workflow(app, run)
    return titles_of(workflow) if workflow else {}
