"""Hand in the pending step and go on. The same call again, at any time, is a replay."""

from pathlib import Path

from interlock.app.append_loop import record
from interlock.app.context import App
from interlock.app.refusals import BadToken, NodeGone, Unhealthy
from interlock.app.runs import token_target
from interlock.app.runs.submission import Taken
from interlock.app.runs.token_target import Place
from interlock.app.runs.workspace_snapshot import changed_since
from interlock.app.sessions import stored_node
from interlock.core import ids
from interlock.core.ids import AttemptId, BlobRef, GapId, NodeId
from interlock.core.session import artifacts, context, decide
from interlock.core.session.answer import RenderedAnswer, decode_stored_answer
from interlock.core.session.decide import AdvanceInputs, Attempt
from interlock.core.session.events import AdvanceRecorded, GapRecorded
from interlock.core.session.fact_events import gap_key, gap_resolved_key
from interlock.core.session.nodes import advance_key, introduce
from interlock.core.workflow.packs import GapResolutionArtifact
from interlock.store.log import LogReader


def advance(
    app: App, token: str, taken: Taken
) -> RenderedAnswer | BadToken | NodeGone | Unhealthy | decide.RunRefusal:
    def attempt() -> (
        decide.PlannedReply | RenderedAnswer | BadToken | NodeGone | Unhealthy | decide.RunRefusal
    ):
        with app.log.snapshot():
            return _decide(app, token, taken)

    return record(app, attempt)


def _decide(
    app: App, token: str, taken: Taken
) -> decide.PlannedReply | RenderedAnswer | BadToken | NodeGone | Unhealthy | decide.RunRefusal:
    place = token_target.find(app.log, token, app.keyring.keys())
    if not isinstance(place, Place):
        return place
    attempt, child = _outcome(app.log, place, taken.arguments)
    if child:
        return replay(app, child)
    return decide.advance(
        place.stream,
        place.node,
        app.pinned(place.run.workflow_hash),
        Attempt(attempt, taken.arguments, taken.output, taken.context),
        _around(app, place, taken),
    )


def replay(app: App, child: NodeId) -> RenderedAnswer:
    """The answer that introduced `child`, again."""
    node = stored_node.load_node(app.reader, child)
    key = app.keyring.keys().get(node.created.token_key)
    return introduce(
        child,
        node.created,
        decode_stored_answer(app.reader.blob(node.created.answer)),
        prompt=stored_node.prompt_of(app.reader, node),
        # A token that would be refused at once helps nobody.
        key=key if key and key.state != "revoked" else app.keyring.current(),
    )


def _around(app: App, place: Place, taken: Taken) -> AdvanceInputs:
    node = place.node
    assert place.stream.head is not None, "a node lies in a session"
    return AdvanceInputs(
        context=context.decode(app.log.blob(node.created.context)),
        prompt=stored_node.prompt_of(app.log, node),
        open_gaps=_open_gaps(app.log, place, taken),
        other_branch=stored_node.other_branch(app.log, node),
        observation=changed_since(place.stream.head, Path(place.stream.head.workspace)),
        key=app.keyring.current(),
        at_ms=app.clock.now_ms(),
    )


def _open_gaps(reader: LogReader, place: Place, taken: Taken) -> dict[GapId, GapRecorded]:
    known, _ = artifacts.known_artifacts(taken.output.artifacts)
    session = place.node.session
    found: dict[GapId, GapRecorded] = {}
    for artifact in known:
        if isinstance(artifact, GapResolutionArtifact):
            gap = GapId(artifact.gap_id)
            recorded = reader.recorded(session, gap_key(gap))
            if recorded and not reader.recorded(session, gap_resolved_key(gap)):
                assert isinstance(recorded.event, GapRecorded), "a gap key is taken by a gap"
                if recorded.run == place.node.run:
                    found[gap] = recorded.event
    return found


def _outcome(
    reader: LogReader, place: Place, arguments: BlobRef
) -> tuple[AttemptId, NodeId | None]:
    """The attempt that these arguments stand for at this place, and what it led to, if it was made.

    A spent token with other arguments is a rewind: it stands for an attempt of its own.
    """
    recorded = _recorded(reader, place, place.attempt)
    if recorded is None:
        return place.attempt, None
    if recorded.arguments == arguments:
        return place.attempt, recorded.to
    rewound = ids.rewound_attempt(place.attempt, arguments)
    again = _recorded(reader, place, rewound)
    return rewound, again.to if again else None


def _recorded(reader: LogReader, place: Place, attempt: AttemptId) -> AdvanceRecorded | None:
    found = reader.recorded(place.node.session, advance_key(place.node.id, attempt))
    if found is None:
        return None
    assert isinstance(found.event, AdvanceRecorded), "an advance key is taken by an advance"
    return found.event
