"""The scripted model: what it plays is decided by the request alone, in any process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.agents.models.credentials import Credentials
from interlock.agents.models.model_port import ModelFailure, ModelPort
from interlock.agents.models.providers import open_model
from interlock.core.unattended.conversation import (
    Message,
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    SpokenPart,
    ThinkingPart,
    ToolMessage,
    ToolReply,
    ToolRequest,
    Usage,
    UserMessage,
)

pytestmark = pytest.mark.anyio

LOOK = {
    "thinking": "Hm.",
    "text": "I look.\nAt both.",
    "calls": [{"name": "Read", "arguments": {"path": "a.py"}}, {"name": "Bash", "arguments": "{"}],
    "usage": {"input": 100, "output": 20, "cacheRead": 80, "costMicros": 5},
}
DONE = {"calls": [{"name": "complete_step", "arguments": {"notes": "Done."}}]}


def scripted(tmp_path: Path, *steps: object, call_seconds: float = 60) -> ModelPort:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"steps": steps}))
    return open_model(f"scripted:{path}", credentials=Credentials(), call_seconds=call_seconds)


async def ask(
    port: ModelPort,
    *messages: Message | str,
    on_text: Callable[[str], None] = lambda _: None,
) -> ModelAnswer:
    conversation = tuple(UserMessage(m) if isinstance(m, str) else m for m in messages)
    request = ModelRequest("scripted", "Be brief.", (), conversation, 1000)
    return await port.answer(request, on_text)


def calls(tmp_path: Path) -> list[tuple[int, int]]:
    lines = (tmp_path / "script.json.calls").read_text().splitlines()
    return [(record["step"], record["turn"]) for record in map(json.loads, lines)]


async def test_steps_are_found_by_their_first_message_and_turns_by_the_answers_before(
    tmp_path: Path,
) -> None:
    port = scripted(
        tmp_path,
        {"when": ["Fix", "session 7"], "turns": [LOOK, DONE]},
        {"when": "Fix", "turns": [{"text": "Another session."}]},
        {"turns": [{"text": "A child."}], "repeatLast": True},
    )
    told: list[str] = []

    look = await ask(port, "Fix the test of session 7.", on_text=told.append)
    assert told == ["I look.\n", "At both."]
    assert look == ModelAnswer(
        ModelMessage(
            (
                ThinkingPart("Hm."),
                SpokenPart("I look.\nAt both."),
                ToolRequest("call_0_0", "Read", '{"path":"a.py"}'),
                ToolRequest("call_0_1", "Bash", "{"),
            )
        ),
        "tools",
        Usage(100, 20, 80, 0, 5),
    )
    results = ToolMessage((ToolReply("call_0_0", "Read", ""), ToolReply("call_0_1", "Bash", "")))
    after = ("Fix the test of session 7.", look.message, results, "Be quick.")
    done = await ask(port, *after)
    assert [call.id for call in done.message.calls] == ["call_1_0"]
    assert done.usage.tokens > 0
    assert (await ask(port, "Fix that.")).message.text == "Another session."
    child = await ask(port, "Count the files.")
    assert (await ask(port, "Count the files.", child.message, "More?")).message == child.message
    with pytest.raises(ModelFailure, match="step 0 has no turn 2") as raised:
        await ask(port, *after, done.message, "And?")
    assert raised.value.kind == "bad_request"
    assert calls(tmp_path) == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (0, 2)]


async def test_a_conversation_that_no_step_is_for_is_refused(tmp_path: Path) -> None:
    port = scripted(tmp_path, {"when": "Fix", "turns": [DONE]})
    with pytest.raises(ModelFailure, match="no step is for 'Hello'"):
        await ask(port, "Hello")


async def test_faults_come_first_and_are_counted_over_restarts(tmp_path: Path) -> None:
    faults = [
        {"fail": "overloaded", "times": 2, "retryAfter": 1},
        {"fail": "rate_limited"},
    ]
    step = {"turns": [{"text": "At last.", "faults": faults}]}
    seen: list[tuple[str, float | None]] = []
    for _ in range(3):
        with pytest.raises(ModelFailure) as raised:
            await ask(scripted(tmp_path, step), "Fix it.")
        seen.append((raised.value.kind, raised.value.retry_after_seconds))

    assert seen == [("overloaded", 1), ("overloaded", 1), ("rate_limited", None)]
    first = await ask(scripted(tmp_path, step), "Fix it.")
    assert await ask(scripted(tmp_path, step), "Fix it.") == first
    assert calls(tmp_path) == [(0, 0)] * 5
    with pytest.raises(ModelFailure):  # another question has faults of its own
        await ask(scripted(tmp_path, step), "Fix the other.")


async def test_a_turn_can_hang_until_it_times_out_or_is_cancelled(tmp_path: Path) -> None:
    step = {"turns": [{"hang": True}]}
    with pytest.raises(ModelFailure) as raised:
        await ask(scripted(tmp_path, step, call_seconds=0.05), "Fix it.")
    assert raised.value.kind == "timeout"

    waiting = asyncio.create_task(ask(scripted(tmp_path, step), "Fix it."))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


PROGRAM = """
import asyncio, sys
from interlock.agents.models.credentials import Credentials
from interlock.agents.models.providers import open_model
from interlock.core.unattended.conversation import ModelRequest, UserMessage
async def ask_all():
    for n in range(100):
        port = open_model(sys.argv[1], credentials=Credentials())
        request = ModelRequest("m", "", (), (UserMessage(f"Question {n}"),), 100)
        answer = await port.answer(request, print)
asyncio.run(ask_all())
"""


def test_a_call_is_recorded_before_it_is_answered_and_never_torn_by_another(
    tmp_path: Path,
) -> None:
    path, record = tmp_path / "script.json", tmp_path / "script.json.calls"
    path.write_text(json.dumps({"steps": [{"turns": [{"text": "Yes."}]}]}))
    command = [sys.executable, "-c", PROGRAM, f"scripted:{path}"]
    workers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [worker.wait(100) for worker in workers] == [0, 0, 0]

    digests = Counter(json.loads(line)["request"] for line in record.read_text().splitlines())
    assert list(digests.values()) == [3] * 100

    record.unlink()
    path.write_text(json.dumps({"steps": [{"turns": [{"hang": True}]}]}))
    with subprocess.Popen(command) as hanging:
        deadline = time.monotonic() + 60
        while not (record.exists() and record.read_bytes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(hanging.pid, signal.SIGKILL)
    assert calls(tmp_path) == [(0, 0)]
