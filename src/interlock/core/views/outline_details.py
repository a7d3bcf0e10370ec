"""The details of the steps of an outline that are shown: a sentence, decisions, refusals.

`detail_keys` names the events to read, and `step_details` tells of them: only what is on the screen
is read, however long the run is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from interlock.core.ids import NodeId
from interlock.core.session.events import (
    Envelope,
    OutputAppended,
    TraceAppended,
    ValidationPerformed,
)
from interlock.core.session.nodes import output_key, trace_key, validation_key
from interlock.core.views.arrivals import routing_entries
from interlock.core.views.decisions import Titles, decisions_in_words
from interlock.core.views.outline import OutlineStep
from interlock.core.views.run_nodes import PlacedRunNode
from interlock.core.views.sentences import first_sentence

EventsByKey = Mapping[str, Envelope]


class StepDetails(msgspec.Struct, frozen=True):
    sentence: str
    """The first sentence of the notes that were submitted last."""
    decisions: tuple[str, ...]
    """The reasons why the run came here, in words."""
    refusals: tuple[tuple[str, int], ...]
    """The reasons why attempts were not accepted, and how often each was given."""
    branches: tuple[str, ...]
    """The first sentence of each branch."""
    checkpoints: tuple[str, ...]


def detail_keys(steps: Sequence[OutlineStep]) -> list[str]:
    """The keys of the events that `step_details` needs."""
    keys: list[str] = []
    for step in steps:
        # The way past an approval is recorded with the approval.
        keys += [trace_key(step.first.id), *(trace_key(one) for one in _parents(step))]
        keys += [validation_key(node.id) for node in step.led_to if node.kind == "blocked"]
        nodes = (*step.led_to, *(branch.first for branch in step.branches), *step.checkpoints)
        keys += map(output_key_to, nodes)
    return list(dict.fromkeys(keys))


def step_details(
    steps: Sequence[OutlineStep], events: EventsByKey, titles: Titles
) -> dict[NodeId, StepDetails]:
    """The details by the node at which each step was given."""
    return {step.first.id: _details(step, events, titles) for step in steps}


def _details(step: OutlineStep, events: EventsByKey, titles: Titles) -> StepDetails:
    notes = [text for node in step.led_to if (text := notes_to(node, events))]
    messages = Counter(
        blocker.message
        for node in step.led_to
        if (found := events.get(validation_key(node.id)))
        and isinstance(found.event, ValidationPerformed)
        for blocker in found.event.blockers
    )
    traces = (events.get(trace_key(node)) for node in (*_parents(step), step.first.id))
    entries = [
        entry
        for found in traces
        if found and isinstance(found.event, TraceAppended)
        for entry in routing_entries(found.event.entries)
    ]
    return StepDetails(
        first_sentence(notes[-1]) if notes else "",
        decisions_in_words(entries, titles),
        tuple(messages.items()),
        tuple(first_sentence(notes_to(branch.first, events)) for branch in step.branches),
        tuple(first_sentence(notes_to(node, events)) for node in step.checkpoints),
    )


def _parents(step: OutlineStep) -> tuple[NodeId, ...]:
    parent = step.first.created.parent
    return (parent,) if parent and step.is_after_approval else ()


def notes_to(node: PlacedRunNode, events: EventsByKey) -> str:
    found = events.get(output_key_to(node))
    return found.event.notes if found and isinstance(found.event, OutputAppended) else ""


def output_key_to(node: PlacedRunNode) -> str:
    """The key of the submission that led to a node, or of a checkpoint."""
    attempt, parent = node.created.attempt, node.created.parent
    at = node.id if node.kind == "checkpoint" else parent
    return output_key(at, attempt) if at and attempt else ""
