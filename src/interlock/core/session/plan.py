"""A plan: everything one call wants to record, worked out before anything is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from interlock.core.ids import BlobRef, NodeId, RunId, SessionId
from interlock.core.project_stream import LeaseCondition, OutboxMessage
from interlock.core.session import chain
from interlock.core.session import head as heads
from interlock.core.session.announcements import messages_about
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import (
    ENVELOPE_VERSION,
    Envelope,
    HostBound,
    NodeCreated,
    NodeKind,
    RunStarted,
    SessionEvent,
)
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead, apply_run_event, new_run_head


class Stream(msgspec.Struct, frozen=True):
    """The end of a session's stream as it was read."""

    session: SessionId
    version: int = 0
    """The number of its events."""
    end: bytes = chain.GENESIS
    """The digest of its last event."""
    head: Head | None = None
    runs: dict[RunId, RunHead] = {}
    """The runs that were read with it: those that are looked at or written to."""


class EventDraft(msgspec.Struct, frozen=True):
    """An event that has no place in the stream yet."""

    key: str
    event: SessionEvent
    run: RunId | None = None
    node: NodeId | None = None
    at_ms: int | None = None
    """The time when it happened, if that was not now."""


class NodeIndexEntry(msgspec.Struct, frozen=True):
    node: NodeId
    seq: int
    kind: NodeKind
    parent: NodeId | None
    run: RunId


class RequestRecord(msgspec.Struct, frozen=True):
    """The record by which a repeated call without a token is recognised."""

    key: BlobRef
    arguments: BlobRef
    node: NodeId
    """The node that the call made."""
    at_ms: int
    valid_ms: int | None
    """The time within which the same call is a repetition; None (for ever) if it named itself."""

    @property
    def oldest_ms(self) -> int:
        """The time of the oldest call that counts as the same one."""
        return 0 if self.valid_ms is None else self.at_ms - self.valid_ms


class Plan(msgspec.Struct, frozen=True):
    """The changes of one call. All are written or none, and only if the stream still ends there."""

    session: SessionId
    expected_version: int
    links: tuple[ChainLink, ...]
    keys: tuple[str, ...]
    nodes: tuple[NodeIndexEntry, ...]
    runs: tuple[RunHead, ...]
    """The heads of the runs that it changes."""
    listed_status: str | None
    """The status by which lists find the session; None if it stays as it is."""
    blobs: Mapping[BlobRef, bytes]
    head: Head
    bound_conversations: tuple[tuple[str, str], ...] = ()
    """Conversations (host, and the id there) that belong to this session from now on."""
    request: RequestRecord | None = None
    lease: LeaseCondition | None = None
    """The lease that must still be ours."""
    outbox: tuple[OutboxMessage, ...] = ()

    @property
    def end(self) -> bytes:
        return self.links[-1].digest


def listed_status(head: Head, changed_last: RunHead | None) -> str | None:
    """Return the status of a session, which is that of the run that was changed last.

    None if it stays as it is, because no run was changed.
    """
    if changed_last:
        return changed_last.status
    if head.run_count:
        return None
    if head.unattended and head.unattended.is_over:
        return "complete" if head.unattended.has_result else "abandoned"
    return "open"


def plan(
    stream: Stream,
    drafts: Sequence[EventDraft],
    *,
    blobs: Mapping[BlobRef, bytes],
    at_ms: int,
    request: RequestRecord | None = None,
) -> Plan:
    """Return the plan that appends `drafts` to `stream`."""
    assert drafts, "a plan records something"
    recorded: list[tuple[ChainLink, Envelope]] = []
    end = stream.end
    for seq, draft in enumerate(drafts, start=stream.version):
        envelope = Envelope(
            v=ENVELOPE_VERSION,
            session=stream.session,
            seq=seq,
            at_ms=at_ms if draft.at_ms is None else draft.at_ms,
            key=draft.key,
            event=draft.event,
            run=draft.run,
            node=draft.node,
        )
        link = chain.seal(envelope, end)
        recorded.append((link, envelope))
        end = link.digest
    planned = plan_from_recorded(stream, recorded, blobs=blobs, request=request)
    messages = messages_about(envelope for _, envelope in recorded)
    return msgspec.structs.replace(planned, outbox=messages) if messages else planned


def plan_from_recorded(
    stream: Stream,
    recorded: Sequence[tuple[ChainLink, Envelope]],
    *,
    blobs: Mapping[BlobRef, bytes],
    request: RequestRecord | None = None,
) -> Plan:
    """Return the plan for events that have their place after `stream`, byte for byte."""
    links, envelopes = zip(*recorded, strict=True)
    keys = tuple(envelope.key for envelope in envelopes)
    assert len(set(keys)) == len(keys), f"a key is taken once: {keys}"
    head, runs = fold(stream, envelopes)
    changed_last = next((e.run for e in reversed(envelopes) if e.run), None)
    return Plan(
        session=stream.session,
        expected_version=stream.version,
        links=links,
        keys=keys,
        nodes=tuple(_node_index_entries(envelopes)),
        runs=tuple(runs.values()),
        listed_status=listed_status(head, runs[changed_last] if changed_last else None),
        blobs=blobs,
        head=head,
        bound_conversations=tuple(
            (envelope.event.host, envelope.event.host_session)
            for envelope in envelopes
            if isinstance(envelope.event, HostBound)
        ),
        request=request,
    )


def fold(stream: Stream, envelopes: Iterable[Envelope]) -> tuple[Head, dict[RunId, RunHead]]:
    """Return the head of the session after these events, and the heads of the runs they are of."""
    head, runs = stream.head, dict[RunId, RunHead]()
    for envelope in envelopes:
        head = heads.apply_event(head, envelope)
        run, event = envelope.run, envelope.event
        if run is None:
            continue
        if isinstance(event, RunStarted):
            git = (head.git_branch, head.git_head)
            runs[run] = new_run_head(envelope, event, git_branch=git[0], git_head=git[1])
        else:
            runs[run] = apply_run_event(runs.get(run) or stream.runs[run], envelope)
    assert head is not None, "a plan leaves a session behind"
    return head, runs


def _node_index_entries(envelopes: Sequence[Envelope]) -> Iterator[NodeIndexEntry]:
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, NodeCreated):
            assert envelope.node is not None, "a node has a name"
            assert envelope.run is not None, "a node is in a run"
            yield NodeIndexEntry(
                envelope.node, envelope.seq, event.node_kind, event.parent, envelope.run
            )
