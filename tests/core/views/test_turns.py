"""Turns: a journal as people read it, whatever it begins or ends with."""

import msgspec
import pytest

from interlock.core.unattended.conversation import (
    ModelMessage,
    SpokenPart,
    ThinkingPart,
    ToolReply,
    ToolRequest,
    Usage,
)
from interlock.core.unattended.journal import (
    AdvanceAnswered,
    AdvanceIntended,
    Entry,
    JournalEntry,
    JournalNote,
    MessageAdded,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    StepBegun,
    ToolEnded,
    ToolStarted,
)
from interlock.core.views.turns import (
    HEAD_CHARS,
    LOST_ANSWER,
    TAIL_CHARS,
    AddedText,
    JournalRemark,
    ShortText,
    StepStart,
    Turn,
    TurnRow,
    arguments_text,
    fold_turns,
    shorten,
)

STEP = StepBegun("run", "look", "Look", 1, "token", "system", "message", "m", ("Bash",), "off")
CALLED = ModelCalled("digest", 100)
BASH = ToolRequest("c1", "Bash", '{"command": "ls"}')
HAND_IN = ToolRequest("c2", "complete_step", '{"notes": "Done."}')


def answered(*calls: ToolRequest) -> ModelAnswered:
    parts = (ThinkingPart("Hm."), SpokenPart("I look."), *calls)
    return ModelAnswered(ModelMessage(parts), "tools", Usage(10, 2), 900)


def rows_of(*entries: Entry, first_number: int = 1) -> tuple[TurnRow, ...]:
    placed = [JournalEntry(seq, seq * 1_000, entry) for seq, entry in enumerate(entries, 1)]
    return fold_turns(placed, first_number=first_number)


def only_turn(*entries: Entry) -> Turn:
    (turn,) = (row for row in rows_of(*entries) if isinstance(row, Turn))
    return turn


def test_rows_are_in_the_order_in_which_things_happened() -> None:
    rows = rows_of(
        STEP,
        CALLED,
        answered(BASH),
        ToolStarted("c1", "Bash"),
        ToolEnded(ToolReply("c1", "Bash", "a\nb"), 30, 0),
        MessageAdded("Mind the tests", "steer", "s1"),
        CALLED,
        answered(),
        JournalNote("limit", "80 %"),
        CALLED,
    )

    assert [type(row) for row in rows] == [StepStart, Turn, AddedText, Turn, JournalRemark, Turn]
    assert [row.number for row in rows if isinstance(row, Turn)] == [1, 2, 0]
    first, last = rows[1], rows[-1]
    assert isinstance(first, Turn)
    assert (first.at_ms, first.thinking, first.message.text) == (2_000, "Hm.", "I look.")
    assert isinstance(last, Turn)
    assert last.called_ms == 10_000


@pytest.mark.parametrize(
    ("entries", "state", "output", "handed_in"),
    [
        ((), "waits", "", ""),
        ((ToolStarted("c1", "Bash"),), "runs", "", ""),
        ((ToolEnded(ToolReply("c1", "Bash", "a"), 5, 0),), "done", "a", ""),
        ((ToolEnded(ToolReply("c1", "Bash", "no", is_error=True)),), "failed", "no", ""),
        ((AdvanceIntended("c2", "t", "{}"),), "runs", "", "sent"),
        (
            (AdvanceIntended("c2", "t", "{}"), AdvanceAnswered("advanced", "")),
            "done",
            "",
            "advanced",
        ),
        (
            (AdvanceIntended("c2", "t", "{}"), AdvanceAnswered("blocked", "Say more", "t2")),
            "failed",
            "Say more",
            "blocked",
        ),
    ],
)
def test_a_call_says_what_came_of_it(
    entries: tuple[Entry, ...], state: str, output: str, handed_in: str
) -> None:
    call = HAND_IN if handed_in else BASH

    (use,) = only_turn(CALLED, answered(call), *entries).tools

    assert (use.state, use.output.head, use.handed_in) == (state, output, handed_in)


def test_calls_without_an_answer_are_told_with_the_turn_or_alone_after_a_pause() -> None:
    failed = ModelFailed("overloaded", "529", wait_ms=2_000)
    retried = only_turn(CALLED, failed, CALLED, CALLED, answered())
    assert [(one.kind, one.text) for one in retried.failures] == [
        ("overloaded", "529"),
        ("lost", LOST_ANSWER),
    ]
    assert retried.number == 1

    lost, remark, turn = rows_of(CALLED, JournalNote("resumed", "it goes on"), CALLED, answered())
    assert isinstance(remark, JournalRemark)
    assert isinstance(lost, Turn)
    assert isinstance(turn, Turn)
    assert (lost.number, lost.called_ms, lost.failures[0].kind) == (0, 0, "lost")
    assert (turn.number, turn.failures) == (1, ())


def test_a_journal_may_begin_in_the_middle() -> None:
    ended = ToolEnded(ToolReply("before", "Bash", "of an earlier turn"))

    rows = rows_of(ended, answered(BASH), AdvanceAnswered("advanced", ""), first_number=101)

    assert [row.number for row in rows if isinstance(row, Turn)] == [101]


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    text = "a" * HEAD_CHARS + "left out" + "z" * TAIL_CHARS

    assert shorten(text) == ShortText("a" * HEAD_CHARS, len("left out"), "z" * TAIL_CHARS)
    assert shorten(text[:-8]) == ShortText(text[:-8])
    assert shorten("a\nb").line_count == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"command": "ls"}', "command: ls"),
        ('{"path": "a", "text": "one\\ntwo", "n": 3}', "path: a\ntext: \none\ntwo\nn: 3"),
        ("", ""),
        ('{"command": ', '{"command": '),
        ("[1]", "[1]"),
        (msgspec.json.encode("text").decode(), '"text"'),
    ],
)
def test_arguments_are_lines_if_they_are_arguments(arguments: str, text: str) -> None:
    assert arguments_text(arguments) == text
