"""Look at one session closely: its runs, the path of one, a node, its events.

All is read as it is stored. Whether the chain is sound is checked in `lookup`.
"""

from collections.abc import Sequence

import msgspec

from interlock.app.context import App
from interlock.app.refusals import NoSuchNode, NoSuchRun, NoSuchSession
from interlock.app.sessions.lookup import find_session
from interlock.core.canonical import Json
from interlock.core.ids import BlobRef, NodeId, SessionId
from interlock.core.session.events import Envelope, decode_envelope
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.views import node_panel
from interlock.core.views.decisions import titles_of
from interlock.core.views.events import EventRow, event_row
from interlock.core.views.node_panel import NodePanel
from interlock.core.views.path import Path, path_of
from interlock.core.views.status import Status, session_status
from interlock.store.failures import StoreFailure

SCANNED_EVENTS_MAX = 20_000  # events that a filter may pass over before a page comes back
CHUNK = 500


class ViewedSession(msgspec.Struct, frozen=True):
    """A session as it stands, with one of its runs."""

    session: SessionId
    head: Head
    version: int
    runs: tuple[RunHead, ...]
    """All of its runs, in the order in which they were started."""
    run: RunHead | None
    """The requested one, or the newest."""
    status: Status


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
    status = session_status(head, run_head)
    return ViewedSession(session, head, stream.version, runs, run_head, status)


def history(app: App, viewed: ViewedSession) -> Sequence[Envelope]:
    """All events of the session, which the views below are built from: read once for a page."""
    return [decode_envelope(link.body) for link in app.reader.links(viewed.session)]


def path(app: App, viewed: ViewedSession, envelopes: Sequence[Envelope]) -> Path | None:
    """The path of the viewed run; None where the session has no run."""
    if viewed.run is None:
        return None
    return path_of(
        viewed.run,
        envelopes,
        titles=_step_titles(app, viewed.run),
    )


def node(
    app: App, viewed: ViewedSession, node_id: str, envelopes: Sequence[Envelope]
) -> NodePanel | NoSuchNode:
    """A node of any run of the session, with everything that was given and handed in there."""
    run = next((e.run for e in envelopes if e.node == node_id and e.run is not None), None)
    if run is None:
        return NoSuchNode(node_id, viewed.session)
    surroundings = node_panel.node_surroundings(run, envelopes, NodeId(node_id))
    if surroundings is None:
        return NoSuchNode(node_id, viewed.session)
    blobs: dict[BlobRef, bytes] = {}
    for ref in surroundings.blob_refs:
        try:
            blobs[ref] = app.reader.blob(ref)
        except StoreFailure:
            continue  # the panel shows it as missing
    run_head = next(candidate for candidate in viewed.runs if candidate.run == run)
    return node_panel.panel(surroundings, blobs, titles=_step_titles(app, run_head))


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
    at = viewed.version if before is None else before
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


def _step_titles(app: App, run: RunHead) -> dict[str, str]:
    try:
        workflow = app.pinned_workflow(run.workflow_hash)
    except StoreFailure:
        return {}
    return titles_of(workflow)
