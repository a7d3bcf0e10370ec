"""Answers: the structure and the text say the same, and what is stored can be filled again."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from interlock.core import canonical
from interlock.core.ids import RunId, SessionId, StepId, WorkflowHash, WorkflowId
from interlock.core.session import answer
from interlock.core.session.answer import Pending, WorkflowRef, decode_frame

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
pendings = st.builds(
    Pending,
    step_id=st.builds(StepId, words),
    title=words,
    number=st.integers(1, 99),
    of=st.integers(1, 99),
    prompt=words,
)
refs = st.builds(WorkflowRef, st.builds(WorkflowId, words), words, st.builds(WorkflowHash, words))
frames = st.builds(
    answer.frame,
    session=st.builds(SessionId, words),
    run=st.builds(RunId, words),
    workflow=refs,
    pending=st.none() | pendings,
    warnings=st.lists(words, max_size=3).map(tuple),
)


def leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [value] if isinstance(value, str) else []


@given(frames, words, words)
def test_every_fact_of_the_structure_is_in_the_text(
    stored: answer.Frame, prompt: str, token: str
) -> None:
    answered = answer.fill(stored, prompt=prompt if stored.answer.pending else "", token=token)
    example_of_the_call = {answer.WRITE_YOUR_NOTES, "continue_workflow"}

    for fact in leaves(msgspec.to_builtins(answered.answer)):
        assert fact in answered.text or fact in example_of_the_call


@given(frames, words, words)
def test_a_stored_answer_comes_back_whole(stored: answer.Frame, prompt: str, token: str) -> None:
    reread = decode_frame(canonical.encode(stored))

    assert answer.fill(reread, prompt=prompt, token=token) == answer.fill(
        stored, prompt=prompt, token=token
    )


@given(frames)
def test_neither_prompt_nor_token_is_stored(stored: answer.Frame) -> None:
    answered = answer.fill(stored, prompt="THE-PROMPT", token="THE-TOKEN")

    assert "THE-TOKEN" in answered.text
    content = canonical.encode(stored)
    assert b"THE-PROMPT" not in content
    assert b"THE-TOKEN" not in content


@given(frames)
def test_the_text_beyond_the_prompt_is_short(stored: answer.Frame) -> None:
    own_words = sum(len(part) for part in stored.text) - sum(
        len(fact) for fact in leaves(msgspec.to_builtins(stored.answer))
    )

    assert own_words < 400
