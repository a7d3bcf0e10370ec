"""How the output of Claude Code reads.

The recorded lines are of the real client, 2.1.325, which played a script without a network; paths
and ids are replaced, and the long lists of its first line left out.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.clients.claude_code_headless import ClaudeCodeOutput
from interlock.agents.clients.headless import (
    LINE_BYTES_MAX,
    ClientEnded,
    ClientEvent,
    ClientReady,
    ClientRetry,
    ClientToolResults,
    ClientTurn,
    LineSplitter,
)
from interlock.core.unattended.conversation import (
    ModelMessage,
    SpokenPart,
    ThinkingPart,
    ToolMessage,
    ToolReply,
    ToolRequest,
    Usage,
)

RECORDED = Path(__file__).parent / "recorded"
READY = ClientReady(is_connected=True)
SEED = 20261118


def read(content: bytes, output: ClaudeCodeOutput | None = None) -> list[ClientEvent]:
    output = output or ClaudeCodeOutput()
    return [event for line in content.splitlines() for event in output.read_line(line)]


def recording(name: str) -> bytes:
    return (RECORDED / f"{name}.jsonl").read_bytes()


def turn(*parts: Any, tokens: tuple[int, int]) -> ClientTurn:
    return ClientTurn(ModelMessage(parts), Usage(*tokens, cost_micros=None))


def bash(call: str, command: str) -> ToolRequest:
    arguments = json.dumps({"command": command, "description": "try"}, separators=(",", ":"))
    return ToolRequest(call, "Bash", arguments)


def results(*given: ToolReply) -> ClientToolResults:
    return ClientToolResults(ToolMessage(given))


def line_of(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def message(name: str, *content: Any, **usage: int) -> bytes:
    inner = {"id": name, "content": content, "usage": usage}
    return line_of(type="assistant", message=inner)


def test_turns_come_whole_before_their_results_and_their_usage_counts_once() -> None:
    events = read(recording("work"))

    names = [
        call.id for event in events if isinstance(event, ClientTurn) for call in event.message.calls
    ]
    first, outside, second, failing = names
    ready, work, *answers, failed, failure, said, end = events
    assert ready == READY
    assert work == turn(
        ThinkingPart("Where is it?", "c2NyaXB0ZWQ="),
        SpokenPart("I look."),
        bash(first, "echo a"),
        ToolRequest(outside, "Read", '{"file_path":"/x"}'),
        bash(second, "echo b"),
        tokens=(1000, 50),
    )
    refusal, *printed = answers
    assert isinstance(refusal, ClientToolResults)
    (refused,) = refusal.message.results
    assert (refused.call, refused.name, refused.is_error) == (outside, "Read", True)
    expected = [ToolReply(first, "Bash", "a"), ToolReply(second, "Bash", "b")]
    assert sorted(map(str, printed)) == sorted(str(results(result)) for result in expected)
    assert failed == turn(bash(failing, "exit 3"), tokens=(1000, 50))
    assert isinstance(failure, ClientToolResults)
    assert failure.message.results[0].is_error
    assert failure.message.results[0].text.startswith("Exit code 3")
    assert said == turn(SpokenPart("All done."), tokens=(10, 5))
    used = Usage(2010, 105, cost_micros=10_140)
    assert end == ClientEnded("done", "All done.", used, 10_140)


def test_a_result_that_comes_before_its_turn_has_ended_is_held_back() -> None:
    """Tools begin while the model goes on, so this depends on who is faster."""
    lines = recording("work").splitlines()
    result = next(line for line in lines if b'"tool_result"' in line)
    early = [line for line in lines if line != result]
    early.insert(next(i for i, line in enumerate(early) if b'"message_stop"' in line), result)

    assert early != lines
    assert read(b"\n".join(early)) == read(b"\n".join(lines))


@pytest.mark.parametrize(
    ("name", "end"),
    [
        (
            "turns",
            ClientEnded(
                *("turns", "Reached maximum number of turns (1)"),
                *(Usage(10, 5, cost_micros=140), 140),
            ),
        ),
        (
            "money",
            ClientEnded(
                *("money", "Reached maximum budget ($3)"),
                *(Usage(1_000_000, 50_000, cost_micros=5_000_000), 5_000_000),
            ),
        ),
        (
            "interrupted",
            ClientEnded("interrupted", "", Usage(10, 5, cost_micros=140), 140),
        ),
        (
            "refused",
            ClientEnded("failed", "API Error: 400 no such model", Usage(), 0, 400),
        ),
    ],
)
def test_the_end_says_why(name: str, end: ClientEnded) -> None:
    ready, *_, last = read(recording(name))

    assert ready == READY
    assert last == end


def test_a_provider_that_is_asked_again_is_told() -> None:
    (retry,) = [event for event in read(recording("refused")) if isinstance(event, ClientRetry)]

    assert retry.status == 529
    assert retry.wait_ms > 0


def test_a_result_of_several_blocks_is_one_text() -> None:
    blocks: list[Any] = [{"type": "text", "text": "one"}, {"type": "image", "source": {}}]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": blocks}
    lines = [
        message("m1", {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}),
        line_of(type="user", message={"content": [result]}),
    ]

    _, answered = read(b"\n".join(lines))

    assert isinstance(answered, ClientToolResults)
    assert [reply.text for reply in answered.message.results] == ["one\n[image]"]


def test_a_resumed_conversation_costs_what_came_on_top() -> None:
    *_, end = read(recording("work"), ClaudeCodeOutput(spent_micros=10_000))

    assert isinstance(end, ClientEnded)
    assert (end.usage.cost_micros, end.spent_micros) == (140, 10_140)


def test_without_a_stream_the_usage_of_a_message_counts_once_too() -> None:
    """Of a client that says nothing of the pieces of its messages."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
    lines = [
        message("m1", {"type": "text", "text": "one"}, **usage, output_tokens=3),
        message("m1", {"type": "text", "text": "two"}, **usage, output_tokens=3),
        line_of(type="result", subtype="success", is_error=False),
    ]

    one, two, end = read(b"\n".join(lines))

    assert one == ClientTurn(ModelMessage((SpokenPart("one"),)), Usage(95, 3, 70, 20, None))
    assert two == ClientTurn(ModelMessage((SpokenPart("two"),)), Usage())
    assert end == ClientEnded("done", "", Usage(95, 3, 70, 20, None), 0)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"warn: something",
        b"[]",
        b"7",
        b'{"type":',
        b"[" * 100_000,
        line_of(type="prompt_suggestion", text="next?"),
        line_of(type=["assistant"]),
        line_of(type="system", subtype="init_later"),
        line_of(type="assistant"),
        line_of(type="assistant", message="text"),
        line_of(type="assistant", message={"content": [None, 7, {"type": "text", "text": 7}]}),
        line_of(type="user", message={"content": "typed"}),
        line_of(type="user", message={"content": [{"type": "text", "text": "typed"}]}),
        line_of(type="stream_event", event=[]),
        line_of(type="stream_event", event={"type": "message_stop"}),
        line_of(type="assistant", parent_tool_use_id="t", message={"content": [{"type": "text"}]}),
        line_of(type="user", text="x" * LINE_BYTES_MAX),
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_line_that_means_nothing_says_nothing(line: bytes) -> None:
    assert ClaudeCodeOutput().read_line(line) == ()


@pytest.mark.parametrize("cost", ["much", None, -1, 1e300, [], True])
def test_an_end_with_an_odd_cost_is_an_end(cost: Any) -> None:
    line = line_of(type="result", is_error=False, total_cost_usd=cost, usage=7, errors=[7])
    (end,) = ClaudeCodeOutput(30).read_line(line)

    assert isinstance(end, ClientEnded)
    assert end.reason == "done"


def test_what_is_left_out_or_damaged_harms_nothing() -> None:
    """Lines of all recordings, in any order, some of them cut."""
    chance = random.Random(SEED)
    lines = [line for path in sorted(RECORDED.iterdir()) for line in path.read_bytes().splitlines()]
    for _ in range(200):
        output = ClaudeCodeOutput()
        for line in chance.sample(lines, 30):
            cut = chance.randrange(len(line)) if chance.random() < 0.3 else len(line)
            for event in output.read_line(line[:cut]):
                assert isinstance(event, ClientEvent)


def test_lines_are_put_together_from_pieces_and_those_too_long_are_left_out() -> None:
    content = b"one\n\n" + b"x" * 30 + b"\ntwo\n" + b"y" * 11 + b"\nthree\nrest"
    for size in (1, 2, 7, 64):
        splitter = LineSplitter(bytes_max=10)
        pieces = [content[at : at + size] for at in range(0, len(content), size)]
        found = [line for piece in pieces for line in splitter.feed(piece)]
        assert found == [b"one", b"", b"two", b"three"], size
