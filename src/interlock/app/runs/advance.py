"""Hand in the pending step and go on. The same call again, at any time, is a replay."""

from pathlib import Path

from interlock.app.append_loop import append_reply
from interlock.app.context import App
from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.runs import evidence, past_outputs, token_target
from interlock.app.runs.submission import Submission
from interlock.app.runs.token_target import TokenTarget
from interlock.app.sessions import stored_node
from interlock.app.sessions.workspace_snapshot import observe_change
from interlock.core import ids
from interlock.core.ids import AttemptId, BlobRef, GapId, NodeId
from interlock.core.session import context, decide
from interlock.core.session.answer import RenderedAnswer, decode_stored_answer
from interlock.core.session.decide import AdvanceInputs, Attempt
from interlock.core.session.events import AdvanceRecorded, GapRecorded
from interlock.core.session.fact_events import gap_key
from interlock.core.session.nodes import advance_key, introduce
from interlock.core.session.refusals import RunRefusal
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
        _advance_inputs(app, target),
    )


def replay(app: App, child: NodeId) -> RenderedAnswer:
    """The answer that introduced `child`, again."""
    node = stored_node.load_node(app.reader, child)
    key = app.keyring.keys().get(node.created.token_key)
    return introduce(
        node,
        decode_stored_answer(app.reader.blob(node.created.answer)),
        prompt=stored_node.prompt_of(app.reader, node),
        # A token that would be refused at once helps nobody.
        key=key if key and key.state != "revoked" else app.keyring.current(),
    )


def _advance_inputs(app: App, target: TokenTarget) -> AdvanceInputs:
    node, head = target.node, target.stream.head
    assert head is not None, "a node is in a session"
    workflow = app.pinned_workflow(target.run.workflow_hash)
    return AdvanceInputs(
        context=context.decode(app.log.blob(node.created.context)),
        prompt=stored_node.prompt_of(app.log, node),
        open_gaps=_open_gaps(app.log, target),
        branches=stored_node.other_branches(app.log, node),
        notes=past_outputs.quoted_notes(app.log, node, workflow),
        commands=evidence.commands_seen(app, head, node, workflow),
        observation=observe_change(head, Path(head.workspace)),
        key=app.keyring.current(),
        at_ms=app.clock.now_ms(),
    )


def _open_gaps(reader: LogReader, target: TokenTarget) -> dict[GapId, GapRecorded]:
    keys = {gap_key(gap): gap for gap in target.run.open_gaps}
    events = reader.events_with_keys(target.node.session, list(keys)) if keys else {}
    gaps = {keys[key]: envelope.event for key, envelope in events.items()}
    return {gap: event for gap, event in gaps.items() if isinstance(event, GapRecorded)}


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
