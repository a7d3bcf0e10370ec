"""Answers: the structure and the text say the same, and what is stored can be filled again."""

from typing import get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from interlock.core import canonical
from interlock.core.ids import (
    ApprovalId,
    NodeId,
    RunId,
    SessionId,
    StepId,
    WorkflowHash,
    WorkflowId,
)
from interlock.core.preferences import Preferences
from interlock.core.session import answer
from interlock.core.session.answer import (
    AnswerApproval,
    BlockedStep,
    Expects,
    Gaps,
    Pass,
    Pending,
    Situation,
    WorkflowRef,
    decode_stored_answer,
)
from interlock.core.session.blockers import NOTES_PLACEHOLDER, Blocker, BlockerCode

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
pendings = st.builds(
    Pending,
    step_id=st.builds(StepId, words),
    title=words,
    number=st.integers(1, 99),
    of=st.integers(1, 99),
    prompt=words,
    expects=st.builds(Expects, st.booleans(), st.none() | words),
    loop=st.none() | st.builds(Pass, st.builds(StepId, words), st.integers(1, 9), st.just(9)),
)
approvals = st.builds(AnswerApproval, st.builds(ApprovalId, words), words, words, words)
refs = st.builds(WorkflowRef, st.builds(WorkflowId, words), words, st.builds(WorkflowHash, words))
blockers = st.builds(
    Blocker,
    code=st.sampled_from(get_args(BlockerCode)),
    pointer=words,
    message=words,
    suggestion=words,
)
blocked = st.builds(
    BlockedStep,
    blockers=st.lists(blockers, min_size=1, max_size=3).map(tuple),
    attempts_left=st.integers(0, 9),
    example=st.just({"notesMarkdown": NOTES_PLACEHOLDER}),
)
situations = st.builds(
    Situation,
    session=st.builds(SessionId, words),
    run=st.builds(RunId, words),
    workflow=refs,
    pending=st.none() | pendings,
    preferences=st.builds(Preferences),
    gaps=st.builds(Gaps, st.integers(0, 9), st.just(0)),
    needs_user=st.booleans(),
    is_waiting=st.booleans(),
    blocked=st.none() | blocked,
    approval=st.none() | approvals,
    checkpoint=st.none() | st.builds(NodeId, words),
    warnings=st.lists(words, max_size=3).map(tuple),
    verify=st.lists(words, max_size=3).map(tuple),
    recap=st.just("") | words,
)
# Where a run waits for an approval, no step is pending.
frames = situations.map(
    lambda now: answer.stored_answer(
        msgspec.structs.replace(now, pending=None, blocked=None) if now.approval else now
    )
)


def leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [value] if isinstance(value, str) else []


@given(frames, words, words)
def test_every_fact_of_the_structure_is_in_the_text(
    stored: answer.StoredAnswer, prompt: str, token: str
) -> None:
    answered = answer.fill(stored, prompt=prompt if stored.answer.pending else "", token=token)
    facts = msgspec.to_builtins(answered.answer)
    facts.pop("nextCall")  # the text describes it in words

    for fact in leaves(facts):
        assert fact in answered.text


@given(frames, words, words)
def test_a_stored_answer_comes_back_whole(
    stored: answer.StoredAnswer, prompt: str, token: str
) -> None:
    reread = decode_stored_answer(canonical.encode(stored))

    assert answer.fill(reread, prompt=prompt, token=token) == answer.fill(
        stored, prompt=prompt, token=token
    )


@given(frames)
def test_neither_prompt_nor_token_is_stored(stored: answer.StoredAnswer) -> None:
    answered = answer.fill(stored, prompt="THE-PROMPT", token="THE-TOKEN")

    assert "THE-TOKEN" in answered.text
    content = canonical.encode(stored)
    assert b"THE-PROMPT" not in content
    assert b"THE-TOKEN" not in content


@given(frames)
def test_the_text_beyond_the_prompt_is_short(stored: answer.StoredAnswer) -> None:
    own_words = sum(len(part) for part in stored.text) - sum(
        len(fact) for fact in leaves(msgspec.to_builtins(stored.answer))
    )

    assert own_words < 700


def intent_of(**now: object) -> str:
    base = Situation(
        SessionId("s"),
        RunId("r"),
        WorkflowRef(WorkflowId("w"), "1", WorkflowHash("h")),
        Pending(StepId("a"), "A", 1, 1, "p", Expects(notes=True)),
        Preferences(),
        Gaps(),
    )
    return answer.stored_answer(msgspec.structs.replace(base, **now)).answer.next_intent


def test_the_next_intent_is_a_table() -> None:
    assert intent_of() == "perform_pending_then_continue"
    assert intent_of(blocked=BlockedStep((), 3, {})) == "perform_pending_then_continue"
    assert intent_of(needs_user=True) == "await_user_confirmation"
    assert intent_of(is_waiting=True) == "rehydrate_only"
    assert intent_of(is_waiting=True, needs_user=True) == "rehydrate_only"
    assert intent_of(pending=None) == "complete"
    waits = AnswerApproval(ApprovalId("apr"), "Well?", "so", "never")
    assert intent_of(pending=None, approval=waits) == "await_user_confirmation"
