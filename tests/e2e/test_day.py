"""A day in each real client, from the first briefing to that of the next day.

All that Interlock showed to the model is in one golden file, to be read from top to bottom.
"""

import difflib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_transcript import RENEW
from tests.e2e.desk import START, STEPS, Desk
from tests.e2e.real_clients import CLIENTS, FINDING, SUBTASK, TASK, RealClient
from tests.e2e.shown_text import Reader
from tests.effort import EFFORT

GOLDEN = Path(__file__).parents[1] / "golden" / "what_a_model_reads.md"
IS_WHOLE = "INTERLOCK_TEST_CLIENTS" in os.environ or EFFORT == "long"
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


@pytest.fixture(params=sorted(TESTED))
def client(request: pytest.FixtureRequest) -> RealClient:
    found = TESTED[request.param]
    if found.name != "claude-code" and not IS_WHOLE:
        pytest.skip("of the real clients, `make e2e-clients` tries the rest")
    if not found.is_here():
        pytest.skip(f"NOT TESTED: {found.name} is not here (`make e2e-clients`)")
    return found


def test_a_day(client: RealClient, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.interlock("init")
    desk.interlock("install", client.name)
    client.prepare(desk)
    reader = Reader({str(tmp_path): "~"})
    held = desk.project / "held.txt"
    bodies: dict[str, str] = {}

    def play(moment: str, prompt: str, *turns: object, **more: Any) -> None:
        requests = client.play(desk, *turns, prompt=prompt, index="count", **more)
        reader.read(moment, requests)
        print(reader.latest())
        bodies[moment] = json.dumps([r.get("body") for r in requests], ensure_ascii=False)

    ask = call("session", mode="coding", task="Write held.txt")
    turns = (START, STEPS[0], client.write(held), ask)
    play("In the morning", "make a plan and start", *turns)
    assert not held.exists()
    assert "Mode: analysis" in bodies["In the morning"]
    # Where the client cannot put the question to its user, the user answers elsewhere.
    for waiting in json.loads(desk.interlock("approvals", "list", "--json"))["approvals"]:
        desk.interlock("approvals", "grant", waiting["approval"])
    (desk.project / ".interlock" / "config.toml").write_text('[project]\nprofile = "light"\n')
    desk.interlock("trust")
    desk.interlock("reserve", held.name, "--reason", "the release notes")
    write = client.write(held)
    (run,) = desk.with_runs()
    resume = (call("resume_session"), call("resume_session", runId=run["run"]), REHYDRATE)
    turns = (*resume, ask, write, client.shell("cat seen.txt"), write, SUBMIT)
    play("The user allows coding; another agent holds the path", "continue", *turns)
    assert held.exists()
    assert "the release notes" in bodies["The user allows coding; another agent holds the path"]

    rules = [client.subagent_rule()]
    play("A task list and a subagent", "go on", *client.progress(), goes_on=True, rules=rules)

    reader.read("The conversation is compacted", client.compact(desk))
    play("After the compaction", "where were we?", call("resume_session"), goes_on=True)
    wish = call("request_approval", title="Publish it", content="npm publish")
    end = call("session", action="end", summary="held.txt is written.")
    play("In the evening", "end it", wish, end, goes_on=True)
    play("The next day", "good morning")
    for told in (TASK, SUBTASK, FINDING):
        assert told in bodies["After the compaction"], told
    next_day = bodies["The next day"]
    for told in ("held.txt is written", "Publish it", "See it work"):
        assert told in next_day, told
    compare_with_golden(client.name, reader.text())


def compare_with_golden(name: str, shown: str) -> None:
    golden = GOLDEN.read_text() if GOLDEN.exists() else ""
    parts = dict(re.findall(r"(?ms)^## ([a-z-]+)\n\n(.*?)(?=^## |\Z)", golden))
    difference = difflib.unified_diff(
        parts.get(name, "").splitlines(), f"{shown}\n".splitlines(), GOLDEN.name, "now", lineterm=""
    )
    if os.environ.get(RENEW):
        parts[name] = f"{shown}\n"
        sections = "".join(f"## {key}\n\n{text}" for key, text in sorted(parts.items()))
        GOLDEN.write_text(f"# What a model reads\n\n{sections}")
        pytest.fail(f"`{GOLDEN}` was written again: read what has changed in it, and commit it")
    assert parts.get(name) == f"{shown}\n", "\n".join((f"{RENEW}=1 writes it again.", *difference))
