"""A day in each real client, from the first briefing to that of the next day.

All that Interlock showed to the model is in one golden file, to be read from top to bottom.
"""

import difflib
import json
import os
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from tests.cli.test_transcript import RENEW
from tests.e2e.desk import START, STEPS, Desk
from tests.e2e.real_clients import CLIENTS, FINDING, PLAN, SUBTASK, SUMMARY, TASK, RealClient
from tests.e2e.shown_text import Reader
from tests.effort import EFFORT

GOLDEN = Path(__file__).parents[1] / "golden" / "what_a_model_reads.md"
IS_WHOLE = "INTERLOCK_TEST_CLIENTS" in os.environ or EFFORT == "long"
ALL_TOOLS = "what-the-tools-say-of-themselves"
TESTED = {client.name: client for client in reversed(CLIENTS)}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


TOKEN = {"from": "tool:*resume_session", "re": "(ct1[a-z0-9]{45})"}
NEWEST = {"from": "tool:*continue_workflow", "re": "(ct1[a-z0-9]{45})"}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    prefixes = ("mcp__interlock__", "mcp_interlock_", "interlock_", "")
    return {"tool": [f"{prefix}{tool}" for prefix in prefixes], "input": arguments}


def continue_from(token: dict[str, str], **arguments: Any) -> dict[str, Any]:
    block = call("continue_workflow", continueToken="${token}", **arguments)
    return {"extract": {"token": token}, "blocks": [block]}


REHYDRATE = continue_from(TOKEN, intent="rehydrate")
SUBMIT = continue_from(NEWEST, output={"notesMarkdown": "A README. I left out a licence."})


EVENING = (
    call("delegate", agent="analyst", prompt="Find the cause"),
    call(
        "complete_delegation",
        delegation="analyst",
        summary="The cache is the cause",
        handoffTo="architect",
        handoffReason="it needs a design",
    ),
    call("request_approval", title="Publish it", content="npm publish"),
    call("session", action="end", summary="held.txt is written."),
)


@pytest.fixture(params=sorted(TESTED))
def client(request: pytest.FixtureRequest) -> RealClient:
    found = TESTED[request.param]
    if found.name != "claude-code" and not IS_WHOLE:
        pytest.skip("of the real clients, `make e2e-clients` tries the rest")
    if not found.is_here():
        pytest.skip(f"NOT TESTED: {found.name} is not here (`make e2e-clients`)")
    return found


class Day:
    """A project, a client, and all that its model has read."""

    def __init__(self, client: RealClient, base: Path) -> None:
        self.client, self.desk = client, Desk(base)
        self.desk.interlock("init")
        self.desk.interlock("install", client.name)
        client.prepare(self.desk)
        self.reader = Reader({str(base): "~"})
        self.held = self.desk.project / "held.txt"
        self.session = ""

    def read(self, moment: str, requests: list[dict[str, Any]]) -> list[str]:
        self.reader.read(moment, requests)
        print(self.reader.latest())
        return [json.dumps(r.get("body"), ensure_ascii=False) for r in requests]

    def play(self, moment: str, prompt: str, *turns: object, **more: Any) -> list[str]:
        """Play a conversation; what the model read, request by request."""
        requests = self.client.play(self.desk, *turns, prompt=prompt, index="count", **more)
        return self.read(moment, requests)

    def go_on(self, moment: str, prompt: str, *turns: object, **more: Any) -> list[str]:
        return self.play(moment, prompt, *turns, goes_on=True, **more)

    def mode(self) -> str:
        state = self.desk.interlock("session", "get-state", "--session", self.session)
        return json.loads(state)["currentMode"]

    def allow_coding(self, *turns: object) -> None:
        """Play turns that end with the wish to code, and be the user who agrees."""
        if self.client.has_dialogs:
            turns = (*turns, *self.client.plan(self.desk))
            played = self.client.play_attended(self.desk, *turns, prompt="continue", index="count")
            self.read("The user is asked about coding, and approves a plan", played)
            return
        told = self.play("The user is told how to allow coding", "continue", *turns)
        assert "the user has to type `/mode coding`" in told[-1]
        self.desk.interlock("mode", "coding", "--session", self.session)

    def be_compacted(self) -> str:
        """Have the conversation summed up, and go on; the last request that has the summary."""
        bodies = self.read("The conversation is compacted", self.client.compact(self.desk))
        where = call("resume_session")
        bodies += self.go_on("After the compaction", "where were we?", where)
        return [body for body in bodies if SUMMARY in body][-1]


def test_a_day(client: RealClient, tmp_path: Path) -> None:
    day = Day(client, tmp_path)
    desk, held = day.desk, day.held

    review = call("session", action="complete_feature", feature="Notes of the release")
    write, ask = client.write(held), call("session", mode="coding", task="Write held.txt")
    turns = (review, START, STEPS[0], write, ask)
    morning = day.play("In the morning, where nobody can be asked", "start hello", *turns)
    assert not held.exists()
    assert "Mode: analysis" in morning[-1]
    (found,) = desk.with_runs()
    day.session = found["session"]
    assert day.mode() == "analysis"

    resume = (call("resume_session"), call("resume_session", runId=found["run"]), REHYDRATE)
    day.allow_coding(*resume, ask)
    assert day.mode() == "coding"

    desk.interlock("reserve", held.name, "--reason", "the release notes")
    turns = (write, client.shell("ls held.txt || echo ABSENT | tr A-Z a-z"), write, SUBMIT)
    warned = day.go_on("Another agent holds the path", "write it", *turns)
    assert "the release notes" in warned[-1]
    assert "absent" in warned[-1], "it was denied before the edit"
    assert held.exists()

    rules = [client.subagent_rule()]
    day.go_on("A task list and a subagent", "go on", *client.progress(), rules=rules)

    # What was said before the compaction is gone, so each of these was told again.
    after = day.be_compacted()
    plan = [f"## Plan that the user approved\\n\\n- {PLAN}"] if client.plan(desk) else []
    told_again = (f"pending: {TASK}", f"asked “{SUBTASK}”: completed.", FINDING, *plan)
    for told in (*told_again, "Mode: coding", "Your run of hello"):
        assert told in after, told

    day.go_on("In the evening", "end it", *EVENING)
    next_day = day.play("The next day", "good morning")[-1]
    handed_over = ("See it work", "held.txt is written", "it needs a design", "Publish it")
    for told in (*handed_over, "Notes of the release", "Not committed: held.txt"):
        assert told in next_day, told
    compare_with_golden(client.name, day.reader)


def compare_with_golden(name: str, reader: Reader) -> None:
    golden = GOLDEN.read_text() if GOLDEN.exists() else ""
    parts = dict(re.findall(r"(?ms)^## ([a-z-]+)\n\n(.*?)(?=^## |\Z)", golden))
    shown = reader.text()
    told = dict(re.findall(r"(?ms)^### (\w+)\n\n(.*?)\n\n(?=### |\Z)", parts.get(ALL_TOOLS, "")))
    described = {tool: indent(text, "    ") for tool, text in reader.tools.items()}
    if os.environ.get(RENEW):
        both = sorted({**told, **described}.items())
        parts[ALL_TOOLS] = "".join(f"### {tool}\n\n{text}\n\n" for tool, text in both)
    else:
        assert told | described == told, "what the tools say of themselves"
    difference = difflib.unified_diff(
        parts.get(name, "").splitlines(), f"{shown}\n".splitlines(), GOLDEN.name, "now", lineterm=""
    )
    if os.environ.get(RENEW):
        parts[name] = f"{shown}\n"
        sections = "".join(f"## {key}\n\n{text}" for key, text in sorted(parts.items()))
        GOLDEN.write_text(f"# What a model reads\n\n{sections}")
        pytest.fail(f"`{GOLDEN}` was written again: read what has changed in it, and commit it")
    assert parts.get(name) == f"{shown}\n", "\n".join((f"{RENEW}=1 writes it again.", *difference))
