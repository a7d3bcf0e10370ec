"""A session as one document that can be carried elsewhere, with a manifest over every part.

`pack` writes the events, the text of every blob they name, and a manifest with the hash of each
part. The events are as they are stored, but for the directory of the session, which means nothing
elsewhere: it is left out, and the chain is sealed again. `unpack` trusts none of it. In this order
it checks that the manifest names exactly the parts there are and their hashes agree, that the
digest chain is sound, that the events refer only to runs and nodes that began, that the blobs are
those the events name, and that the workflows, answers, contexts and positions can be read. The
first fault refuses the whole bundle. That finds damage, not forgery: nothing is signed, and whoever
writes a bundle can hash it.

`adopt` plans the content as a new session beside whatever the store already holds: the session,
its runs and its nodes get new names everywhere they occur, names that are derived from others are
derived again, and the events are sealed into a new chain. It is put into the directory of whoever
imports it. Times and blobs stay as they are. No conversation becomes bound to the new session, it
is ended, so that nobody's calls are taken for its own, and it says for ever that it was imported.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import get_args

import msgspec

from interlock.core import canonical, ids
from interlock.core.canonical import CanonicalBytes
from interlock.core.ids import AttemptId, BlobRef, NodeId, RunId, SessionId
from interlock.core.session import chain
from interlock.core.session import context as contexts
from interlock.core.session.answer import decode_stored_answer
from interlock.core.session.approval_events import (
    SessionApprovalRequested,
    SessionApprovalResolved,
    SessionApprovalUsed,
)
from interlock.core.session.chain import ChainLink
from interlock.core.session.delegation_events import DelegationEvent, HistoryCompacted
from interlock.core.session.events import (
    AdvanceRecorded,
    ApprovalRequested,
    ApprovalResolved,
    CapabilityObserved,
    Envelope,
    GapRecorded,
    GapResolved,
    HostBound,
    ModeChanged,
    NodeCreated,
    OutputAppended,
    ProtocolStarted,
    RunAbandoned,
    RunCompleted,
    RunStarted,
    RunUnblocked,
    SessionCreated,
    SessionEvent,
    StatusChanged,
    WorkChanged,
    blob_refs_of,
    decode_envelope,
)
from interlock.core.session.orchestration import decode_history
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.session.protocol_events import ProtocolEvent, RequirementWaived
from interlock.core.session.review_events import ReviewEvent
from interlock.core.session.unattended_events import UnattendedRequested
from interlock.core.tokens import SigningKey
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.compiled_workflow import decode_workflow as unpack_workflow

BUNDLE_VERSION = 1
NEEDS_RUN = (
    RunStarted,
    NodeCreated,
    AdvanceRecorded,
    OutputAppended,
    CapabilityObserved,
    GapRecorded,
    GapResolved,
    RunCompleted,
    RunUnblocked,
    RunAbandoned,
    ApprovalRequested,
    ApprovalResolved,
)
NEEDS_GATE = (
    *(HostBound, WorkChanged, ProtocolStarted, StatusChanged),
    *get_args(DelegationEvent),
    *get_args(ProtocolEvent),
    *get_args(ReviewEvent),
)


class BundleEvent(msgspec.Struct, frozen=True, rename="camel"):
    body: msgspec.Raw
    digest: str


class BundleContent(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    events: tuple[BundleEvent, ...]
    blobs: dict[BlobRef, str]
    """The blobs by name; all of them are text."""


class Bundle(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    bundle_version: int
    producer: str
    exported_at_ms: int
    content: BundleContent
    integrity: dict[str, str]
    """The hash of every part by its name; no more and no fewer than there are parts."""


class BundleLabel(msgspec.Struct, frozen=True, rename="camel"):
    """The description that a bundle gives of itself. Its manifest does not cover this."""

    producer: str
    exported_at_ms: int


class BundleRefused(msgspec.Struct, frozen=True):
    """The bundle is not what was exported. `part` is named as in its manifest."""

    part: str
    reason: str


def pack(
    stream: Stream,
    links: Iterable[ChainLink],
    blobs: Mapping[BlobRef, bytes],
    *,
    producer: str,
    at_ms: int,
) -> CanonicalBytes:
    """Return the bundle of a session as bytes."""
    events = tuple(_portable_events([decode_envelope(link.body) for link in links]))
    texts = {ref: blobs[ref].decode() for ref in sorted(blobs)}
    content = BundleContent(stream.session, events, texts)
    return canonical.encode(Bundle(BUNDLE_VERSION, producer, at_ms, content, _manifest(content)))


def _portable_events(envelopes: list[Envelope]) -> Iterator[BundleEvent]:
    """The events without the directory that they were recorded in, in a chain of their own."""
    end = chain.GENESIS
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, SessionCreated):
            event = msgspec.structs.replace(event, workspace="")
        link = chain.seal(msgspec.structs.replace(envelope, event=event), end)
        end = link.digest
        yield BundleEvent(msgspec.Raw(link.body), link.digest.hex())


def unpack(document: bytes) -> BundleContent | BundleRefused:
    """Return the content of a bundle, if every part of it is what its manifest says."""
    try:
        bundle = msgspec.json.decode(document, type=Bundle)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return BundleRefused("bundle", f"it is not a bundle: {error}")
    if bundle.bundle_version != BUNDLE_VERSION:
        return BundleRefused("bundle", f"its version is {bundle.bundle_version}")
    actual = _manifest(bundle.content)
    for part in sorted(actual.keys() | bundle.integrity.keys()):
        if part not in actual:
            return BundleRefused(part, "it is in the manifest and not in the bundle")
        if part not in bundle.integrity:
            return BundleRefused(part, "it is in the bundle and not in the manifest")
        if actual[part] != bundle.integrity[part]:
            return BundleRefused(part, "it is not what was exported")
    return _refuse_unsound(bundle.content) or bundle.content


def label(document: bytes) -> BundleLabel:
    """Return the label of a bundle that could be unpacked."""
    return msgspec.json.decode(document, type=BundleLabel)


def adopt(
    content: BundleContent,
    *,
    session: SessionId,
    workspace: str,
    random: Callable[[int], bytes],
    key: SigningKey,
    at_ms: int,
) -> Plan:
    """Return the plan that records `content` as a new session, with new names for all in it."""
    envelopes = [decode_envelope(event.body) for event in content.events]
    names = _new_names(envelopes, session, content.session, random)
    drafts = [
        EventDraft(
            _rename_parts(envelope.key, names),
            _rename_event(envelope.event, names, key, content.session, workspace),
            RunId(names[envelope.run]) if envelope.run else None,
            NodeId(names[envelope.node]) if envelope.node else None,
            envelope.at_ms,
        )
        for envelope in envelopes
    ]
    if any(isinstance(envelope.event, ModeChanged) for envelope in envelopes):
        drafts.append(EventDraft("imported", StatusChanged("ended", "it was imported")))
    blobs = {ref: text.encode() for ref, text in content.blobs.items()}
    planned = plan(Stream(session), drafts, blobs=blobs, at_ms=at_ms)
    # The events still name its conversations, which stay bound where they are; and what they
    # announce has happened elsewhere.
    return msgspec.structs.replace(planned, bound_conversations=(), outbox=())


def _manifest(content: BundleContent) -> dict[str, str]:
    parts = {"session": content.session.encode()}
    for number, event in enumerate(content.events):
        parts[f"events/{number}"] = bytes(event.body) + event.digest.encode()
    for ref, text in content.blobs.items():
        parts[f"blobs/{ref}"] = text.encode("utf-8", "surrogatepass")
    return {name: hashlib.sha256(part).hexdigest() for name, part in sorted(parts.items())}


def _refuse_unsound(content: BundleContent) -> BundleRefused | None:
    try:
        links = [
            ChainLink(number, bytes(event.body), bytes.fromhex(event.digest))
            for number, event in enumerate(content.events)
        ]
    except ValueError:
        return BundleRefused("events", "a digest is not hexadecimal")
    if not links:
        return BundleRefused("events", "there are none")
    health = chain.verify(content.session, links, version=len(links), end=links[-1].digest)
    if health.state != "healthy":
        return BundleRefused(f"events/{health.valid}", health.reason)
    envelopes = [decode_envelope(link.body) for link in links]
    if refusal := _refuse_incoherent(envelopes):
        return refusal
    referenced = {ref for envelope in envelopes for ref in blob_refs_of(envelope.event)}
    for ref in sorted(referenced | content.blobs.keys()):
        if ref not in content.blobs:
            return BundleRefused(f"blobs/{ref}", "an event names it and it is not there")
        if ref not in referenced:
            return BundleRefused(f"blobs/{ref}", "no event names it")
        if canonical.blob_ref(content.blobs[ref].encode("utf-8", "surrogatepass")) != ref:
            return BundleRefused(f"blobs/{ref}", "it is not what its name says")
    return _refuse_unreadable(envelopes, content.blobs)


def _refuse_incoherent(envelopes: list[Envelope]) -> BundleRefused | None:
    """Refuse events of a sound chain that refer to things that never began."""
    runs: set[RunId | None] = {None}
    nodes: set[NodeId | None] = {None}
    attempts: set[tuple[NodeId | None, AttemptId | None]] = set()
    keys: set[str] = set()
    is_attended = is_unattended = False
    for number, envelope in enumerate(envelopes):
        part, event = f"events/{number}", envelope.event
        if (number == 0) is not isinstance(event, SessionCreated):
            return BundleRefused(part, "a session is created once, by its first event")
        if envelope.key in keys:
            return BundleRefused(part, f"`{envelope.key}` happened before")
        keys.add(envelope.key)
        if isinstance(event, RunStarted) and envelope.run:
            runs.add(envelope.run)
        if envelope.run not in runs:
            return BundleRefused(part, "its run never began")
        if isinstance(event, NEEDS_RUN) and envelope.run is None:
            return BundleRefused(part, "it belongs to no run")
        if isinstance(event, NodeCreated):
            if envelope.node in nodes:
                return BundleRefused(part, "it makes no node, or one that was made before")
            if event.parent not in nodes:
                return BundleRefused(part, "its parent was never made")
            nodes.add(envelope.node)
            if _is_derived(event):
                if (event.parent, event.attempt) in attempts:
                    return BundleRefused(part, "the attempt that made it has made another node")
                attempts.add((event.parent, event.attempt))
        is_start = isinstance(event, ProtocolStarted | RequirementWaived) and is_unattended
        if isinstance(event, NEEDS_GATE) and not (is_attended or is_start):
            return BundleRefused(part, "no gate watched over the session then")
        is_attended = is_attended or isinstance(event, ModeChanged)
        is_unattended = is_unattended or isinstance(event, UnattendedRequested)
    for number, envelope in enumerate(envelopes):
        destination = getattr(envelope.event, "to", None)
        if envelope.node not in nodes or destination not in nodes:
            return BundleRefused(f"events/{number}", "its node was never made")
    return None if len(runs) > 1 or is_attended else BundleRefused("events", "no run ever began")


def _refuse_unreadable(
    envelopes: list[Envelope], blobs: Mapping[BlobRef, str]
) -> BundleRefused | None:
    """Refuse blobs that are not what their events take them for: the session would break later."""
    workflows: dict[RunId | None, CompiledWorkflow] = {}
    for number, envelope in enumerate(envelopes):
        event = envelope.event
        readers: dict[BlobRef, Callable[[bytes], object]] = {}
        if isinstance(event, RunStarted):
            readers[BlobRef(event.workflow_hash)] = unpack_workflow
        if isinstance(event, NodeCreated):
            readers |= {event.answer: decode_stored_answer, event.context: contexts.decode}
        if isinstance(event, HistoryCompacted):
            readers[event.history] = decode_history
        for ref, read in readers.items():
            try:
                read(blobs[ref].encode())
            except msgspec.MsgspecError as error:
                return BundleRefused(f"blobs/{ref}", f"it cannot be read: {error}")
        if isinstance(event, RunStarted):
            content = blobs[BlobRef(event.workflow_hash)].encode()
            workflows[envelope.run] = unpack_workflow(content)
        if isinstance(event, NodeCreated):
            workflow = workflows[envelope.run]
            if not positions.is_position(workflow, event.position):
                return BundleRefused(f"events/{number}", "its workflow has no such place")
    return None


def _new_names(
    envelopes: list[Envelope], session: SessionId, old: SessionId, random: Callable[[int], bytes]
) -> dict[str, str]:
    """Map old names to new ones. Derived names are derived again, so that the session can go on."""
    names: dict[str, str] = {old: session}
    for envelope in envelopes:
        if envelope.run and envelope.run not in names:
            names[envelope.run] = ids.run_id(random(ids.RANDOM_BYTES))
        event, node = envelope.event, envelope.node
        if isinstance(event, NodeCreated) and node:
            names[node] = _new_node(event, names, random)
            names[ids.first_attempt(node)] = ids.first_attempt(NodeId(names[node]))
            names[ids.approval_id(node)] = ids.approval_id(NodeId(names[node]))
        if isinstance(event, SessionApprovalRequested):
            names[event.approval] = ids.session_approval_id(session, event.approval)
    return names


def _new_node(event: NodeCreated, names: dict[str, str], random: Callable[[int], bytes]) -> NodeId:
    if not _is_derived(event):
        return ids.node_id(random(ids.NODE_BYTES))
    assert event.parent is not None, "it is derived from its parent"
    assert event.attempt is not None, "and from the attempt there"
    attempt = AttemptId(names.get(event.attempt, event.attempt))
    return ids.child_node(NodeId(names[event.parent]), attempt)


def _is_derived(event: NodeCreated) -> bool:
    """Whether the node is named after the attempt that made it."""
    is_led_to = event.parent is not None and event.attempt is not None
    return is_led_to and event.node_kind != "checkpoint"


def _rename_parts(text: str, names: dict[str, str]) -> str:
    return ":".join(names.get(part, part) for part in text.split(":"))


def _rename_event(
    event: SessionEvent, names: dict[str, str], key: SigningKey, old: SessionId, workspace: str
) -> SessionEvent:
    change = msgspec.structs.replace
    match event:
        case SessionCreated():
            return change(event, workspace=workspace, imported_from=old)
        case HistoryCompacted():
            return change(event, note=event.note.replace(old, names[old]))
        case NodeCreated():
            return change(
                event,
                token_key=key.id,
                parent=names[event.parent] if event.parent else None,
                attempt=names.get(event.attempt, event.attempt) if event.attempt else None,
            )
        case (
            ApprovalRequested()
            | SessionApprovalRequested()
            | SessionApprovalResolved()
            | SessionApprovalUsed()
        ):
            return change(event, approval=names.get(event.approval, event.approval))
        case ApprovalResolved():
            approval = names.get(event.approval, event.approval)
            return change(event, approval=approval, to=names[event.to])
        case AdvanceRecorded():
            return change(
                event, to=names[event.to], attempt=names.get(event.attempt, event.attempt)
            )
        case _:
            attempt = getattr(event, "attempt", None)
            return change(event, attempt=names[attempt]) if attempt in names else event
