"""Answers: the structure and the text say the same, and what is stored can be filled again."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from interlock.core import canonical
from interlock.core.ids import ApprovalId, RunId, SessionId, StepId, WorkflowHash, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.session import answer_text
from interlock.core.session.answer import (
    AnswerApproval,
    BlockedStep,
    Expects,
    Introduction,
    LeftOutNotes,
    PastOutput,
    Pending,
    Progress,
    RenderedAnswer,
    Situation,
    StoredAnswer,
    WorkflowRef,
    decode_stored_answer,
)
from tests.core.any_struct import some

TOLD_IN_WORDS = ("nextCall", "kind", "nextIntent", "introduction")  # the last is for programs
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
names = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=40)
"""Ids and the like, which no control character is in."""


ID_FIELDS = ("id", "session", "run", "hash", "step_id", "step", "node", "checkpoint")
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(ID_FIELDS, names),
    "checkpoint": st.none() | names,
    "about": st.just(""),
    "example": st.just({}),  # of a blocked step, it is in the call that comes next
    "number": st.integers(1, 99),
}
situations = some(Situation, words, **FIELDS)
# Where a run waits for an approval, no step is pending.
frames = situations.map(
    lambda now: answer_text.stored_answer(
        msgspec.structs.replace(now, pending=None, blocked=None) if now.approval else now
    )
)
readings = st.builds(
    answer_text.notes_answer,
    st.lists(some(PastOutput, words, **FIELDS), max_size=2).map(tuple),
    st.dictionaries(names, st.integers()),
    st.lists(some(LeftOutNotes, words, **FIELDS), max_size=2).map(tuple),
)


def leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [value] if isinstance(value, str) else []


def filled(stored: StoredAnswer, prompt: str, token: str) -> RenderedAnswer:
    return answer_text.fill(
        stored,
        prompt=prompt,
        token=token,
        token_at=lambda node: f"token at {node}",
        session=SessionId("s"),
        run=RunId("r"),
    )


@given(frames | readings, words, words)
def test_every_fact_of_the_structure_is_in_the_text(
    stored: StoredAnswer, prompt: str, token: str
) -> None:
    answered = filled(stored, prompt if stored.answer.pending else "", token)
    facts = msgspec.to_builtins(answered.answer)
    facts.get("approval", {}).pop("id", None)  # it is in the commands of `how`
    if stored.answer.blocked and not stored.answer.introduction:
        facts.pop("pending", None)  # the agent has just submitted this step

    visible = answered.text.replace("\0", "\ufffd")
    for fact in leaves({key: item for key, item in facts.items() if key not in TOLD_IN_WORDS}):
        assert fact.replace("\0", "\ufffd") in visible


@given(frames | readings, words, words)
def test_a_stored_answer_comes_back_whole(stored: StoredAnswer, prompt: str, token: str) -> None:
    reread = decode_stored_answer(canonical.encode(stored))

    assert filled(reread, prompt, token) == filled(stored, prompt, token)


@given(frames)
def test_neither_prompt_nor_token_is_stored(stored: StoredAnswer) -> None:
    answered = filled(stored, "THE-PROMPT", "THE-TOKEN")

    assert "THE-TOKEN" in answered.text
    content = canonical.encode(stored)
    assert b"THE-PROMPT" not in content
    assert b"THE-TOKEN" not in content
    assert b"token at" not in content


@given(frames)
def test_a_branch_is_reached_by_its_own_token(stored: StoredAnswer) -> None:
    for branch in filled(stored, "", "THE-TOKEN").answer.branches:
        assert branch.continue_token == f"token at {branch.node}"


@given(frames)
def test_the_text_beyond_the_prompt_is_short(stored: StoredAnswer) -> None:
    answer = stored.answer
    own_words = len(stored.text) - sum(len(fact) for fact in leaves(msgspec.to_builtins(answer)))

    listed = 150 * len(answer.branches) + 40 * len(answer.left_out) + 20 * len(answer.gaps)
    assert own_words < 800 + listed


def test_an_ordinary_step_has_a_frame_of_a_few_words() -> None:
    text = answer_text.stored_answer(ORDINARY).text

    assert text == (
        "# Step 1 of 1: A [a]\n\n\0prompt\0\n\n---\n"
        "Answer in `output.notesMarkdown`: what you did, found and decided, and what is open.\n"
        "Submit: notes.\n"
        "continueToken: \0token\0"
    )


def test_both_forms_explain_notes_completely_at_the_start_and_after_a_break() -> None:
    first = answer_text.stored_answer(msgspec.structs.replace(ORDINARY, is_introduced=False))
    again = answer_text.stored_answer(ORDINARY)
    pending = Pending(StepId("a"), "A", 1, 1, "p", Expects(notes=False))
    without_notes = answer_text.stored_answer(msgspec.structs.replace(ORDINARY, pending=pending))

    for stored in (first, again):
        assert "`output.notesMarkdown`: what you did" in stored.answer.guidance
        assert stored.answer.guidance in stored.text
    assert "if this conversation is lost" in first.answer.guidance
    assert "if this conversation is lost" not in again.text
    assert "notesMarkdown" not in without_notes.text


def test_the_text_has_no_id_of_the_run_and_the_token_once() -> None:
    first = answer_text.stored_answer(msgspec.structs.replace(ORDINARY, is_introduced=False))
    left_out = (LeftOutNotes("a", "A", 9),)
    again = answer_text.stored_answer(msgspec.structs.replace(ORDINARY, left_out=left_out))

    assert "guided" not in first.text
    assert "session" not in first.text
    assert 'step "a"' in again.text
    assert [stored.text.count("\0token\0") for stored in (first, again)] == [1, 1]


ORDINARY = Situation(
    Introduction(
        SessionId("s"),
        RunId("r"),
        WorkflowRef(WorkflowId("w"), "1", WorkflowHash("h")),
        Preferences(),
    ),
    Pending(StepId("a"), "A", 1, 1, "p", Expects(notes=True)),
    Progress(0, 0, 1),
)


def intent_of(**now: object) -> str:
    return answer_text.stored_answer(msgspec.structs.replace(ORDINARY, **now)).answer.next_intent


def test_the_next_intent_is_a_table() -> None:
    assert intent_of() == "perform_pending_then_continue"
    assert intent_of(blocked=BlockedStep((), 3)) == "perform_pending_then_continue"
    assert intent_of(needs_user=True) == "await_user_confirmation"
    assert intent_of(is_waiting=True) == "rehydrate_only"
    assert intent_of(is_waiting=True, needs_user=True) == "rehydrate_only"
    assert intent_of(pending=None) == "complete"
    waits = AnswerApproval(ApprovalId("apr"), "Well?", "so", "never")
    assert intent_of(pending=None, approval=waits) == "await_user_confirmation"
