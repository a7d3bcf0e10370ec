"""Submit the pending step and continue. Repeating the call at any time is a replay."""

from pathlib import Path

from interlock.app.append_loop import append_reply
from interlock.app.context import App
from interlock.app.refusals import UnhealthySession
from interlock.app.runs import evidence, past_outputs, token_target
from interlock.app.runs.submission import Submission
from interlock.app.runs.token_target import TokenTarget
from interlock.app.sessions import stored_node
from interlock.app.sessions.held_token import NODE_GONE
from interlock.app.sessions.session_approvals import default_expiry_ms
from interlock.app.sessions.workspace_snapshot import observe_change
from interlock.core import ids
from interlock.core.ids import AttemptId, BlobRef, NodeId
from interlock.core.session import context, decide
from interlock.core.session.answer import RenderedAnswer, decode_stored_answer
from interlock.core.session.attempts import Attempt
from interlock.core.session.decide import AdvanceInputs
from interlock.core.session.events import GapRecorded
from interlock.core.session.fact_events import gap_key
from interlock.core.session.nodes import Node, introduce
from interlock.core.session.refusals import RunRefusal
from interlock.core.tokens import BadToken
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.store import queries
from interlock.store.failures import ContentMissing
from interlock.store.log_reader import LogReader
from interlock.store.records import BranchBelow
from interlock.store.sql import Query


def advance(
    app: App, token: str, submission: Submission
) -> RenderedAnswer | BadToken | UnhealthySession | RunRefusal:
    return append_reply(app, lambda: _decide(app, token, submission))


def _decide(
    app: App, token: str, submission: Submission
) -> decide.PlannedReply | RenderedAnswer | BadToken | UnhealthySession | RunRefusal:
    target = token_target.find_token_target(app.log, app.keyring, token)
    if not isinstance(target, TokenTarget):
        return target
    attempt, child = _find_attempt(target, submission.arguments)
    if child:
        made = next(node for node in target.children if node.id == child)
        return replay(app, app.log, made)
    try:
        workflow, inputs = _advance_inputs(app, target)
    except (LookupError, ContentMissing):
        if app.log.ask(queries.creation_event(target.node.id)) is None:
            return NODE_GONE  # the session was deleted since it was read
        raise
    return decide.advance(
        target.stream,
        target.node,
        workflow,
        Attempt(attempt, submission.arguments, submission.output, submission.context),
        inputs,
    )


def replay(app: App, reader: LogReader, node: Node) -> RenderedAnswer:
    """The answer that introduced `node`, again."""
    created = node.created
    contents = reader.ask(reader.blobs(filter(None, (created.answer, created.prompt))))
    key = app.keyring.keys().get(created.token_key)
    return introduce(
        node,
        decode_stored_answer(contents[created.answer]),
        prompt=contents[created.prompt].decode() if created.prompt else "",
        # A token that would be refused at once helps nobody.
        key=key if key and key.state != "revoked" else app.keyring.current(),
    )


def _advance_inputs(app: App, target: TokenTarget) -> tuple[CompiledWorkflow, AdvanceInputs]:
    """Read everything else that the decision needs, and the workflow, in one go."""
    node, head, created = target.node, target.stream.head, target.node.created
    assert head is not None, "a node is in a session"
    pinned = app.workflow_cache.get(target.run.workflow_hash)
    workflow_ref = None if pinned else BlobRef(target.run.workflow_hash)
    gap_keys = {gap_key(gap): gap for gap in target.run.open_gaps}
    quoted_keys = past_outputs.quoted_keys(node, pinned)
    contents, events, branches = app.log.ask(
        app.log.blobs(filter(None, (created.context, created.prompt, workflow_ref))),
        queries.events_with_keys(node.session, [*gap_keys, *quoted_keys.values()]),
        _branches(target),
    )
    workflow = app.pinned_workflow(target.run.workflow_hash)
    gaps = {gap: events[key].event for key, gap in gap_keys.items() if key in events}
    return workflow, AdvanceInputs(
        context=context.decode(contents[created.context]),
        prompt=contents[created.prompt].decode() if created.prompt else "",
        open_gaps={gap: event for gap, event in gaps.items() if isinstance(event, GapRecorded)},
        branches=tuple(map(stored_node.describe_branch, branches)),
        notes={step: past_outputs.notes_in(events[key]) for step, key in quoted_keys.items()},
        commands=evidence.commands_seen(app, head, node, workflow),
        observation=observe_change(head, Path(head.workspace)),
        key=app.keyring.current(),
        at_ms=app.clock.now_ms(),
        approval_expiry_ms=_approval_expiry_ms(app, node, workflow),
    )


def _approval_expiry_ms(app: App, node: Node, workflow: CompiledWorkflow) -> int | None:
    """How long the user wants the approval of this step to wait, if its author has not said."""
    step = positions.step_at(workflow, node.created.position)
    is_needed = step is not None and step.approval is not None and not step.approval.timeout_ms
    return default_expiry_ms(app) if is_needed else None


def _branches(target: TokenTarget) -> Query[list[BranchBelow]]:
    """Return the branches on which the step was submitted before; none without a child."""
    if not target.children:
        return Query((), lambda _: [])
    return queries.branches_below(target.node.id, limit=stored_node.BRANCHES_MAX)


def _find_attempt(target: TokenTarget, arguments: BlobRef) -> tuple[AttemptId, NodeId | None]:
    """The attempt that these arguments stand for, and the node it led to, if it was made already.

    A spent token with other arguments is a rewind: it stands for an attempt of its own.
    """
    recorded = target.recorded_advance(target.attempt)
    if recorded is None:
        return target.attempt, None
    if recorded.arguments == arguments:
        return target.attempt, recorded.to
    rewound_attempt = ids.rewound_attempt(target.attempt, arguments)
    recorded_rewind = target.recorded_advance(rewound_attempt)
    return rewound_attempt, recorded_rewind.to if recorded_rewind else None
