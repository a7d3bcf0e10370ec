"""A conversation is made shorter: what stays, what goes first, and that it can still be sent."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.unattended.compaction import TURNS_KEPT, compact, conversation_chars
from interlock.core.unattended.conversation import (
    Message,
    ModelMessage,
    SpokenPart,
    ThinkingPart,
    ToolMessage,
    ToolReply,
    ToolRequest,
    UserMessage,
)

STEP = UserMessage("# Step 1 of 1: Look")


def turn(number: int, *, arguments: int = 10, result: int = 10, said: str = "") -> list[Message]:
    call = ToolRequest(f"c{number}", "Write", f'{{"content":"{"a" * arguments}"}}')
    parts = (ThinkingPart("why", "signed"), SpokenPart(f"turn {number}"), call)
    told: list[Message] = [UserMessage(said)] if said else []
    return [ModelMessage(parts), ToolMessage((ToolReply(call.id, "Write", "r" * result),)), *told]


TURNS = st.lists(
    st.tuples(st.integers(0, 5_000), st.integers(0, 5_000), st.sampled_from(["", "Mind the gap"])),
    max_size=14,
)


@given(TURNS, st.integers(0, 30_000))
def test_a_shorter_conversation_can_be_sent_and_keeps_what_counts(
    lengths: list[tuple[int, int, str]], chars_max: int
) -> None:
    turns = [turn(n, arguments=a, result=r, said=s) for n, (a, r, s) in enumerate(lengths)]
    messages = (STEP, *(message for one in turns for message in one))

    shorter = compact(messages, chars_max)

    assert conversation_chars(shorter) <= max(chars_max, conversation_chars(messages))
    assert isinstance(shorter[0], UserMessage)
    assert shorter[0].text.startswith(STEP.text)
    for before, after in pairwise(shorter):
        if isinstance(before, ModelMessage):
            assert isinstance(after, ToolMessage)
            assert [call.id for call in before.calls] == [one.call for one in after.results]
    assert shorter[-1:] == messages[-1:], "the last results are read in full"
    assert compact(messages, chars_max) == shorter, "each replay has the same one"
    if conversation_chars(messages) <= chars_max:
        assert shorter == messages


def test_old_results_go_first_then_old_turns_and_thoughts_stay_as_they_are() -> None:
    messages = (STEP, *(m for n in range(12) for m in turn(n, arguments=3_000, result=3_000)))
    size = conversation_chars(messages)

    cut = compact(messages, size // 2)
    assert len(cut) == len(messages)
    assert cut[-2 * TURNS_KEPT :] == messages[-2 * TURNS_KEPT :]
    assert cut[1] != messages[1]
    assert isinstance(cut[1], ModelMessage)
    assert ThinkingPart("why", "signed") in cut[1].parts
    assert isinstance(cut[2], ToolMessage)
    assert "2,600 characters were left out" in cut[2].results[0].text

    dropped = compact(messages, size // 4)
    assert len(dropped) < len(messages)
    assert "Your first" in str(dropped[0])
    assert dropped[-1] == messages[-1]
