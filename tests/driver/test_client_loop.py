"""How a client's end is judged, with a program that says what Claude Code would say."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.app.unattended import orders
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import ClientReported, MessageAdded, ModelAnswered, StepBegun
from interlock.core.unattended.order import LimitsWish
from tests.core.session.secret_examples import vendor_secrets
from tests.driver.stage import PLACE, Stage, git
from tests.scenes import linear

KEY = vendor_secrets()["ANTHROPIC_API_KEY"]
CLIENT = f"""\
#!{sys.executable}
import json, os, re, sys, time, urllib.request

def say(**line):
    print(json.dumps(line), flush=True)

def advance(text):
    config = json.loads(next(w for w in sys.argv if w.startswith("--mcp-config")).split("=", 1)[1])
    server = config["mcpServers"]["interlock"]
    headers = {{**server["headers"], "Content-Type": "application/json"}}
    headers["Authorization"] = "Bearer " + os.environ["INTERLOCK_SECRET"]
    token = re.findall("ct1[a-z0-9]{{45}}", text)[-1]
    arguments = {{"continueToken": token, "output": {{"notesMarkdown": "Done."}}}}
    params = {{"name": "continue_workflow", "arguments": arguments}}
    body = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}}
    request = urllib.request.Request(server["url"], json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request).read().decode()

script = json.load(open(os.path.join(os.path.dirname(__file__), "ends.json")))
calls = os.path.join(os.path.dirname(__file__), "calls")
with open(calls, "a") as file:
    print(json.dumps(sys.argv), file=file)
number = len(open(calls).readlines()) - 1
todo = script[min(number, len(script) - 1)]
say(type="system", subtype="init", session_id="c", model="m",
    mcp_servers=[{{"name": "interlock", "status": todo.get("server", "connected")}}])
text = sys.stdin.readline()
heard = text
for at in range(todo.get("turns", 0)):
    usage = {{"input_tokens": 100, "output_tokens": 20}}
    block = {{"type": "text", "text": "I look. key {KEY}"}}
    message = {{"id": f"m{{number}}-{{at}}", "content": [block], "usage": usage}}
    say(type="assistant", message=message)
if todo.get("waits"):
    heard = sys.stdin.readline()
for line in todo.get("lines", []):
    print(line, flush=True)
for _ in range(todo.get("steps", 0)):
    text = advance(text)
if "exit" in todo:
    print(todo.get("errors", ""), file=sys.stderr)
    sys.exit(todo["exit"])
end = {{"subtype": "success", "is_error": False, "result": "All done."}}
if "interrupt" in heard:
    end = {{**end, "terminal_reason": "aborted_streaming"}}
say(type="result", session_id="c", total_cost_usd=0.5, **{{**end, **todo.get("end", {{}})}})
sys.stdin.read()
"""
FAILED = {"subtype": "success", "is_error": True}


class ClientStage(Stage):
    """A stage with a client that ends as it is told."""

    def __init__(self, directory: Path, settings: str = "") -> None:
        self.program = directory / "client"
        settings += f'\nrunner = "claude-code"\nclient_program = "{self.program}"'
        super().__init__(directory, settings=settings)
        self.program.write_text(CLIENT)
        self.program.chmod(0o700)
        self.install(linear(2))

    def end_as(self, *ends: dict[str, Any]) -> None:
        """How its processes end, one after the other; the last way stays."""
        (self.program.parent / "ends.json").write_text(json.dumps(ends))
        (self.program.parent / "calls").unlink(missing_ok=True)

    def command_lines(self) -> list[list[str]]:
        lines = (self.program.parent / "calls").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def order_ended(self, *ends: dict[str, Any], **options: Any) -> SessionId:
        self.end_as(*ends)
        return self.order(**options)

    def turn_count(self, session: SessionId) -> int:
        return sum(isinstance(entry, ModelAnswered) for entry in self.entries(session))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientStage]:
    with ClientStage(tmp_path_factory.mktemp("client")) as stage:
        stage.start_driver()
        yield stage


@pytest.mark.parametrize(
    ("ends", "reason", "said", "starts"),
    [
        pytest.param(
            [{"turns": 1}], "stuck", "brings the run no further", 2, id="done without progress"
        ),
        pytest.param(
            [{"end": {**FAILED, "api_error_status": 401, "result": "Invalid API key"}}],
            *("credentials", "Invalid API key", 1),
            id="401",
        ),
        pytest.param(
            [{"end": {**FAILED, "result": "Not logged in · Please run /login"}}],
            *("credentials", "Not logged in", 1),
            id="not signed in",
        ),
        pytest.param(
            [{"end": {**FAILED, "api_error_status": 429, "result": "Too many"}}],
            *("provider", "Too many", 1),
            id="429",
        ),
        pytest.param(
            [{"end": {**FAILED, "api_error_status": 529, "result": "Overloaded"}}],
            *("provider", "Overloaded", 1),
            id="529",
        ),
        pytest.param(
            [{"exit": 3, "errors": "unknown option '--restricted'"}],
            *("failed", "unknown option '--restricted'", 1),
            id="crash",
        ),
        pytest.param(
            [{"server": "failed"}], "failed", "does not reach our server", 6, id="no server"
        ),
        pytest.param(
            [{"lines": ["{", "[]", "\\x00", '{"type":"result"}']}],
            *("failed", "it said nothing", 1),
            id="malformed lines",
        ),
    ],
)
def test_the_way_in_which_it_ends_says_why_it_stands_still(
    stage: ClientStage, ends: list[dict[str, Any]], reason: str, said: str, starts: int
) -> None:
    state = stage.wait_for(stage.order_ended(*ends), "done", "parked")

    assert state.status == "parked"
    assert (state.reason, said in state.detail) == (reason, True), state.detail
    assert len(stage.command_lines()) == starts


def test_it_goes_on_in_the_same_conversation_where_it_stopped_too_early(stage: ClientStage) -> None:
    session = stage.order_ended({"turns": 2, "steps": 1}, {}, {"turns": 1, "steps": 1})

    state = stage.wait_for(session, "done", "parked")
    assert state.outcome == "success", state.detail
    first, second, third = stage.command_lines()
    name = next(word for word in first if word.startswith("--session-id=")).partition("=")[2]
    assert f"--resume={name}" in second
    assert f"--resume={name}" in third
    entries = stage.entries(session)
    answers = [e for e in entries if isinstance(e, ModelAnswered)]
    assert len(answers) == state.spent.turns == 3
    assert state.spent.usage.tokens == 3 * 120
    assert state.spent.usage.cost_micros == 500_000, "it told the same total three times"
    assert all("[secret removed: anthropic-api-key]" in answer.message.text for answer in answers)
    prompts = [e.text for e in entries if isinstance(e, MessageAdded)]
    assert len(prompts) == 1, "a new step has its own beginning"
    assert "ct1" not in prompts[0].replace("ct1…", "")


def test_a_conversation_that_is_gone_is_begun_anew(stage: ClientStage) -> None:
    gone = {"exit": 1, "errors": "No conversation found with session ID: x"}
    session = stage.order_ended({"steps": 1}, gone, {"steps": 1})

    assert stage.wait_for(session, "done", "parked").outcome == "success"
    reports = [e for e in stage.entries(session) if isinstance(e, ClientReported)]
    assert len({one.conversation for one in reports}) == 2


def test_a_pause_a_message_and_a_limit_reach_it_while_it_works(stage: ClientStage) -> None:
    session = stage.order_ended({"turns": 1, "waits": True}, {"turns": 1, "waits": True})
    stage.wait_until(lambda: stage.turn_count(session) == 1, "it works", session)
    orders.control_work(stage.app, session, "pause", place=PLACE)
    stage.wait_for(session, "paused")
    assert stage.state(session).spent.usage.cost_micros == 500_000, "it was let tell its cost"

    stage.end_as({"turns": 1, "waits": True, "steps": 2})
    orders.control_work(stage.app, session, "resume", place=PLACE)
    stage.wait_until(lambda: stage.turn_count(session) == 2, "it goes on", session)
    orders.steer_work(stage.app, session, "Mind the gap", place=PLACE)
    assert stage.wait_for(session, "done", "parked").outcome == "success"
    told = [e for e in stage.entries(session) if isinstance(e, MessageAdded) and e.steer]
    assert ["Mind the gap" in one.text for one in told] == [True]

    limited = stage.order_ended({"turns": 2, "waits": True}, limits={"tokens": 240})
    state = stage.wait_for(limited, "parked", "done")
    assert (state.reason, state.detail) == ("limit", "the limit of 240 tokens is reached")
    stage.end_as({"steps": 2})
    orders.raise_limits(stage.app, limited, LimitsWish(tokens=1_000), place=PLACE)
    assert stage.wait_for(limited, "done").outcome == "success"


def test_what_it_must_not_do_or_would_have_to_ask_about_it_cannot(tmp_path: Path) -> None:
    with ClientStage(tmp_path, 'never = ["Glob"]\nask = ["Bash"]\nnetwork = true') as stage:
        stage.start_driver()
        for is_read_only, tools in ((False, "Read,Edit,Write,Grep"), (True, "Read,Grep")):
            session = stage.order_ended({"steps": 2}, is_read_only=is_read_only)

            assert stage.wait_for(session, "done", "parked").outcome == "success"
            (words,) = stage.command_lines()
            given = {word for word in words if word.startswith(("--tools", "--allowedTools"))}
            assert given == {f"--tools={tools}", f"--allowedTools={tools},mcp__interlock"}
            begun = [e for e in stage.entries(session) if isinstance(e, StepBegun)]
            assert {e.tools for e in begun} == {tuple(tools.split(","))}
            assert all("There is no network." in e.system for e in begun)


def test_a_program_that_is_missing_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    with ClientStage(tmp_path) as stage:
        stage.program.unlink()
        session = stage.order()
        stage.start_driver()
        state = stage.wait_for(session, "parked", "done")

    assert state.reason == "failed"
    assert "npm install -g @anthropic-ai/claude-code" in state.detail
    assert git(stage.repository, "status", "--short") == ""


def test_it_is_started_again_when_our_server_has_another_address(stage: ClientStage) -> None:
    session = stage.order_ended({"turns": 1, "waits": True}, {"steps": 2})
    stage.wait_until(lambda: stage.turn_count(session) == 1, "it works", session)
    stage.server.stop()
    stage.server.port = 0
    stage.server.start()

    assert stage.wait_for(session, "done", "parked").outcome == "success"
    assert len(stage.command_lines()) == 2
