"""News from others who work on a project: told once, whatever tells it, in the form of the host."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.registry import NAMES
from interlock.app.clock import SystemClock
from interlock.app.context import App, open_app
from interlock.app.coordination import holdings, mail, tracker
from interlock.app.coordination.holdings import ReservedPaths, ReserveRequest
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.project_desk import open_desk
from interlock.app.protocol.bootstrap import forget_what_was_told
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import Identity, Message, WorkItem
from interlock.core.coordination.work_items import WorkDraft
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.hooks.hook_result import HookEvent, HookResult
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.store import gate_reservations
from tests.hooks.clients import Client, text_of
from tests.hooks.scene import Scene
from tests.hooks.test_context import START_FORMS, claude_form, copilot_form
from tests.mcp.agent import Agent

SILENCE = HookResult()
PROMPT = {"prompt": "go on"}
FORMS: dict[str, dict[str, Any]] = {
    "claude-code": {
        "prompt-submit": claude_form("UserPromptSubmit"),
        "post-tool": claude_form("PostToolUse"),
        "tool-failed": claude_form("PostToolUseFailure"),
    },
    "codex": {
        "prompt-submit": claude_form("UserPromptSubmit"),
        "post-tool": claude_form("PostToolUse"),
    },
    "gemini": {"prompt-submit": START_FORMS["gemini"], "post-tool": START_FORMS["gemini"]},
    "opencode": {"prompt-submit": START_FORMS["opencode"], "post-tool": START_FORMS["opencode"]},
    "cursor": {"post-tool": START_FORMS["cursor"]},
    "copilot": {"post-tool": copilot_form("PostToolUse")},
}
"""The events at which the model of each host reads news, and how."""
DEAF = [("cursor", "prompt-submit"), ("cursor", "tool-failed"), ("copilot", "prompt-submit")]
"""Events at which the hook is run, and its words do not reach the model."""


class Pair:
    """An agent in a client, and another one in the same project."""

    def __init__(self, client: Client) -> None:
        self.client, self.app = client, client.app
        self.session = client.begin("coding")
        self.desk = open_desk(self.app, client.project)
        self.other = Client(self.app, client.home, client.project, "claude-code").begin("coding")
        self.own = self.register(self.session)
        self.others = self.register(self.other)

    def register(self, session: SessionId, track: str | None = None) -> Identity:
        found = register(self.app, self.desk, Participant(session, track=track))
        assert isinstance(found, Identity)
        return found

    def write(self, subject: str, *to: str) -> None:
        draft = MessageDraft(to or (self.own.id,), subject)
        sent = mail.send_message(self.app, self.desk, Participant(self.other), draft)
        assert isinstance(sent, Message)

    def reserve(self, session: SessionId, *paths: str) -> None:
        request = ReserveRequest(paths)
        held = holdings.reserve_paths(self.app, self.desk, Participant(session), request)
        assert isinstance(held, ReservedPaths)

    def claim(self, session: SessionId, title: str) -> str:
        who = Participant(session)
        item = tracker.add(self.app, self.desk, who, WorkDraft(title))
        assert isinstance(item, WorkItem)
        assert isinstance(tracker.claim(self.app, self.desk, who, item.id), WorkItem)
        return item.id

    def hears(self, event: HookEvent, **more: Any) -> str:
        """What the agent is told at an event."""
        fields = PROMPT if event == "prompt-submit" else self.client.tool("shell")
        return text_of(self.client.told(event, **fields, **more))


@pytest.fixture
def client(app: App, home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Client:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return Client(app, home, tmp_path, getattr(request, "param", "claude-code"))


@pytest.fixture
def pair(client: Client) -> Pair:
    return Pair(client)


@pytest.fixture
def agent(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """The server of the same conversation, in a process of its own."""
    app = open_app(pair.client.home)
    monkeypatch.chdir(pair.client.project)
    agent = Agent(McpProtocol(app, TOOLS))
    agent.ok("preflight", sessionId=pair.session)
    yield agent
    app.close()


HEARD = [(host, event) for host, forms in FORMS.items() for event in forms]


@pytest.mark.parametrize(("client", "event"), HEARD, indirect=["client"])
def test_a_message_is_told_once_in_the_form_that_the_host_reads(
    pair: Pair, event: HookEvent
) -> None:
    fields = PROMPT if event == "prompt-submit" else pair.client.tool("shell")
    if pair.client.host.tells_at_prompt and event == "prompt-submit":
        pair.client.told(event, **fields)  # where it stands comes with its first prompt
    pair.write("the API is done")

    told = pair.client.told(event, **fields)

    news = f"From {pair.others.base} (session "
    assert text_of(told).startswith(f"New from other agents in this project (shown once):\n{news}")
    assert text_of(told).endswith("): the API is done")
    assert told == FORMS[pair.client.host.name][event](text_of(told))
    assert pair.client.send(event, **fields) == SILENCE


@pytest.mark.parametrize(("client", "event"), DEAF, indirect=["client"])
def test_where_a_host_does_not_listen_nothing_is_lost(pair: Pair, event: HookEvent) -> None:
    pair.write("the API is done")

    assert pair.hears(event) == ""
    assert "the API is done" in pair.hears("post-tool")


def test_every_host_has_an_event_at_which_it_listens() -> None:
    assert set(FORMS) == set(NAMES)


def test_a_subagent_has_no_mail(pair: Pair) -> None:
    pair.write("the API is done")

    for event in ("post-tool", "prompt-submit"):
        assert pair.hears(event, agent_id="agent-1") == ""
    assert "the API is done" in pair.hears("post-tool")


@pytest.mark.invariant("news-told-once")
def test_the_hook_and_the_server_tell_it_once_between_them(pair: Pair, agent: Agent) -> None:
    pair.write("first")
    found = agent.plain("list_workflows", {})

    assert found["structuredContent"]["news"] == [found["content"][1]["text"].splitlines()[1]]
    assert found["content"][1]["text"].endswith("): first")
    assert pair.hears("post-tool") == ""
    pair.write("second")
    assert "second" in pair.hears("prompt-submit")
    for tool in ("list_workflows", "work_items", "no_such_tool"):
        found = agent.plain(tool, {})
        assert ("news" in found["structuredContent"], len(found["content"])) == (False, 1)


@pytest.mark.parametrize("order", ["told before it is marked", "told in between"])
def test_a_mark_is_neither_lost_nor_left(
    pair: Pair, agent: Agent, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server tells it while the sender has not marked it yet, or while another one comes."""
    home, name = pair.client.home, pair.client.conversation
    if order == "told before it is marked":
        pair.write("first")
        agent.plain("list_workflows", {})
        gate_reservations.mark_news(home, [pair.session])
        assert pair.hears("post-tool") == ""
        assert not gate_reservations.has_news(home, "claude-code", name), "it is fast again"
        return
    pair.write("first")
    replace = type(pair.app.log).replace_row

    def replace_row(*words: Any, **more: Any) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(type(pair.app.log), "replace_row", replace)
            pair.write("second")
        return replace(*words, **more)

    monkeypatch.setattr(type(pair.app.log), "replace_row", replace_row)
    assert "first" in agent.plain("list_workflows", {})["content"][1]["text"]
    monkeypatch.setattr(type(pair.app.log), "replace_row", replace)

    assert "second" in pair.hears("post-tool")


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_who_begins_is_told_who_is_here_and_who_goes_on_what_it_holds(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.register(pair.other, track="api")
    pair.reserve(pair.other, "src/api/**")
    others = pair.claim(pair.other, "Make the API")
    pair.reserve(pair.session, "docs")
    own = pair.claim(pair.session, "Write it down")
    here = f"{pair.others.id}, active, track api, holds src/api/**, works on {others}."
    holds = ("Reserved: docs, until ", f"Claimed: {own}, Write it down.")
    is_at_prompt = pair.client.host.tells_at_prompt

    def begins(source: str, client: Client = pair.client) -> str:
        text = text_of(client.told("session-start", source=source))
        return text_of(client.told("prompt-submit", **PROMPT)) if is_at_prompt else text

    newcomer = Client(pair.app, pair.client.home, pair.client.project, pair.client.host.name)
    assert here in begins("startup", newcomer)
    text = begins("startup")
    assert all(line in text for line in (here, *holds)), text
    past = SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: past(clock) + 3 * 60_000)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    assert begins("resume") == "", "it remembers, whatever the time is"
    pair.client.send("pre-compact", trigger="auto")
    if is_at_prompt:
        forget_what_was_told(
            pair.client.home, Conversation(pair.client.host.name, pair.client.conversation)
        )
    text = begins("resume")
    assert all(line in text for line in holds), text
    if not is_at_prompt:
        text = begins("compact")
        assert all(line in text for line in holds), text


def test_the_fast_hook_hands_news_over_and_is_alone_again_after(scene: Scene) -> None:
    scene.goes_to("coding")
    desk = open_desk(scene.app, scene.project)
    own = register(scene.app, desk, Participant(scene.session))
    assert isinstance(own, Identity)
    ran = scene.payload("Bash", {"command": "ls"}, tool_response={"stdout": ""})
    scene.full(ran, "post-tool")  # which makes the files
    assert scene.is_fast(ran, "post-tool")

    mail.send_as_overseer(scene.app, desk, MessageDraft((own.id,), "stop"))

    assert not scene.is_fast(ran, "post-tool")
    assert b"(a person): stop" in scene.full(ran, "post-tool").out
    assert scene.is_fast(ran, "post-tool")
    for number in range(15):
        mail.send_as_overseer(scene.app, desk, MessageDraft((own.id,), f"Number {number}"))
    scene.full(ran, "post-tool")
    assert not scene.is_fast(ran, "post-tool"), "five are left"
