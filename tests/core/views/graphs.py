"""Run graphs made up for tests: a node for each move, in any order that a log could have."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from interlock.core import ids
from interlock.core.ids import BlobRef, NodeId, StepId
from interlock.core.session.events import (
    ENVELOPE_VERSION,
    Envelope,
    NodeCreated,
    NodeKind,
    TraceAppended,
    decode_envelope,
)
from interlock.core.views.graph import RunGraph, run_graph
from interlock.core.workflow.interpret import Entry
from interlock.core.workflow.positions import Frame
from tests.scenes import RUN, SESSION, opening

BLOB = BlobRef(f"sha256:{'0' * 64}")
OPENING = tuple(decode_envelope(link.body) for link in opening().links)


class Move(NamedTuple):
    back: int
    """From how far back work goes on: 0 is the node that was made last, checkpoints apart."""
    kind: NodeKind = "step"
    is_aside: bool = False
    skips: int = 0


def node(number: int) -> NodeId:
    return ids.node_id(number.to_bytes(8, "big"))


def envelopes(moves: Sequence[Move]) -> list[Envelope]:
    """A session with one run. The first node is its root; nothing comes after a checkpoint."""
    found = list(OPENING)
    usable: list[int] = []
    for number, move in enumerate(moves):
        parent = usable[-1 - move.back % len(usable)] if usable else None
        created = NodeCreated(
            node_kind=move.kind if usable else "step",
            parent=None if parent is None else node(parent),
            attempt=None if parent is None else ids.first_attempt(node(number)),
            position=(Frame(0),),
            depth=0,
            number=1,
            step_id=StepId("work"),
            step_title=f"Step {number}",
            prompt=None,
            context=BLOB,
            answer=BLOB,
            token_key=0,
            is_aside=move.is_aside and bool(usable),
        )
        if created.node_kind != "checkpoint":
            usable.append(number)
        entries = tuple(Entry("skipped", f"s{index}", "no") for index in range(move.skips))
        for event in (created, *((TraceAppended(entries),) if entries else ())):
            seq = len(found)
            found.append(
                Envelope(
                    ENVELOPE_VERSION, SESSION, seq, 1_000 + seq, f"k{seq}", event, RUN, node(number)
                )
            )
    return found


def graph(moves: Sequence[Move]) -> RunGraph:
    return run_graph(RUN, envelopes(moves))


_kinds: st.SearchStrategy[NodeKind] = st.sampled_from(
    ("step", "step", "step", "blocked", "approval", "checkpoint")
)
_backs = st.one_of(st.just(0), st.just(0), st.integers(0, 4), st.integers(0, 200))
moves = st.lists(
    st.builds(
        Move,
        back=_backs,
        kind=_kinds,
        is_aside=st.sampled_from((False, False, False, True)),
        skips=st.sampled_from((0, 0, 0, 1, 3)),
    ),
    min_size=1,
    max_size=60,
)


def large(nodes: int, path: int, *, seed: int = 0) -> RunGraph:
    """A graph with so many nodes, of which `path` lead to the tip; the rest are branches of it."""
    random = Random(seed)
    made, on_path, usable = [Move(0)], [0], [0]

    def add(parent: int, kind: NodeKind = "step") -> int:
        made.append(Move(len(usable) - 1 - usable.index(parent), kind))
        if kind != "checkpoint":
            usable.append(len(made) - 1)
        return len(made) - 1

    while len(on_path) < path - 1:
        on_path.append(add(on_path[-1]))
        wanted = (nodes - path) * len(on_path) // (path - 1)
        while len(made) - len(on_path) < wanted:
            here = random.choice(on_path[-10:])
            for _ in range(min(random.randint(1, 12), wanted - len(made) + len(on_path))):
                kind = random.choice(("step", "step", "step", "blocked", "checkpoint"))
                last = add(here, kind)
                here = here if kind == "checkpoint" else last
    # Work goes on where the path was: the last node made is its tip.
    add(on_path[-1])
    return graph(made)
