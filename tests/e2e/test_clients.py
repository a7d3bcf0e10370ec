"""The four clients themselves, headless and without network, with our hooks and our server."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.desk import START, STEPS, WORKFLOW, Desk
from tests.e2e.real_clients import CLIENTS, FINDING, OFFLINE, SUBTASK, TASK, Codex, RealClient
from tests.effort import EFFORT
from tests.server.server_process import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

whole = pytest.mark.skipif(
    "INTERLOCK_TEST_CLIENTS" not in os.environ and EFFORT != "long",
    reason="of the real clients, `make e2e-clients` tries the rest",
)


@pytest.fixture(params=CLIENTS, ids=lambda client: f"{client.name} {client.version}")
def client(request: pytest.FixtureRequest) -> RealClient:
    found: RealClient = request.param
    if not found.is_here():
        pytest.skip(f"NOT TESTED: {found.name} {found.version} is not here (`make e2e-clients`)")
    return found


@pytest.fixture
def desk(tmp_path: Path, client: RealClient) -> Desk:
    made = Desk(tmp_path)
    made.interlock("init")
    made.interlock("install", client.name)
    client.prepare(made)
    return made


def texts(requests: list[dict[str, Any]]) -> list[str]:
    bodies = [request["body"] for request in requests if "body" in request]
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def test_a_denied_edit_is_absent_and_a_workflow_runs_to_its_end(
    client: RealClient, desk: Desk
) -> None:
    forbidden = desk.project / "FORBIDDEN.txt"
    made = desk.project / "MADE.txt"

    requests = client.play(
        desk,
        client.write(forbidden),
        client.shell(f"echo x > {made}"),
        client.shell("cat seen.txt"),
        {"tool": "*start_workflow", "input": {"workflowId": "helo", "goal": "A slip"}},
        *WORKFLOW,
    )

    assert not forbidden.exists()
    assert not made.exists()
    bodies = texts(requests)
    assert "Mode: analysis" in bodies[-1], "what the start of the session told arrived"
    assert "cannot be edited (" in bodies[-1] or "do more than read" in bodies[-1], (
        "so did a reason"
    )
    assert "did you mean" in bodies[-1] or "didYouMean" in bodies[-1], "and a refusal of the server"
    assert "inspect_workflow" in bodies[-1] or "correctCall" in bodies[-1] or "a call" in bodies[-1]
    (listed,) = desk.with_runs()
    assert (listed["workflow"], listed["status"]["word"]) == ("hello", "completed")


@whole
def test_in_coding_the_edit_happens_and_the_command_is_recorded(
    client: RealClient, desk: Desk
) -> None:
    (desk.project / ".interlock" / "config.toml").write_text('[project]\nprofile = "light"\n')
    desk.interlock("trust")
    path = desk.project / "made.txt"

    client.play(desk, client.write(path), client.shell("echo one"), client.shell("exit 3"))

    assert path.exists(), "it was the gate that denied it"
    lines = (desk.home / "spool" / "commands.jsonl").read_text().splitlines()
    ran = {line["detail"]: line["outcome"] for line in map(json.loads, lines)}
    tells = {"claude-code": True, "codex": False, "gemini": True, "opencode": True}
    expected = ("success", "failure") if tells[client.name] else ("unknown", "unknown")
    assert (ran["echo one"], ran["exit 3"]) == expected


@whole
def test_what_was_told_is_there_after_a_resume_and_after_a_compaction(
    client: RealClient, desk: Desk
) -> None:
    rules = [client.subagent_rule()]
    first = client.play(desk, *client.progress(), index="count", rules=rules)
    assert "Mode: analysis" in texts(first)[-1]
    (session,) = json.loads(desk.interlock("session", "list", "--json"))
    shown = json.loads(desk.interlock("session", "show", "--json", session["session"]))["progress"]
    assert [(task["title"], task["status"]) for task in shown["tasks"]] == [(TASK, "pending")]
    (subagent,) = shown["subagents"]
    assert (subagent["prompt"], subagent["outcome"]) == (SUBTASK, "completed")
    assert FINDING in subagent["result"]

    resumed = client.play(desk, "Going on.", prompt="and now?", goes_on=True, index="count")
    assert "Mode: analysis" in texts(resumed)[-1]
    # OpenCode keeps nothing that hooks tell, so each of its processes is told everything.
    is_told = "## Task list" in texts(resumed)[-1]
    assert is_told == (client.name == "opencode"), "the others remember that"

    cut = client.compact(desk)
    after = client.play(desk, "Done.", prompt="and then?", goes_on=True, index="count")
    bodies = [body for body in texts([*cut, *after]) if "THE-SUMMARY" in body]
    assert bodies, "it was compacted"
    assert "Mode: analysis" in bodies[-1], "and was told again"
    for kept in (f"pending: {TASK}", f"asked “{SUBTASK}”: completed.", FINDING):
        assert kept in bodies[-1], kept


@whole
def test_a_run_goes_on_in_another_conversation_after_everything_was_killed(
    client: RealClient, desk: Desk
) -> None:
    waits = {"blocks": [{"text": "Thinking."}], "delay_ms": 60_000}
    with desk.model(START, STEPS[0], waits) as (address, log):
        environment = desk.environment(**OFFLINE, **client.configure(desk, address))
        process = subprocess.Popen(
            [*client.command("go", goes_on=False), *client.options],
            cwd=desk.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + 90
        while "A project with one file." not in (log.read_text() if log.exists() else ""):
            assert time.monotonic() < until, "the first step was not submitted"
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    found = {"from": "tool:*resume_session", "re": "(ct1[a-z0-9]{45})"}
    rehydrate = {
        "extract": {"token": found},
        "blocks": [
            {
                "tool": "*continue_workflow",
                "input": {"continueToken": "${token}", "intent": "rehydrate"},
            }
        ],
    }
    (open_run,) = desk.with_runs()
    resume = {"tool": "*resume_session", "input": {"runId": open_run["run"]}}
    client.play(desk, resume, rehydrate, *STEPS[open_run["steps_done"] :])

    (listed,) = desk.with_runs()
    assert (listed["workflow"], listed["status"]["word"]) == ("hello", "completed")


@whole
def test_what_others_hold_is_told_before_the_edit_and_what_they_write_reaches_the_model(
    client: RealClient, desk: Desk
) -> None:
    """The news come with the answer of a tool, of which some clients read the text alone."""
    (desk.project / ".interlock" / "config.toml").write_text('[project]\nprofile = "light"\n')
    desk.interlock("trust")
    held = desk.project / "held.txt"
    desk.interlock("reserve", held.name)
    desk.interlock("mail", "send", "all", "the release is on Friday")
    hello = {"tool": "*send_message", "input": {"to": ["overseer"], "subject": "hello"}}

    look = client.shell("ls held.txt || echo STILL ABSENT | tr A-Z a-z")

    turns = (client.write(held), look, client.write(held), hello)
    bodies = texts(client.play(desk, *turns))

    assert bodies[-1].count("(a person): the release is on Friday") == 1
    warned = [body.count("has reserved `held.txt`") for body in bodies]
    assert warned[-4:] == [1, 1, 1, 1], "with the first answer, and once"
    assert "still absent" in bodies[-3], "it was denied before the edit"
    assert held.exists(), "and then it passed"


@whole
def test_over_http_a_workflow_runs_to_its_end_and_the_server_may_be_killed(
    client: RealClient, desk: Desk
) -> None:
    """With what `interlock mcp --print-config` prints, put where it says."""
    desk.interlock("uninstall", client.name)
    start = {
        "tool": "*start_workflow",
        "input": {**START["input"], "workspacePath": str(desk.project)},
    }
    with Server(desk.home):
        client.connect(desk, desk.interlock("mcp", "--print-config", client.name, "--http"))
        unnamed = client.play(desk, START, "Which one?", secret=True)
        assert "does not know which one is meant" in texts(unnamed)[-1]
        client.play(desk, start, STEPS[0], secret=True)
    (open_run,) = desk.with_runs()
    with Server(desk.home):  # another process, at another address
        client.connect(desk, desk.interlock("mcp", "--print-config", client.name, "--http"))
        found = {"from": "tool:*resume_session", "re": "(ct1[a-z0-9]{45})"}
        shown = {"continueToken": "${token}", "intent": "rehydrate"}
        rehydrate = {
            "extract": {"token": found},
            "blocks": [{"tool": "*continue_workflow", "input": shown}],
        }
        resume = {"tool": "*resume_session", "input": {"runId": open_run["run"]}}
        client.play(desk, resume, rehydrate, *STEPS[1:], secret=True)

    (listed,) = desk.with_runs()
    assert (listed["workflow"], listed["status"]["word"]) == ("hello", "completed")


@whole
@pytest.mark.parametrize("client", [Codex()], indirect=True, ids=["codex"])
def test_a_search_for_tools_finds_all_those_of_the_job(client: RealClient, desk: Desk) -> None:
    """Codex lists no tool of a server to a model that it knows, but lets it search for them."""
    queries = ("start the workflow hello", "continue", "resume", "next step", "where were we")
    turns = [{"tool": "tool_search", "input": {"query": query}} for query in queries]

    requests = client.play(desk, *turns, index="count")

    assert not any("interlock" in str(tool.get("name")) for tool in requests[0]["body"]["tools"])
    outputs = [one for one in requests[-1]["body"]["input"] if one["type"] == "tool_search_output"]
    found = {
        query: {tool["name"] for group in output["tools"] for tool in group["tools"]}
        for query, output in zip(queries, outputs, strict=True)
    }
    # Its search drops the words of "where were we", so the instructions name the tool for it.
    assert found.pop("where were we") == set()
    assert "where were we" in json.dumps(requests[0]["body"]["tools"])
    for query, names in found.items():
        assert {"start_workflow", "continue_workflow", "resume_session"} <= names, (query, names)
