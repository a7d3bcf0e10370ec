"""Show again where a run stands, and what happened before. Handed a log that it can only read."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.runs import token_target
from interlock.app.runs.token_target import TokenTarget
from interlock.app.runs.workspace_snapshot import changes_to_verify
from interlock.app.sessions import stored_node
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
from interlock.core.workflow.compiled import CompiledWorkflow
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
        place = token_target.find_token_target(reader, token, keyring.keys())
        if not isinstance(place, TokenTarget):
            return place
        granted = _grant_warnings(reader, place)
        place = token_target.skip_answered_approval(reader, place)
        node, run, head = place.node, place.run, place.stream.head
        assert head is not None, "a node lies in a session"
        workflow, blockers = pinned_workflow(run.workflow_hash), _blockers(reader, node)
        now = situation(
            node_spec_of(node, workflow),
            run,
            workflow,
            blockers=blockers,
            confirms=token_target.needs_confirmation(reader, place, workflow),
            approval=stored_node.approval_at(reader, node),
            example_context=_example_context(reader, node, blockers),
        )
        stored = answers.stored_answer(
            msgspec.structs.replace(
                now,
                warnings=granted,
                verify=changes_to_verify(head, Path(head.workspace)),
                recap=_recap(reader, node, workflow) + _describe_later_work(reader, place),
            )
        )
        prompt = stored_node.prompt_of(reader, node)
    attempt = ids.attempt_id(entropy(ids.ATTEMPT_BYTES))
    token = mint(Token(node.id, attempt), keyring.current())
    return answers.fill(stored, prompt=prompt, token=token)


def _blockers(reader: LogReader, node: Node) -> tuple[Blocker, ...]:
    found = reader.event_with_key(node.session, validation_key(node.id))
    if found is None:
        return ()
    assert isinstance(found.event, ValidationPerformed), "a validation key is taken by one"
    return found.event.blockers


def _grant_warnings(reader: LogReader, target: TokenTarget) -> tuple[str, ...]:
    """What the user had to say when granting; a denial says it as a blocker."""
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
    markers = reader.checkpoints_beside([found.id for found in line], limit=CHECKPOINTS_MAX)
    marked = [(found.seq, "Checkpoint", _marker_key(node_of(found))) for found in markers]
    past = _past_steps(reader, node.session, [*steps, *marked])
    composed = recap.compose(past, older=max(0, node.created.depth - len(steps)))
    reminder = prompts.reminder(workflow) if node.created.depth else ""
    return f"{reminder}\n\n{composed}" if reminder else composed


def _accepted_steps(line: list[Node]) -> list[tuple[int, str, str]]:
    """For each accepted step between the nodes of a line: when, its title, where its notes are."""
    return [
        (child.seq, parent.created.step_title or "", output_key(parent.id, child.created.attempt))
        for child, parent in pairwise(line)
        if child.created.node_kind in ("step", "approval")
        and child.created.attempt
        and parent.created.node_kind != "approval"
    ]


def _marker_key(marker: Node) -> str:
    assert marker.created.attempt is not None, "a checkpoint is set with a token"
    return output_key(marker.id, marker.created.attempt)


def _past_steps(
    reader: LogReader, session: SessionId, entries: list[tuple[int, str, str]]
) -> list[PastNotes]:
    """Newest first."""
    outputs = reader.events_with_keys(session, [key for _, _, key in entries])
    return [
        PastNotes(title, _notes_of(outputs[key]))
        for _, title, key in sorted(entries, reverse=True)
        if key in outputs
    ]


def _notes_of(envelope: Envelope) -> str:
    assert isinstance(envelope.event, OutputAppended), "an output key is taken by an output"
    return envelope.event.notes or "(no notes)"


def _describe_later_work(reader: LogReader, target: TokenTarget) -> str:
    """What was done after this node on the way to the run's tip, where it is not the tip itself."""
    tip, here = target.run.tip, target.node.id
    if tip is None or tip == here:
        return ""
    line = [node_of(envelope) for envelope in reader.line_to(tip, steps=WALKED_NODES_MAX)]
    way = [found.id for found in line]
    if here not in way:
        return f"\n\nThe run's newest point is elsewhere ({tip}, {target.run.pending_title})."
    done = _past_steps(reader, target.node.session, _accepted_steps(line[: way.index(here) + 1]))
    if not done:
        return ""
    lines = [
        f"- {past.title}: {past.notes.strip().partition(chr(10))[0][:160]}"
        for past in reversed(done[-LATER_STEPS_MAX:])
    ]
    shown = "\n".join(lines)
    return f"\n\n### Done after this point already\n\nThe run went on from here to {tip}:\n{shown}"
