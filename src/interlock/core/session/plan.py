"""A plan: everything one call wants to record, worked out before anything is written."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.core.ids import BlobRef, NodeId, RunId, SessionId
from interlock.core.session import chain
from interlock.core.session import head as heads
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import (
    ENVELOPE_VERSION,
    Envelope,
    HostBound,
    NodeCreated,
    NodeKind,
    SessionCreated,
    SessionEvent,
)
from interlock.core.session.head import Head


class Stream(msgspec.Struct, frozen=True):
    """The end of a session's stream as it was read."""

    session: SessionId
    version: int = 0
    """The number of its events."""
    end: bytes = chain.GENESIS
    """The digest of its last event."""
    head: Head | None = None


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


class RequestRecord(msgspec.Struct, frozen=True):
    """The record by which a repeated call without a token is recognised."""

    key: BlobRef
    arguments: BlobRef
    node: NodeId
    """The node that the call made."""
    at_ms: int
    valid_ms: int | None
    """The time within which the same call is a repetition; None (for ever) if it named itself."""


class Plan(msgspec.Struct, frozen=True):
    """The changes of one call. All are written or none, and only if the stream still ends there."""

    session: SessionId
    expected_version: int
    links: tuple[ChainLink, ...]
    keys: tuple[str, ...]
    nodes: tuple[NodeIndexEntry, ...]
    runs: tuple[RunId, ...]
    """The runs whose heads it changes."""
    blobs: Mapping[BlobRef, bytes]
    head: Head
    bound_conversations: tuple[tuple[str, str], ...] = ()
    """Conversations (host, and the id there) that belong to this session from now on."""
    request: RequestRecord | None = None

    @property
    def end(self) -> bytes:
        return self.links[-1].digest


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
    links: list[ChainLink] = []
    envelopes: list[Envelope] = []
    head, end = stream.head, stream.end
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
        head = heads.apply_event(head, envelope)
        link = chain.seal(envelope, end)
        links.append(link)
        envelopes.append(envelope)
        end = link.digest
    assert head is not None, "a plan leaves a session behind"
    return _assemble_plan(stream, links, envelopes, head=head, blobs=blobs, request=request)


def plan_from_recorded(
    stream: Stream,
    recorded: Sequence[tuple[ChainLink, Envelope]],
    *,
    blobs: Mapping[BlobRef, bytes],
) -> Plan:
    """Return the plan for events that another store recorded after `stream`, byte for byte."""
    head = stream.head
    for _, envelope in recorded:
        head = heads.apply_event(head, envelope)
    assert head is not None, "a plan leaves a session behind"
    links, envelopes = zip(*recorded, strict=True)
    return _assemble_plan(stream, links, envelopes, head=head, blobs=blobs, request=None)


def _assemble_plan(
    stream: Stream,
    links: Sequence[ChainLink],
    envelopes: Sequence[Envelope],
    *,
    head: Head,
    blobs: Mapping[BlobRef, bytes],
    request: RequestRecord | None,
) -> Plan:
    keys = tuple(envelope.key for envelope in envelopes)
    assert len(set(keys)) == len(keys), f"a key is taken once: {keys}"
    return Plan(
        session=stream.session,
        expected_version=stream.version,
        links=tuple(links),
        keys=keys,
        nodes=tuple(_node_index_entries(envelopes)),
        runs=_changed_runs(envelopes, head),
        blobs=blobs,
        head=head,
        bound_conversations=tuple(
            (envelope.event.host, envelope.event.host_session)
            for envelope in envelopes
            if isinstance(envelope.event, HostBound)
        ),
        request=request,
    )


def _node_index_entries(envelopes: Sequence[Envelope]) -> Iterator[NodeIndexEntry]:
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, NodeCreated):
            assert envelope.node is not None, "a node has a name"
            yield NodeIndexEntry(envelope.node, envelope.seq, event.node_kind, event.parent)


def _changed_runs(envelopes: Sequence[Envelope], head: Head) -> tuple[RunId, ...]:
    changed = {
        envelope.run for envelope in envelopes if not isinstance(envelope.event, SessionCreated)
    }
    # An event that belongs to no run (archiving) changes all of them.
    return tuple(run.run for run in head.runs if None in changed or run.run in changed)
