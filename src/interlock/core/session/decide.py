"""What starting and advancing a run records, and what is answered. Values in, plan out."""

from typing import TypeAlias

import msgspec

from interlock.core import canonical, ids
from interlock.core.ids import AttemptId, BlobRef, NodeId, RunId, SessionId
from interlock.core.session import answer as answers
from interlock.core.session.answer import Answered, Frame, Pending, WorkflowRef
from interlock.core.session.events import (
    AdvanceRecorded,
    Envelope,
    NodeCreated,
    OutputAppended,
    RunCompleted,
    RunStarted,
    SessionCreated,
)
from interlock.core.session.head import RunHead
from interlock.core.session.plan import Draft, Plan, Stream, plan
from interlock.core.tokens import Key, Token, mint
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow, Pinned

NOTES_BYTES_MAX = 64 * 1024  # a step's notes must fit in one answer with room for its neighbours


class Node(msgspec.Struct, frozen=True):
    """A node as it was recorded, with the name of everything around it."""

    session: SessionId
    run: RunId
    id: NodeId
    created: NodeCreated


class Decided(msgspec.Struct, frozen=True):
    """What to record, and what to answer once it is recorded."""

    plan: Plan
    answered: Answered


class NothingPending(msgspec.Struct, frozen=True):
    """The run is complete at this node: there is no step to hand in."""


class NotesMissing(msgspec.Struct, frozen=True):
    """Every step wants notes."""


class NotesNotWritten(msgspec.Struct, frozen=True):
    """The notes are still the words that stood for them in the example."""


class NotesTooLong(msgspec.Struct, frozen=True):
    size: int
    size_max: int


Refusal: TypeAlias = NothingPending | NotesMissing | NotesNotWritten | NotesTooLong


def node_of(envelope: Envelope) -> Node:
    created, node, run = envelope.event, envelope.node, envelope.run
    assert isinstance(created, NodeCreated), f"{envelope.key} is not a node"
    assert node is not None, f"{envelope.key} has no node"
    assert run is not None, f"{envelope.key} has no run"
    return Node(envelope.session, run, node, created)


def advance_key(node: NodeId, attempt: AttemptId) -> str:
    """The idempotency key of the whole protocol."""
    return f"advance:{node}:{attempt}"


def start(
    pinned: Pinned,
    *,
    goal: str,
    workspace: str,
    session: SessionId,
    run: RunId,
    root: NodeId,
    key: Key,
    at_ms: int,
) -> Decided:
    """A new session with one run of `pinned`, at its first step."""
    workflow = pinned.workflow
    started = RunStarted(workflow.id, workflow.version, pinned.hash, len(workflow.steps), goal)
    made = _make_node(
        session, run, root, workflow, _ref(started), goal=goal, parent=None, cursor=0, key=key
    )
    drafts = (
        Draft(f"session:{session}", SessionCreated(workspace)),
        Draft(f"run:{run}", started, run),
        made.draft,
    )
    blobs = {BlobRef(pinned.hash): bytes(pinned.content), **made.blobs}
    return Decided(plan(Stream(session), drafts, blobs=blobs, at_ms=at_ms), made.answered)


def advance(
    stream: Stream,
    node: Node,
    workflow: CompiledWorkflow,
    *,
    attempt: AttemptId,
    arguments: BlobRef,
    notes: str | None,
    other_branch: NodeId | None,
    key: Key,
    at_ms: int,
) -> Decided | Refusal:
    """Hand in the pending step of `node` and go to the next.

    `other_branch` is its newest child, where the step was handed in before.
    """
    if node.created.step_id is None:
        return NothingPending()
    if notes is None or not notes.strip():
        return NotesMissing()
    if notes.strip() == answers.WRITE_YOUR_NOTES:
        return NotesNotWritten()
    if (size := len(notes.encode())) > NOTES_BYTES_MAX:
        return NotesTooLong(size, NOTES_BYTES_MAX)
    assert stream.head is not None, "a node lies in a session"
    run = stream.head.run(node.run)
    child = ids.child_node(node.id, attempt)
    made = _make_node(
        node.session,
        node.run,
        child,
        workflow,
        _ref(run),
        goal=run.goal,
        parent=(node.id, attempt),
        cursor=node.created.cursor + 1,
        key=key,
        warnings=_branch_warning(other_branch),
    )
    drafts = [
        Draft(
            advance_key(node.id, attempt),
            AdvanceRecorded(attempt, arguments, child),
            node.run,
            node.id,
        ),
        Draft(f"output:{node.id}:{attempt}", OutputAppended(attempt, notes), node.run, node.id),
        made.draft,
    ]
    if made.answered.answer.is_complete:
        drafts.append(Draft(f"complete:{child}", RunCompleted(), node.run, child))
    return Decided(plan(stream, drafts, blobs=made.blobs, at_ms=at_ms), made.answered)


def introduce(node: Node, stored: Frame, *, prompt: str, key: Key) -> Answered:
    """The answer that introduced `node`, again."""
    token = Token(node.id, ids.first_attempt(node.id))
    return answers.fill(stored, prompt=prompt, token=mint(token, key))


def show(node: Node, run: RunHead, *, prompt: str, attempt: AttemptId, key: Key) -> Answered:
    """Where `node` stands, with a token for a fresh `attempt` at it."""
    created = node.created
    pending = _pending(created, step_count=run.step_count) if created.step_id else None
    stored = answers.frame(session=node.session, run=node.run, workflow=_ref(run), pending=pending)
    return answers.fill(stored, prompt=prompt, token=mint(Token(node.id, attempt), key))


class _Made(msgspec.Struct, frozen=True):
    draft: Draft
    blobs: dict[BlobRef, bytes]
    answered: Answered


def _make_node(
    session: SessionId,
    run: RunId,
    node: NodeId,
    workflow: CompiledWorkflow,
    ref: WorkflowRef,
    *,
    goal: str,
    parent: tuple[NodeId, AttemptId] | None,
    cursor: int,
    key: Key,
    warnings: tuple[str, ...] = (),
) -> _Made:
    step = workflow.steps[cursor] if cursor < len(workflow.steps) else None
    prompt = prompts.render(workflow, cursor, goal=goal) if step else ""
    pending = (
        Pending(step.id, step.title, cursor + 1, len(workflow.steps), prompt) if step else None
    )
    stored = answers.frame(
        session=session, run=run, workflow=ref, pending=pending, warnings=warnings
    )
    content = canonical.encode(stored)
    created = NodeCreated(
        node_kind="step",
        parent=parent[0] if parent else None,
        attempt=parent[1] if parent else None,
        cursor=cursor,
        step_id=step.id if step else None,
        step_title=step.title if step else None,
        prompt=canonical.blob_ref(prompt.encode()) if step else None,
        answer=canonical.blob_ref(content),
        token_key=key.id,
    )
    blobs = {created.answer: bytes(content)}
    if created.prompt:
        blobs[created.prompt] = prompt.encode()
    answered = introduce(Node(session, run, node, created), stored, prompt=prompt, key=key)
    return _Made(Draft(f"node:{node}", created, run, node), blobs, answered)


def _pending(created: NodeCreated, *, step_count: int) -> Pending:
    assert created.step_id is not None, "a step is pending"
    assert created.step_title is not None, "a step has a title"
    return Pending(created.step_id, created.step_title, created.cursor + 1, step_count, "")


def _ref(run: RunHead | RunStarted) -> WorkflowRef:
    return WorkflowRef(run.workflow_id, run.workflow_version, run.workflow_hash)


def _branch_warning(other: NodeId | None) -> tuple[str, ...]:
    if other is None:
        return ()
    return (f"This step was handed in before ({other}). That work is kept; this is a new branch.",)
