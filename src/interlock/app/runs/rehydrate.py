"""Show again where a run stands, and what happened before. It gets a log that it can only read."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.runs import token_target
from interlock.app.runs.token_target import TokenTarget
from interlock.app.sessions import stored_node
from interlock.app.sessions.workspace_snapshot import changes_to_verify
from interlock.core import ids
from interlock.core.ids import SessionId, WorkflowHash
from interlock.core.session import answer as answers
from interlock.core.session import context as contexts
from interlock.core.session import recap
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.blockers import Blocker
from interlock.core.session.events import (
    Envelope,
    OutputAppended,
    ValidationPerformed,
)
from interlock.core.session.nodes import (
    Node,
    missing_context,
    node_of,
    node_spec_of,
    output_key,
    situation,
    validation_key,
)
from interlock.core.session.recap import PastNotes
from interlock.core.tokens import Token, mint
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.store.keyring import Keyring
from interlock.store.log import LogReader

NOTES_MAX = 20  # steps to look back; the budget in bytes is usually reached before
LATER_STEPS_MAX = 10
WALKED_NODES_MAX = 100  # nodes to look through between here and the tip
CHECKPOINTS_MAX = 5


def rehydrate(
    reader: LogReader,
    keyring: Keyring,
    entropy: Callable[[int], bytes],
    pinned_workflow: Callable[[WorkflowHash], CompiledWorkflow],
    *,
    token: str,
) -> RenderedAnswer | BadToken | NodeGone | UnhealthySession:
    with reader.snapshot():
        target = token_target.find_token_target(reader, token, keyring.keys())
        if not isinstance(target, TokenTarget):
            return target
        warnings = _grant_warnings(reader, target)
        target = token_target.skip_answered_approval(reader, target)
        node, run, head = target.node, target.run, target.stream.head
        assert head is not None, "a node is in a session"
        workflow, blockers = pinned_workflow(run.workflow_hash), _blockers(reader, node)
        current = situation(
            node_spec_of(node, workflow),
            run,
            workflow,
            blockers=blockers,
            confirms=token_target.needs_confirmation(reader, target, workflow),
            approval=stored_node.approval_at(reader, node),
            example_context=_example_context(reader, node, blockers),
        )
        stored = answers.stored_answer(
            msgspec.structs.replace(
                current,
                warnings=warnings,
                verify=changes_to_verify(head, Path(head.workspace)),
                recap=_recap(reader, node, workflow) + _describe_later_work(reader, target),
            )
        )
        prompt = stored_node.prompt_of(reader, node)
    attempt = ids.attempt_id(entropy(ids.ATTEMPT_BYTES))
    token = mint(Token(node.id, attempt), keyring.current())
    return answers.fill(stored, prompt=prompt, token=token)


def _blockers(reader: LogReader, node: Node) -> tuple[Blocker, ...]:
    envelope = reader.event_with_key(node.session, validation_key(node.id))
    if envelope is None:
        return ()
    assert isinstance(envelope.event, ValidationPerformed), "a validation key is used by one"
    return envelope.event.blockers


def _grant_warnings(reader: LogReader, target: TokenTarget) -> tuple[str, ...]:
    """The user's remark on granting, as a warning; the remark on a denial is in a blocker."""
    answer = stored_node.approval_answer_at(reader, target.node)
    if answer is None or answer.verdict == "denied" or not answer.reason:
        return ()
    return (f"The approval was granted: {answer.reason}",)


def _example_context(
    reader: LogReader, node: Node, blockers: tuple[Blocker, ...]
) -> contexts.Context:
    """The context that blockers ask for, as it could be sent."""
    missing = missing_context(blockers)
    if not missing:
        return {}
    return contexts.example_context(contexts.decode(reader.blob(node.created.context)), missing)


def _recap(reader: LogReader, node: Node, workflow: CompiledWorkflow) -> str:
    """The notes on the line to `node`, of steps and of checkpoints beside them."""
    line = [node_of(envelope) for envelope in reader.line_to(node.id, steps=NOTES_MAX + 1)]
    steps = _accepted_steps(line)
    envelopes = reader.checkpoints_beside([member.id for member in line], limit=CHECKPOINTS_MAX)
    checkpoints = [
        (envelope.seq, "Checkpoint", _checkpoint_key(node_of(envelope))) for envelope in envelopes
    ]
    past = _past_notes(reader, node.session, [*steps, *checkpoints])
    past_text = recap.compose(past, older=max(0, node.created.depth - len(steps)))
    reminder = prompts.reminder(workflow) if node.created.depth else ""
    return f"{reminder}\n\n{past_text}" if reminder else past_text


def _accepted_steps(line: list[Node]) -> list[tuple[int, str, str]]:
    """For each accepted step on a line: its sequence number, its title, the key of its notes."""
    return [
        (child.seq, parent.created.step_title or "", output_key(parent.id, child.created.attempt))
        for child, parent in pairwise(line)
        if child.created.node_kind in ("step", "approval")
        and child.created.attempt
        and parent.created.node_kind != "approval"
    ]


def _checkpoint_key(checkpoint: Node) -> str:
    assert checkpoint.created.attempt is not None, "a checkpoint is set with a token"
    return output_key(checkpoint.id, checkpoint.created.attempt)


def _past_notes(
    reader: LogReader, session: SessionId, entries: list[tuple[int, str, str]]
) -> list[PastNotes]:
    """The notes of these entries that were recorded, newest first."""
    outputs = reader.events_with_keys(session, [key for _, _, key in entries])
    return [
        PastNotes(title, _notes_of(outputs[key]))
        for _, title, key in sorted(entries, reverse=True)
        if key in outputs
    ]


def _notes_of(envelope: Envelope) -> str:
    assert isinstance(envelope.event, OutputAppended), "an output key is used by an output"
    return envelope.event.notes or "(no notes)"


def _describe_later_work(reader: LogReader, target: TokenTarget) -> str:
    """The work done after this node on the way to the run's tip, if it is not the tip itself."""
    tip, here = target.run.tip, target.node.id
    if tip is None or tip == here:
        return ""
    line = [node_of(envelope) for envelope in reader.line_to(tip, steps=WALKED_NODES_MAX)]
    line_ids = [node.id for node in line]
    if here not in line_ids:
        return f"\n\nThe run's newest point is elsewhere ({tip}, {target.run.pending_title})."
    later_steps = _accepted_steps(line[: line_ids.index(here) + 1])
    later_notes = _past_notes(reader, target.node.session, later_steps)
    if not later_notes:
        return ""
    lines = [
        f"- {past.title}: {past.notes.strip().partition(chr(10))[0][:160]}"
        for past in reversed(later_notes[-LATER_STEPS_MAX:])
    ]
    text = "\n".join(lines)
    return f"\n\n### Done after this point already\n\nThe run went on from here to {tip}:\n{text}"
