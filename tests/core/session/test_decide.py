"""What starting and advancing decide: values in, plan and answer out."""

from interlock.core import ids
from interlock.core.ids import BlobRef
from interlock.core.session import decide, head
from interlock.core.session.answer import WRITE_YOUR_NOTES, NextCall, NextOutput, NextParams
from interlock.core.session.decide import (
    NOTES_BYTES_MAX,
    Decided,
    Node,
    NotesMissing,
    NotesNotWritten,
    NotesTooLong,
    NothingPending,
    Refusal,
)
from interlock.core.session.events import decode_envelope
from interlock.core.session.plan import Plan, Stream
from interlock.core.tokens import Token, read
from interlock.core.workflow import prompt
from tests.scenes import KEY, ROOT, RUN, SESSION, after, pinned

ARGUMENTS = BlobRef("sha256:00")


def start(steps: int = 2) -> Decided:
    return decide.start(
        pinned(steps),
        goal="Try it",
        workspace="/work",
        session=SESSION,
        run=RUN,
        root=ROOT,
        key=KEY,
        at_ms=1_000,
    )


def last_node(plan: Plan) -> Node:
    envelopes = [decode_envelope(link.body) for link in plan.links]
    return next(
        decide.node_of(found) for found in reversed(envelopes) if found.key.startswith("node:")
    )


def hand_in(before: Decided, notes: str | None, *, steps: int = 2) -> Decided | Refusal:
    node = last_node(before.plan)
    return decide.advance(
        after(before.plan),
        node,
        pinned(steps).workflow,
        attempt=ids.first_attempt(node.id),
        arguments=ARGUMENTS,
        notes=notes,
        other_branch=None,
        key=KEY,
        at_ms=2_000,
    )


def advanced(before: Decided, *, steps: int = 2) -> Decided:
    decided = hand_in(before, "done", steps=steps)
    assert isinstance(decided, Decided)
    return decided


def kinds(plan: Plan) -> list[str]:
    return [decode_envelope(link.body).key.partition(":")[0] for link in plan.links]


def test_starting_gives_the_first_step_and_the_call_that_hands_it_in() -> None:
    answer = start().answered.answer

    assert answer.pending is not None
    assert (answer.pending.step_id, answer.pending.number, answer.pending.of) == ("step-1", 1, 2)
    assert answer.next_intent == "perform_pending_then_continue"
    assert answer.next_call == NextCall(
        NextParams(answer.continue_token, NextOutput(WRITE_YOUR_NOTES))
    )
    assert read(answer.continue_token, {KEY.id: KEY}) == Token(ROOT, ids.first_attempt(ROOT))


def test_the_first_prompt_says_the_goal() -> None:
    pending = start().answered.answer.pending

    assert pending is not None
    assert pending.prompt == prompt.render(pinned(2).workflow, 0, goal="Try it")
    assert "Goal: Try it" in pending.prompt


def test_starting_records_session_run_and_node() -> None:
    assert kinds(start().plan) == ["session", "run", "node"]


def test_advancing_records_outcome_output_and_the_next_node() -> None:
    decided = advanced(start())

    assert kinds(decided.plan) == ["advance", "output", "node"]
    assert decided.answered.answer.pending is not None
    assert decided.answered.answer.pending.step_id == "step-2"


def test_handing_in_the_last_step_completes_the_run() -> None:
    decided = advanced(advanced(start()))

    assert kinds(decided.plan) == ["advance", "output", "node", "complete"]
    answer = decided.answered.answer
    assert (answer.is_complete, answer.next_intent, answer.next_call) == (True, "complete", None)
    assert decided.plan.head.run(RUN).status == "complete"


def test_the_child_is_named_by_parent_and_attempt() -> None:
    first, second = advanced(start()), advanced(start())

    assert last_node(first.plan).id == ids.child_node(ROOT, ids.first_attempt(ROOT))
    assert first == second


def test_a_complete_run_takes_no_more_steps() -> None:
    assert hand_in(advanced(advanced(start())), "more") == NothingPending()


def test_every_step_wants_notes_of_its_own() -> None:
    begun = start()

    assert hand_in(begun, None) == NotesMissing()
    assert hand_in(begun, "  \n") == NotesMissing()
    assert hand_in(begun, WRITE_YOUR_NOTES) == NotesNotWritten()
    assert hand_in(begun, "é" * NOTES_BYTES_MAX) == NotesTooLong(
        2 * NOTES_BYTES_MAX, NOTES_BYTES_MAX
    )
    assert isinstance(hand_in(begun, "x" * NOTES_BYTES_MAX), Decided)


def test_the_head_kept_along_the_way_is_the_fold_of_all_events() -> None:
    begun = start()
    middle = advanced(begun)
    end = advanced(middle)
    bodies = [link.body for plan in (begun.plan, middle.plan, end.plan) for link in plan.links]

    folded = None
    for body in bodies:
        folded = head.apply(folded, decode_envelope(body))

    assert end.plan.head == folded
    assert folded is not None
    assert (folded.runs[0].steps_done, folded.recap) == (2, "done")


def test_a_plan_continues_the_chain_of_its_stream() -> None:
    begun = start()
    stream = after(begun.plan)

    assert stream == Stream(SESSION, 3, begun.plan.links[-1].digest, begun.plan.head)
    assert [link.seq for link in advanced(begun).plan.links] == [3, 4, 5]
