"""Show again where a run stands, and what happened before. It gets a log that it can only read."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.runs import past_outputs, token_target
from interlock.app.runs.past_outputs import TitledNotes
from interlock.app.runs.token_target import TokenTarget
from interlock.app.sessions import stored_node
from interlock.app.sessions.workspace_snapshot import changes_to_verify
from interlock.core import ids
from interlock.core.ids import WorkflowHash
from interlock.core.session import answer_text, recap
from interlock.core.session import context as contexts
from interlock.core.session.answer import AnswerGap, OtherBranch, RenderedAnswer
from interlock.core.session.blockers import Blocker
from interlock.core.session.events import GapRecorded, ValidationPerformed
from interlock.core.session.fact_events import gap_key
from interlock.core.session.nodes import Node, node_spec_of, situation, validation_key
from interlock.core.session.recap import RunMemory
from interlock.core.session.refusals import RunGivenUp
from interlock.core.tokens import Token, mint
from interlock.core.workflow import positions
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.store.keyring import Keyring
from interlock.store.log import LogReader

LATER_STEPS_MAX = 10


def rehydrate(
    reader: LogReader,
    keyring: Keyring,
    pinned_workflow: Callable[[WorkflowHash], CompiledWorkflow],
    *,
    token: str,
) -> RenderedAnswer | BadToken | NodeGone | UnhealthySession | RunGivenUp:
    with reader.snapshot():
        target = token_target.find_token_target(reader, token, keyring.keys())
        if not isinstance(target, TokenTarget):
            return target
        if target.run.status == "abandoned":
            return RunGivenUp(target.run.run)
        warnings = _grant_warnings(reader, target)
        target = token_target.skip_answered_approval(reader, target)
        node, run, head = target.node, target.run, target.stream.head
        assert head is not None, "a node is in a session"
        workflow = pinned_workflow(run.workflow_hash)
        context = contexts.decode(reader.blob(node.created.context))
        current = situation(
            node_spec_of(node, workflow),
            run,
            workflow,
            context=context,
            blockers=_blockers(reader, node),
            approval=stored_node.approval_at(reader, node),
        )
        later = _later_notes(reader, target)
        # Whoever waits for an approval asks again and again, and has nothing to do meanwhile.
        text, left_out = (
            ("", [])
            if current.approval
            else recap.compose(_memory(reader, target, workflow, context, later))
        )
        stored = answer_text.stored_answer(
            msgspec.structs.replace(
                current,
                is_introduced=False,
                gaps=_open_gaps(reader, target),
                branches=_newer_branch(target, later),
                warnings=warnings,
                verify=changes_to_verify(head, Path(head.workspace)),
                recap=text,
                left_out=tuple(left_out),
            )
        )
        prompt = stored_node.prompt_of(reader, node)
        attempt = token_target.unspent_attempt(reader, node.session, node.id, target.attempt)
    key = keyring.current()
    return answer_text.fill(
        stored,
        prompt=prompt,
        token=mint(Token(node.id, attempt), key),
        token_at=lambda other: mint(Token(other, ids.first_attempt(other)), key),
        session=node.session,
        run=node.run,
    )


def _memory(
    reader: LogReader,
    target: TokenTarget,
    workflow: CompiledWorkflow,
    context: contexts.Context,
    later: list[TitledNotes] | None,
) -> RunMemory:
    node = target.node
    position = node.created.position
    step = positions.step_at(workflow, position) if node.created.step_id else None
    notes = past_outputs.past_notes(reader, node, workflow)
    return RunMemory(
        goal=target.run.goal,
        values={name: value for name, value in context.items() if name != "goal"},
        guidance=prompts.reminder(workflow) if node.created.depth else "",
        instructions=(
            prompts.repeated_instructions(workflow, step, position, context) if step else ""
        ),
        unaccepted=past_outputs.unaccepted_notes(reader, node),
        newest_first=notes,
        older_count=max(0, node.created.depth - past_outputs.STEPS_MAX),
        later=_describe_later_work(later),
    )


def _blockers(reader: LogReader, node: Node) -> tuple[Blocker, ...]:
    envelope = reader.event_with_key(node.session, validation_key(node.id))
    if envelope is None:
        return ()
    assert isinstance(envelope.event, ValidationPerformed), "a validation key is used by one"
    return envelope.event.blockers


def _open_gaps(reader: LogReader, target: TokenTarget) -> tuple[AnswerGap, ...]:
    keys = [gap_key(gap) for gap in target.run.open_gaps]
    events = reader.events_with_keys(target.node.session, keys) if keys else {}
    gaps = [events[key].event for key in keys if key in events]
    return tuple(
        AnswerGap(gap.gap, gap.severity, gap.summary)
        for gap in gaps
        if isinstance(gap, GapRecorded)
    )


def _grant_warnings(reader: LogReader, target: TokenTarget) -> tuple[str, ...]:
    """The user's remark on granting, as a warning; the remark on a denial is in a blocker."""
    answer = stored_node.approval_answer_at(reader, target.node)
    if answer is None or answer.verdict == "denied" or not answer.reason:
        return ()
    return (f"The approval was granted: {answer.reason}",)


def _later_notes(reader: LogReader, target: TokenTarget) -> list[TitledNotes] | None:
    """The notes on the way from here to where the run stands; None if it is not on that way."""
    tip, here = target.run.tip, target.node.id
    return past_outputs.later_notes(reader, here, tip) if tip and tip != here else None


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
