"""Hand in the pending step and go on. The same call again, at any time, is a replay."""

import msgspec

from interlock.app import place as places
from interlock.app.context import App
from interlock.app.place import Place
from interlock.app.refusals import BadToken, NodeGone, Unhealthy
from interlock.core import canonical, ids
from interlock.core.ids import AttemptId, BlobRef, NodeId
from interlock.core.session import decide
from interlock.core.session.answer import Answered, decode_frame
from interlock.core.session.events import AdvanceRecorded, decode_envelope
from interlock.store.failures import StoreBusy, StreamMoved
from interlock.store.log import LogReader

TRIES_MAX = 50  # each try that fails means that somebody else got through


class Output(msgspec.Struct, frozen=True, rename="camel"):
    """What an agent hands in for a step."""

    notes_markdown: str | None = None


def advance(
    app: App, token: str, output: Output
) -> Answered | BadToken | NodeGone | Unhealthy | decide.Refusal:
    arguments = canonical.blob_ref(canonical.encode(output))
    for _ in range(TRIES_MAX):
        place = places.find(app.log, token, app.keyring.keys())
        if not isinstance(place, Place):
            return place
        attempt, child = _outcome(app.log, place, arguments)
        if child:
            return _replay(app, child)
        decided = decide.advance(
            place.stream,
            place.node,
            app.pinned(place.run.workflow_hash),
            attempt=attempt,
            arguments=arguments,
            notes=output.notes_markdown,
            other_branch=app.log.newest_child(place.node.id),
            key=app.keyring.current(),
            at_ms=app.clock.now_ms(),
        )
        if not isinstance(decided, decide.Decided):
            return decided
        try:
            if app.log.append(decided.plan):
                return decided.answered
        except StreamMoved:
            continue
    raise StoreBusy(
        f"The session changed {TRIES_MAX} times while this call tried to write to it",
        "Nothing was written. Repeat the call.",
    )


def _outcome(
    reader: LogReader, place: Place, arguments: BlobRef
) -> tuple[AttemptId, NodeId | None]:
    """The attempt that these arguments stand for at this place, and what it led to, if it was made.

    A spent token with other arguments is a rewind: it stands for an attempt of its own.
    """
    child, recorded_arguments = _recorded(reader, place, place.attempt)
    if child is None or recorded_arguments == arguments:
        return place.attempt, child
    rewound = ids.rewound_attempt(place.attempt, arguments)
    return rewound, _recorded(reader, place, rewound)[0]


def _recorded(
    reader: LogReader, place: Place, attempt: AttemptId
) -> tuple[NodeId | None, BlobRef | None]:
    found = reader.recorded(place.node.session, decide.advance_key(place.node.id, attempt))
    if found is None:
        return None, None
    assert isinstance(found.event, AdvanceRecorded), "an advance key is taken by an advance"
    return found.event.to, found.event.arguments


def _replay(app: App, child: NodeId) -> Answered | NodeGone:
    located = app.reader.locate(child)
    if located is None:
        return NodeGone()
    node = decide.node_of(decode_envelope(located.link.body))
    return decide.introduce(
        node,
        decode_frame(app.reader.blob(node.created.answer)),
        prompt=places.prompt_of(app.reader, node),
        key=app.keyring.keys()[node.created.token_key],
    )
