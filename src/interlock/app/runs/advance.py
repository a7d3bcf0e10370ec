"""Hand in the pending step and go on. The same call again, at any time, is a replay."""

from pathlib import Path

from interlock.app.append_loop import append_reply
from interlock.app.context import App
from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.runs import token_target
from interlock.app.runs.submission import Submission
from interlock.app.runs.token_target import TokenTarget
from interlock.app.sessions import stored_node
from interlock.app.sessions.workspace_snapshot import observe_change
from interlock.core import ids
from interlock.core.ids import AttemptId, BlobRef, GapId, NodeId
from interlock.core.session import artifacts, context, decide
from interlock.core.session.answer import RenderedAnswer, decode_stored_answer
from interlock.core.session.decide import AdvanceInputs, Attempt
from interlock.core.session.events import AdvanceRecorded, GapRecorded
from interlock.core.session.fact_events import gap_key, gap_resolved_key
from interlock.core.session.nodes import advance_key, introduce
from interlock.core.session.refusals import RunRefusal
from interlock.core.workflow.packs import GapResolutionArtifact
from interlock.store.log import LogReader


def advance(
    app: App, token: str, submission: Submission
) -> RenderedAnswer | BadToken | NodeGone | UnhealthySession | RunRefusal:
    def attempt() -> (
        decide.PlannedReply | RenderedAnswer | BadToken | NodeGone | UnhealthySession | RunRefusal
    ):
        with app.log.snapshot():
            return _decide(app, token, submission)

    return append_reply(app, attempt)


def _decide(
    app: App, token: str, submission: Submission
) -> decide.PlannedReply | RenderedAnswer | BadToken | NodeGone | UnhealthySession | RunRefusal:
    target = token_target.find_token_target(app.log, token, app.keyring.keys())
    if not isinstance(target, TokenTarget):
        return target
    attempt, child = _find_attempt(app.log, target, submission.arguments)
    if child:
        return replay(app, child)
    return decide.advance(
        target.stream,
        target.node,
        app.pinned_workflow(target.run.workflow_hash),
        Attempt(attempt, submission.arguments, submission.output, submission.context),
        _advance_inputs(app, target, submission),
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


def _advance_inputs(app: App, target: TokenTarget, submission: Submission) -> AdvanceInputs:
    node = target.node
    assert target.stream.head is not None, "a node is in a session"
    return AdvanceInputs(
        context=context.decode(app.log.blob(node.created.context)),
        prompt=stored_node.prompt_of(app.log, node),
        open_gaps=_open_gaps(app.log, target, submission),
        other_branch=stored_node.describe_other_branch(app.log, node),
        observation=observe_change(target.stream.head, Path(target.stream.head.workspace)),
        key=app.keyring.current(),
        at_ms=app.clock.now_ms(),
    )


def _open_gaps(
    reader: LogReader, target: TokenTarget, submission: Submission
) -> dict[GapId, GapRecorded]:
    """The open gaps of the run that the submission resolves."""
    known_artifacts, _ = artifacts.known_artifacts(submission.output.artifacts)
    session = target.node.session
    open_gaps: dict[GapId, GapRecorded] = {}
    for artifact in known_artifacts:
        if isinstance(artifact, GapResolutionArtifact):
            gap = GapId(artifact.gap_id)
            envelope = reader.event_with_key(session, gap_key(gap))
            if envelope and not reader.event_with_key(session, gap_resolved_key(gap)):
                assert isinstance(envelope.event, GapRecorded), "a gap key is used by a gap"
                if envelope.run == target.node.run:
                    open_gaps[gap] = envelope.event
    return open_gaps


def _find_attempt(
    reader: LogReader, target: TokenTarget, arguments: BlobRef
) -> tuple[AttemptId, NodeId | None]:
    """The attempt that these arguments stand for, and the node it led to, if it was made already.

    A spent token with other arguments is a rewind: it stands for an attempt of its own.
    """
    recorded = _recorded_advance(reader, target, target.attempt)
    if recorded is None:
        return target.attempt, None
    if recorded.arguments == arguments:
        return target.attempt, recorded.to
    rewound_attempt = ids.rewound_attempt(target.attempt, arguments)
    recorded_rewind = _recorded_advance(reader, target, rewound_attempt)
    return rewound_attempt, recorded_rewind.to if recorded_rewind else None


def _recorded_advance(
    reader: LogReader, target: TokenTarget, attempt: AttemptId
) -> AdvanceRecorded | None:
    envelope = reader.event_with_key(target.node.session, advance_key(target.node.id, attempt))
    if envelope is None:
        return None
    assert isinstance(envelope.event, AdvanceRecorded), "an advance key is used by an advance"
    return envelope.event
