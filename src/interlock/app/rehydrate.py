"""Show again where a run stands, and what happened before. Handed a log that it can only read."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from interlock.app import place as places
from interlock.app.observe import to_verify
from interlock.app.place import Place
from interlock.app.refusals import BadToken, NodeGone, Unhealthy
from interlock.core import ids
from interlock.core.ids import NodeId, WorkflowHash
from interlock.core.session import answer as answers
from interlock.core.session import recap
from interlock.core.session.answer import Answered
from interlock.core.session.blockers import Blocker
from interlock.core.session.events import Envelope, OutputAppended, ValidationPerformed
from interlock.core.session.nodes import (
    Node,
    is_waiting,
    node_of,
    output_key,
    place_of,
    situation,
    validation_key,
)
from interlock.core.session.recap import Past
from interlock.core.tokens import Token, mint
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.store.keyring import Keyring
from interlock.store.log import LogReader

NOTES_MAX = 20  # steps to look back; the budget in bytes is usually reached before
BELOW_MAX = 10
WALK_MAX = 100  # nodes to look through between here and the tip
CHECKPOINTS_MAX = 3


def rehydrate(
    reader: LogReader,
    keyring: Keyring,
    entropy: Callable[[int], bytes],
    pinned: Callable[[WorkflowHash], CompiledWorkflow],
    *,
    token: str,
) -> Answered | BadToken | NodeGone | Unhealthy:
    with reader.snapshot():
        place = places.find(reader, token, keyring.keys())
        if not isinstance(place, Place):
            return place
        node, run, head = place.node, place.run, place.stream.head
        assert head is not None, "a node lies in a session"
        step = pinned(run.workflow_hash).step_at(node.created.cursor)
        now = situation(place_of(node), run, step, blockers=_blockers(reader, node))
        stored = answers.frame(
            msgspec.structs.replace(
                now,
                is_waiting=is_waiting(node, run),
                verify=to_verify(head, Path(head.workspace)),
                recap=_recap(reader, node) + _below(reader, place),
            )
        )
        prompt = places.prompt_of(reader, node)
    attempt = ids.attempt_id(entropy(ids.ATTEMPT_BYTES))
    token = mint(Token(node.id, attempt), keyring.current())
    return answers.fill(stored, prompt=prompt, token=token)


def _blockers(reader: LogReader, node: Node) -> tuple[Blocker, ...]:
    found = reader.recorded(node.session, validation_key(node.id))
    if found is None:
        return ()
    assert isinstance(found.event, ValidationPerformed), "a validation key is taken by one"
    return found.event.blockers


def _recap(reader: LogReader, node: Node) -> str:
    markers = [Past("Checkpoint", notes) for notes in _marked(reader, node)]
    steps = _steps(reader, node.id, limit=NOTES_MAX)
    return recap.compose([*markers, *steps], older=max(0, node.created.cursor - len(steps)))


def _marked(reader: LogReader, node: Node) -> Iterator[str]:
    for marker in reader.newest_children(node.id, "checkpoint", limit=CHECKPOINTS_MAX):
        found = places.load(reader, marker)
        assert found.created.attempt is not None, "a checkpoint is set with a token"
        if notes := places.notes_at(reader, found, found.created.attempt):
            yield notes


def _steps(
    reader: LogReader, node: NodeId, *, limit: int, until: NodeId | None = None
) -> list[Past]:
    """The steps that lie behind `node`, newest first, with the notes that were accepted."""
    line = [node_of(envelope) for envelope in reader.line_to(node, limit=limit + 1)]
    accepted: list[tuple[str, str]] = []
    for child, parent in pairwise(line):
        if child.id == until:
            break
        if child.created.node_kind == "step" and child.created.attempt:
            key = output_key(parent.id, child.created.attempt)
            accepted.append((key, parent.created.step_title or ""))
    if not accepted:
        return []
    handed = reader.recorded_among(line[0].session, [key for key, _ in accepted])
    return [Past(title, _notes(handed[key])) for key, title in accepted]


def _notes(envelope: Envelope) -> str:
    assert isinstance(envelope.event, OutputAppended), "an output key is taken by an output"
    return envelope.event.notes or "(no notes)"


def _below(reader: LogReader, place: Place) -> str:
    """What was done after this node on the way to the run's tip, where it is not the tip itself."""
    tip, here = place.run.tip, place.node.id
    if tip is None or tip == here:
        return ""
    if here not in {envelope.node for envelope in reader.line_to(tip, limit=WALK_MAX)}:
        return f"\n\nThe run's newest point is elsewhere ({tip}, {place.run.pending_title})."
    done = reversed(_steps(reader, tip, limit=WALK_MAX, until=here)[-BELOW_MAX:])
    lines = [f"- {past.title}: {past.notes.strip().partition(chr(10))[0][:160]}" for past in done]
    shown = "\n".join(lines)
    return f"\n\n### Done after this point already\n\nThe run went on from here to {tip}:\n{shown}"
