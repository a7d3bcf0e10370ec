"""The submissions on the path to a node: notes, artifacts, values."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec

from interlock.app.refusals import NoSuchStep, UnhealthySession
from interlock.app.runs import token_target
from interlock.app.runs.token_target import TokenTarget
from interlock.core.canonical import Json
from interlock.core.ids import AttemptId, BlobRef, NodeId, StepId
from interlock.core.session import answer_text
from interlock.core.session import context as contexts
from interlock.core.session.answer import LeftOutNotes, PastOutput, RenderedAnswer
from interlock.core.session.events import Envelope, OutputAppended
from interlock.core.session.nodes import Node, node_of, output_key
from interlock.core.session.recap import ALL, PastNotes
from interlock.core.tokens import BadToken, Token, mint
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.store import queries
from interlock.store.keyring import Keyring
from interlock.store.log_reader import LogReader
from interlock.store.records import RunLine

STEPS_MAX = 60  # that a recap looks back; what lies farther back is read by name
LINE_MAX = 100_000  # steps that reading looks back
READ_CHARS_MAX = 48_000  # in one answer: clients cut what is much longer
NO_NOTES = "(no notes)"
SMALL_ARTIFACTS_MAX = 1_000  # bytes; larger artifacts of a step are left out and named


TitledNotes: TypeAlias = tuple[str, str]
"""The title of a step, and its notes."""
Outputs: TypeAlias = Mapping[str, Envelope]
"""Events of outputs, by their keys."""
Contents: TypeAlias = Mapping[BlobRef, bytes]


class _Entry(msgspec.Struct, frozen=True):
    """Where an output is recorded, and what to call it."""

    seq: int
    step: str
    node: NodeId
    """The node where it was submitted, or the checkpoint."""
    title: str
    key: str


def quoted_keys(node: Node, workflow: CompiledWorkflow | None) -> dict[StepId, str]:
    """Return the keys of the outputs that prompts of the workflow quote, as they are at `node`.

    As long as the workflow is not known: all that may be.
    """
    outputs = node.past.outputs.items()
    return {step: key for step, key in outputs if not workflow or step in workflow.quoted_steps}


def notes_in(envelope: Envelope) -> str:
    return _output(envelope).notes


def quoted_notes(reader: LogReader, node: Node, workflow: CompiledWorkflow) -> dict[StepId, str]:
    """Return the notes that prompts of the workflow quote, as they are at `node`."""
    keys = quoted_keys(node, workflow)
    outputs = reader.events_with_keys(node.session, list(keys.values()))
    return {step: notes_in(outputs[key]) for step, key in keys.items()}


def shown_artifacts(node: Node, outputs: Outputs) -> Iterator[BlobRef]:
    """Yield the artifacts that a recap may show: small ones, and those of steps that are kept."""
    kept_keys = set(node.past.outputs.values())
    for key, envelope in outputs.items():
        output = _output(envelope)
        if key in kept_keys or _artifact_size(output) <= SMALL_ARTIFACTS_MAX:
            yield from (artifact.ref for artifact in output.artifacts)


def past_notes(
    line: RunLine, outputs: Outputs, contents: Contents, workflow: CompiledWorkflow
) -> list[PastNotes]:
    """Return the notes on the line to a node, of steps and of checkpoints, the newest first.

    `outputs` are those on the line, and those farther back that are kept.
    """
    nodes = [node_of(envelope) for envelope in line.nodes]
    entries = {entry.key: entry for entry in _accepted_steps(nodes)}
    for envelope in line.checkpoints:
        checkpoint = _checkpoint_entry(node_of(envelope))
        entries[checkpoint.key] = checkpoint
    kept_steps = {step.id: step for step, _ in workflow.steps_with_loops() if step.is_kept}
    past = nodes[0].past.outputs
    kept = {key: kept_steps[step] for step, key in past.items() if step in kept_steps}
    for key, step in kept.items():  # one may lie farther back
        entries.setdefault(key, _Entry(0, step.id, NodeId(""), step.title, key))
    return [
        notes
        for entry in sorted(entries.values(), key=lambda entry: entry.seq, reverse=True)
        if entry.key in outputs
        for notes in _past_notes(entry, _output(outputs[entry.key]), contents, kept.get(entry.key))
    ]


def later_notes(here: NodeId, line_to_tip: RunLine) -> list[TitledNotes] | None:
    """Return the notes on the line from one node to another, the newest first.

    None if the one is not on the line to the other.
    """
    line = [node_of(envelope) for envelope in line_to_tip.nodes]
    line_ids = [node.id for node in line]
    if here not in line_ids:
        return None
    entries = _accepted_steps(line[: line_ids.index(here) + 1])
    outputs = line_to_tip.outputs
    return [
        (entry.title, notes_in(outputs[entry.key]) or NO_NOTES)
        for entry in entries
        if entry.key in outputs
    ]


def outputs_of_step(
    reader: LogReader, node: Node, step: str
) -> tuple[list[PastOutput], list[LeftOutNotes]] | NoSuchStep:
    """Return the submissions for a step on the line to `node`, and those that were too long.

    `step` is the id of a step, of the node where one output was submitted, or `all`.
    """
    line = reader.ask(queries.line_to(node.id, steps=LINE_MAX, checkpoints=LINE_MAX))
    entries = _accepted_steps([node_of(envelope) for envelope in line.nodes])
    entries += [_checkpoint_entry(node_of(envelope)) for envelope in line.checkpoints]
    wanted = [entry for entry in entries if step in (ALL, entry.step, entry.node)]
    if not wanted and step != ALL:
        return NoSuchStep(step, tuple(dict.fromkeys(entry.step for entry in reversed(entries))))
    shown: list[tuple[_Entry, OutputAppended]] = []
    left_out: list[LeftOutNotes] = []
    room = READ_CHARS_MAX
    for entry in sorted(wanted, key=lambda entry: entry.seq, reverse=True):
        if entry.key not in line.outputs:
            continue  # a checkpoint without notes
        output = _output(line.outputs[entry.key])
        size = len(output.notes) + _artifact_size(output)
        if shown and size > room:
            left_out.append(LeftOutNotes(entry.node, entry.title, size))
        else:
            shown.append((entry, output))
            room -= size
    refs = (artifact.ref for _, output in shown for artifact in output.artifacts)
    contents = reader.ask(reader.blobs(refs))
    outputs = [
        PastOutput(entry.step, entry.title, output.notes, _artifacts(output, contents))
        for entry, output in reversed(shown)
    ]
    return outputs, left_out[::-1]


def unaccepted_notes(node: Node, outputs: Outputs) -> str:
    """Return the notes of the attempt that was blocked at `node`, if it is such a node."""
    created = node.created
    if created.node_kind != "blocked" or created.parent is None or created.attempt is None:
        return ""
    envelope = outputs.get(output_key(created.parent, created.attempt))
    return notes_in(envelope) if envelope else ""


def values_at(reader: LogReader, node: Node) -> dict[str, Json]:
    """Return the context at `node`, the goal left out."""
    values = contexts.decode(reader.blob(node.created.context))
    return {name: value for name, value in values.items() if name != "goal"}


def artifacts_at(reader: LogReader, node: Node, attempt: AttemptId) -> tuple[str, ...]:
    """Return the artifacts that were submitted at `node` with `attempt`, as JSON."""
    envelope = reader.event_with_key(node.session, output_key(node.id, attempt))
    if envelope is None:
        return ()
    output = _output(envelope)
    refs = (artifact.ref for artifact in output.artifacts)
    return _artifacts(output, reader.ask(reader.blobs(refs)))


def _accepted_steps(line: Sequence[Node]) -> list[_Entry]:
    """Return the outputs of the accepted steps on a line, which is from its end."""
    return [
        _Entry(
            child.seq,
            parent.created.step_id or "",
            parent.id,
            parent.created.step_title or "",
            output_key(parent.id, child.created.attempt),
        )
        for child, parent in pairwise(line)
        if child.created.node_kind in ("step", "approval")
        and child.created.attempt
        and parent.created.node_kind != "approval"
    ]


def _checkpoint_entry(checkpoint: Node) -> _Entry:
    assert checkpoint.created.attempt is not None, "a checkpoint is set with a token"
    key = output_key(checkpoint.id, checkpoint.created.attempt)
    return _Entry(checkpoint.seq, checkpoint.id, checkpoint.id, "Checkpoint", key)


def _past_notes(
    entry: _Entry, output: OutputAppended, contents: Contents, kept: CompiledStep | None
) -> Iterator[PastNotes]:
    """Yield the notes of an output; apart from them the artifacts, if only those are kept."""
    size = _artifact_size(output)
    artifacts = _artifacts(output, contents) if kept or size <= SMALL_ARTIFACTS_MAX else ()
    if kept and not kept.keep:
        yield PastNotes(entry.step, entry.title, "", is_kept=True, artifacts=artifacts)
        artifacts, size = (), 0
    yield PastNotes(
        entry.step,
        entry.title,
        output.notes or NO_NOTES,
        kept is not None and kept.keep,
        artifacts,
        0 if artifacts else size,
    )


def _artifacts(output: OutputAppended, contents: Contents) -> tuple[str, ...]:
    return tuple(contents[artifact.ref].decode() for artifact in output.artifacts)


def _artifact_size(output: OutputAppended) -> int:
    return sum(artifact.size for artifact in output.artifacts)


def _output(envelope: Envelope) -> OutputAppended:
    assert isinstance(envelope.event, OutputAppended), "an output key is used by an output"
    return envelope.event


def read_notes(
    reader: LogReader, keyring: Keyring, *, token: str, step: str
) -> RenderedAnswer | BadToken | UnhealthySession | NoSuchStep:
    """Return the notes and artifacts of a step, or of all of them with the values."""
    asked = token_target.find_token_target(reader, keyring, token)
    if not isinstance(asked, TokenTarget):
        return asked
    target = token_target.skip_answered_approval(reader, asked)
    node = target.node
    found = outputs_of_step(reader, node, step)
    if isinstance(found, NoSuchStep):
        return found
    outputs, left_out = found
    values = values_at(reader, node) if step == ALL else {}
    attempt = token_target.unspent_attempt(target.events, node.id, target.attempt)
    token = mint(Token(node.id, attempt), keyring.current())
    return answer_text.fill(
        answer_text.notes_answer(tuple(outputs), values, tuple(left_out)),
        prompt="",
        token=token,
        token_at=lambda _: token,
        session=node.session,
        run=node.run,
    )
