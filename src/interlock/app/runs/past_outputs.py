"""Read what was handed in on the line of nodes that leads to one: notes, artifacts, values."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import msgspec

from interlock.app.refusals import NoSuchStep
from interlock.core.canonical import Json
from interlock.core.ids import AttemptId, BlobRef, NodeId, StepId
from interlock.core.session import context as contexts
from interlock.core.session.answer import LeftOutNotes, PastOutput
from interlock.core.session.events import OutputAppended
from interlock.core.session.nodes import Node, node_of, output_key
from interlock.core.session.recap import ALL, PastNotes
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.store.log import LogReader

STEPS_MAX = 60  # that a recap looks back; what lies farther back is read by name
LINE_MAX = 100_000  # steps that reading looks back
READ_CHARS_MAX = 48_000  # in one answer: clients cut what is much longer
CHECKPOINTS_MAX = 20
NO_NOTES = "(no notes)"
SMALL_ARTIFACTS_MAX = 1_000  # bytes; larger artifacts of a step are left out and named


TitledNotes: TypeAlias = tuple[str, str]
"""The title of a step, and its notes."""


class _Entry(msgspec.Struct, frozen=True):
    """Where an output is recorded, and what to call it."""

    seq: int
    step: str
    node: NodeId
    """The node where it was handed in, or the checkpoint."""
    title: str
    key: str


def quoted_notes(reader: LogReader, node: Node, workflow: CompiledWorkflow) -> dict[StepId, str]:
    """Return the notes that prompts of the workflow quote, as they are at `node`."""
    keys = {step: key for step, key in node.past.outputs.items() if step in workflow.quoted_steps}
    outputs = reader.events_with_keys(node.session, list(keys.values())) if keys else {}
    return {step: _output(outputs[key].event).notes for step, key in keys.items()}


def past_notes(reader: LogReader, node: Node, workflow: CompiledWorkflow) -> list[PastNotes]:
    """Return the notes on the line to `node`, of steps and of checkpoints, the newest first."""
    line = [node_of(envelope) for envelope in reader.line_to(node.id, steps=STEPS_MAX + 1)]
    entries = {entry.key: entry for entry in _accepted_steps(line)}
    for envelope in reader.checkpoints_beside([one.id for one in line], limit=CHECKPOINTS_MAX):
        checkpoint = _checkpoint_entry(node_of(envelope))
        entries[checkpoint.key] = checkpoint
    kept_steps = {step.id: step for step, _ in workflow.steps_with_loops() if step.is_kept}
    kept = {key: kept_steps[step] for step, key in node.past.outputs.items() if step in kept_steps}
    for key, step in kept.items():  # one may lie farther back
        entries.setdefault(key, _Entry(0, step.id, NodeId(""), step.title, key))
    outputs = reader.events_with_keys(node.session, list(entries))
    return [
        notes
        for entry in sorted(entries.values(), key=lambda entry: entry.seq, reverse=True)
        if entry.key in outputs
        for notes in _past_notes(
            reader, entry, _output(outputs[entry.key].event), kept.get(entry.key)
        )
    ]


def later_notes(reader: LogReader, here: NodeId, tip: NodeId) -> list[TitledNotes] | None:
    """Return the notes on the line from one node to another, the newest first.

    None if the one is not on the line to the other.
    """
    line = [node_of(envelope) for envelope in reader.line_to(tip, steps=STEPS_MAX)]
    line_ids = [node.id for node in line]
    if here not in line_ids:
        return None
    entries = _accepted_steps(line[: line_ids.index(here) + 1])
    outputs = reader.events_with_keys(line[0].session, [entry.key for entry in entries])
    return [
        (entry.title, _output(outputs[entry.key].event).notes or NO_NOTES)
        for entry in entries
        if entry.key in outputs
    ]


def outputs_of_step(
    reader: LogReader, node: Node, step: str
) -> tuple[list[PastOutput], list[LeftOutNotes]] | NoSuchStep:
    """Return what was handed in for a step on the line to `node`, and what was too much to show.

    `step` is the id of a step, of the node where one output was handed in, or `all`.
    """
    line = [node_of(envelope) for envelope in reader.line_to(node.id, steps=LINE_MAX)]
    entries = _accepted_steps(line)
    for envelope in reader.checkpoints_beside([one.id for one in line], limit=LINE_MAX):
        entries.append(_checkpoint_entry(node_of(envelope)))
    wanted = [entry for entry in entries if step in (ALL, entry.step, entry.node)]
    if not wanted and step != ALL:
        return NoSuchStep(step, tuple(dict.fromkeys(entry.step for entry in reversed(entries))))
    found = reader.events_with_keys(node.session, [entry.key for entry in wanted])
    outputs: list[PastOutput] = []
    left_out: list[LeftOutNotes] = []
    room = READ_CHARS_MAX
    for entry in sorted(wanted, key=lambda entry: entry.seq, reverse=True):
        if entry.key not in found:
            continue  # a checkpoint without notes
        event = _output(found[entry.key].event)
        size = len(event.notes) + sum(artifact.size for artifact in event.artifacts)
        if outputs and size > room:
            left_out.append(LeftOutNotes(entry.node, entry.title, size))
        else:
            artifacts = _artifacts(reader, event)
            outputs.append(PastOutput(entry.step, entry.title, event.notes, artifacts))
            room -= size
    return outputs[::-1], left_out[::-1]


def unaccepted_notes(reader: LogReader, node: Node) -> str:
    """Return the notes of the attempt that was blocked at `node`, if it is such a node."""
    created = node.created
    if created.node_kind != "blocked" or created.parent is None or created.attempt is None:
        return ""
    envelope = reader.event_with_key(node.session, output_key(created.parent, created.attempt))
    return envelope.event.notes if envelope and isinstance(envelope.event, OutputAppended) else ""


def values_at(reader: LogReader, node: Node) -> dict[str, Json]:
    """Return the context at `node`, the goal left out."""
    values = contexts.decode(reader.blob(node.created.context))
    return {name: value for name, value in values.items() if name != "goal"}


def artifacts_at(reader: LogReader, node: Node, attempt: AttemptId) -> tuple[str, ...]:
    """Return the artifacts that were handed in at `node` with `attempt`, as JSON."""
    envelope = reader.event_with_key(node.session, output_key(node.id, attempt))
    return _artifacts(reader, _output(envelope.event)) if envelope else ()


def _accepted_steps(line: list[Node]) -> list[_Entry]:
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
    reader: LogReader, entry: _Entry, output: OutputAppended, kept: CompiledStep | None
) -> Iterator[PastNotes]:
    """Yield the notes of an output; apart from them the artifacts, if only those are kept."""
    size = sum(artifact.size for artifact in output.artifacts)
    artifacts = _artifacts(reader, output) if kept or size <= SMALL_ARTIFACTS_MAX else ()
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


def _artifacts(reader: LogReader, output: OutputAppended) -> tuple[str, ...]:
    return tuple(reader.blob(BlobRef(artifact.ref)).decode() for artifact in output.artifacts)


def _output(event: object) -> OutputAppended:
    assert isinstance(event, OutputAppended), "an output key is used by an output"
    return event
