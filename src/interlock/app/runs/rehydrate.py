"""Show again where a run stands, and what happened before. It gets a log that it can only read."""

from collections.abc import Callable

import msgspec

from interlock.app.context import App
from interlock.app.refusals import UnhealthySession
from interlock.app.runs import past_outputs, token_target
from interlock.app.runs.approvals import resolve_if_overdue
from interlock.app.runs.past_outputs import TitledNotes
from interlock.app.runs.token_target import TokenTarget
from interlock.app.sessions.resume_check import git_changes
from interlock.core import ids
from interlock.core.ids import CHECKPOINTS, BlobRef, WorkflowHash
from interlock.core.session import answer_text, recap
from interlock.core.session import context as contexts
from interlock.core.session.answer import AnswerGap, OtherBranch, RenderedAnswer
from interlock.core.session.events import Envelope, GapRecorded
from interlock.core.session.fact_events import gap_key
from interlock.core.session.nodes import node_spec_of, situation
from interlock.core.session.recap import PastNotes, RunMemory
from interlock.core.session.refusals import RunGivenUp
from interlock.core.tokens import BadToken, Token, mint
from interlock.core.workflow import positions
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.store import queries
from interlock.store.keyring import Keyring
from interlock.store.log_reader import LogReader
from interlock.store.records import RunLine
from interlock.store.sql import Query

LINE_STEPS = past_outputs.STEPS_MAX + 1  # the last one is the pending step
LATER_STEPS_MAX = 10
QUOTE_CHARS_MIN = 40


def rehydrate(
    reader: LogReader,
    keyring: Keyring,
    pinned_workflow: Callable[[WorkflowHash], CompiledWorkflow],
    *,
    token: str,
) -> RenderedAnswer | BadToken | UnhealthySession | RunGivenUp:
    asked = token_target.find_token_target(reader, keyring, token, line_steps=LINE_STEPS)
    if not isinstance(asked, TokenTarget):
        return asked
    if asked.run.status == "abandoned":
        return RunGivenUp(asked.run.run)
    target = token_target.skip_answered_approval(reader, asked, line_steps=LINE_STEPS)
    node, run, head = target.node, target.run, target.stream.head
    assert head is not None, "a node is in a session"
    past = _read_past(reader, target)
    workflow = pinned_workflow(run.workflow_hash)
    context = contexts.decode(past.contents[node.created.context])
    current = situation(
        node_spec_of(node, workflow),
        run,
        workflow,
        context=context,
        blockers=target.validation.blockers if target.validation else (),
        approval=target.approval,
    )
    # Whoever waits for an approval asks again and again, and has nothing to do meanwhile.
    text, left_out = (
        ("", []) if current.approval else recap.compose(_memory(target, workflow, context, past))
    )
    stored = answer_text.stored_answer(
        msgspec.structs.replace(
            current,
            is_introduced=False,
            gaps=past.gaps,
            branches=_newer_branch(target, past.later),
            warnings=_grant_warnings(asked),
            verify=git_changes(head),
            recap=text,
            left_out=tuple(left_out),
        )
    )
    attempt = token_target.unspent_attempt(target.events, node.id, target.attempt)
    key = keyring.current()
    return answer_text.fill(
        stored,
        prompt=_prompt_at(target, past),
        token=mint(Token(node.id, attempt), key),
        token_at=lambda other: mint(Token(other, ids.first_attempt(other)), key),
        session=node.session,
        run=node.run,
    )


class _Past(msgspec.Struct, frozen=True):
    """The past of a node, as far as it may be shown."""

    line: RunLine
    outputs: dict[str, Envelope]
    """The outputs on the line, and those farther back that are kept or quoted."""
    contents: dict[BlobRef, bytes]
    gaps: tuple[AnswerGap, ...]
    """The open ones."""
    later: list[TitledNotes] | None
    """The notes on the way from here to where the run stands; None if it is not on that way."""


def _read_past(reader: LogReader, target: TokenTarget) -> _Past:
    """Read everything else that is shown, and the workflow, in one go; kept artifacts after it."""
    node, run, line = target.node, target.run, target.line
    assert line is not None, "it was asked for"
    created = node.created
    refs = filter(None, (created.context, created.prompt, BlobRef(run.workflow_hash)))
    gap_keys = [gap_key(gap) for gap in run.open_gaps]
    far_keys = [key for key in node.past.outputs.values() if key not in line.outputs]
    contents, events, line_to_tip = reader.ask(
        reader.blobs([*refs, *past_outputs.shown_artifacts(node, line.outputs)]),
        queries.events_with_keys(node.session, [*gap_keys, *far_keys]),
        _line_to_tip(target),
    )
    far_outputs = {key: events[key] for key in far_keys if key in events}
    artifacts = past_outputs.shown_artifacts(node, far_outputs)
    gaps = [events[key].event for key in gap_keys if key in events]
    return _Past(
        line,
        line.outputs | far_outputs,
        contents | reader.ask(reader.blobs(artifacts)),
        tuple(
            AnswerGap(gap.gap, gap.severity, gap.summary)
            for gap in gaps
            if isinstance(gap, GapRecorded)
        ),
        past_outputs.later_notes(node.id, line_to_tip) if line_to_tip else None,
    )


def _line_to_tip(target: TokenTarget) -> Query[RunLine | None]:
    """The way to where the run stands, if that is not here."""
    tip = target.run.tip
    if tip is None or tip == target.node.id:
        return Query((), lambda _: None)
    return queries.line_to(tip, steps=past_outputs.STEPS_MAX)


def _memory(
    target: TokenTarget, workflow: CompiledWorkflow, context: contexts.Context, past: _Past
) -> RunMemory:
    node = target.node
    position = node.created.position
    step = positions.step_at(workflow, position) if node.created.step_id else None
    return RunMemory(
        goal="" if target.run.workflow_id == CHECKPOINTS else target.run.goal,
        values={name: value for name, value in context.items() if name != "goal"},
        guidance=prompts.reminder(workflow) if node.created.depth else "",
        instructions=(
            prompts.repeated_instructions(workflow, step, position, context) if step else ""
        ),
        unaccepted=past_outputs.unaccepted_notes(node, past.outputs),
        newest_first=_without_quoted(
            past_outputs.past_notes(past.line, past.outputs, past.contents, workflow),
            _prompt_at(target, past),
        ),
        older_count=max(0, node.created.depth - past_outputs.STEPS_MAX),
        later=_describe_later_work(past.later),
    )


def _prompt_at(target: TokenTarget, past: _Past) -> str:
    prompt = target.node.created.prompt
    return past.contents[prompt].decode() if prompt else ""


def _without_quoted(notes: list[PastNotes], prompt: str) -> list[PastNotes]:
    """Omit notes that the prompt quotes."""

    def is_quoted(text: str) -> bool:
        # A few words may be in a prompt by chance.
        return len(text) >= QUOTE_CHARS_MIN and text in prompt

    shown = [
        msgspec.structs.replace(past, notes="") if is_quoted(past.notes.strip()) else past
        for past in notes
    ]
    return [past for past in shown if past.notes or past.artifacts or past.artifact_chars]


def _grant_warnings(target: TokenTarget) -> tuple[str, ...]:
    """The user's remark on granting, as a warning; the remark on a denial is in a blocker."""
    answer = target.approval_answer
    if answer is None or answer.verdict == "denied" or not answer.reason:
        return ()
    return (f"The approval was granted: {answer.reason}",)


def _newer_branch(target: TokenTarget, later: list[TitledNotes] | None) -> tuple[OtherBranch, ...]:
    """Where the run stands, if that is not here."""
    tip = target.run.tip
    if tip is None or tip == target.node.id:
        return ()
    title = target.run.pending_title or "the end"
    where = "the run stands" if later is None else "the run went on from here and stands"
    return (OtherBranch(tip, f"{where} at “{title}”"),)


def _describe_later_work(later: list[TitledNotes] | None) -> str:
    if not later:
        return ""
    lines = [
        f"- {title}: {notes.strip().partition(chr(10))[0][:160]}"
        for title, notes in reversed(later[-LATER_STEPS_MAX:])
    ]
    return "\n".join(("## Done after this point already", "", *lines))


def show_pending_step(
    app: App, token: str
) -> RenderedAnswer | BadToken | UnhealthySession | RunGivenUp:
    """Show the pending step again; an overdue approval is decided by whoever looks first."""
    outcome = _rehydrate(app, token)
    if not isinstance(outcome, RenderedAnswer):
        return outcome
    answer = outcome.answer
    if answer.approval and resolve_if_overdue(app, answer.approval.id, outcome.session):
        return _rehydrate(app, token)
    return outcome


def _rehydrate(app: App, token: str) -> RenderedAnswer | BadToken | UnhealthySession | RunGivenUp:
    return rehydrate(app.reader, app.keyring, app.pinned_workflow, token=token)
