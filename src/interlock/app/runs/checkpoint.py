"""Set a durable checkpoint with notes, without advancing; or begin a session that has only such."""

import os

from interlock.app.append_loop import append_reply
from interlock.app.callers.caller import Caller
from interlock.app.context import App
from interlock.app.refusals import NoSuchDirectory, NotesRequired, UnhealthySession
from interlock.app.runs import token_target
from interlock.app.runs.advance import replay
from interlock.app.runs.start import StartRefusal, StartRequest, begin_run
from interlock.app.runs.submission import Submission
from interlock.app.runs.token_target import TokenTarget
from interlock.core.ids import BlobRef, WorkflowId
from interlock.core.session import checkpoint as checkpoints
from interlock.core.session import context as contexts
from interlock.core.session import decide
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.attempts import Attempt
from interlock.core.session.nodes import node_of
from interlock.core.session.refusals import RunRefusal, notes_refusal
from interlock.core.tokens import BadToken
from interlock.store import queries

TITLE_CHARS_MAX = 120  # of the notes, to find the session by


def checkpoint(
    app: App, token: str, submission: Submission
) -> RenderedAnswer | BadToken | UnhealthySession | RunRefusal:
    return append_reply(app, lambda: _decide(app, token, submission))


def _decide(
    app: App, token: str, submission: Submission
) -> decide.PlannedReply | RenderedAnswer | BadToken | UnhealthySession | RunRefusal:
    target = token_target.find_token_target(app.log, app.keyring, token)
    if not isinstance(target, TokenTarget):
        return target
    # An answered approval is skipped, unless the checkpoint was set before the answer.
    last = token_target.skip_answered_approval(app.log, target)
    attempt = Attempt(last.attempt, submission.arguments, submission.output)
    earlier = Attempt(target.attempt, submission.arguments, submission.output)
    created, workflow_ref = last.node.created, BlobRef(last.run.workflow_hash)
    set_before, set_now, contents = app.log.ask(
        queries.creation_event(checkpoints.marker_of(target.node, earlier)),
        queries.creation_event(checkpoints.marker_of(last.node, attempt)),
        app.log.blobs(filter(None, (created.context, created.prompt, workflow_ref))),
    )
    if marker := set_before or set_now:
        return replay(app, app.log, node_of(marker))
    return notes_refusal(submission.output.notes) or checkpoints.set_checkpoint(
        last.stream,
        last.node,
        app.pinned_workflow(last.run.workflow_hash),
        attempt,
        context=contexts.decode(contents[created.context]),
        approval=last.approval,
        prompt=contents[created.prompt].decode() if created.prompt else "",
        key=app.keyring.current(),
        at_ms=app.clock.now_ms(),
    )


def begin_with_checkpoint(
    app: App, caller: Caller, submission: Submission, *, request_id: str | None
) -> RenderedAnswer | StartRefusal | NotesRequired | BadToken | UnhealthySession:
    """For an agent without a workflow: begin a run with one open step, and set a checkpoint."""
    notes = submission.output.notes.strip()
    if not notes:
        return NotesRequired()
    if not os.path.isdir(caller.workspace):
        return NoSuchDirectory(str(caller.workspace))
    if refusal := notes_refusal(submission.output.notes):
        return refusal
    outcome = begin_run(
        app,
        StartRequest(
            WorkflowId(checkpoints.checkpoints_workflow().workflow.id),
            goal=notes.partition("\n")[0][:TITLE_CHARS_MAX],
            caller=caller,
            request_id=request_id,
        ),
        checkpoints.checkpoints_workflow(),
        tool="checkpoint_workflow",
    )
    if not isinstance(outcome, RenderedAnswer):
        return outcome
    # The token of a fresh run is derived, so a repeated call sets the same checkpoint again.
    return checkpoint(app, outcome.answer.continue_token, submission)
