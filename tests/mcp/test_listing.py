"""Which tools a client is shown: what the project uses, more as soon as it uses more."""

import math
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.coordination import tracker
from interlock.app.coordination.participants import Participant
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts.project_use import FIXED_LISTING_CLIENTS, ProjectUse, project_use
from interlock.app.hosts.toolsets import announce_server
from interlock.core.coordination.work_items import WorkDraft
from interlock.mcp.instructions import instructions_for
from interlock.mcp.listing import COORDINATION, EVERYTHING, NOTES, STARTING, WORKING, listed_names
from interlock.mcp.protocol import VERSION_KEY, McpProtocol
from interlock.mcp.tool import Tool
from interlock.mcp.tools import TOOLS
from interlock.workspace.machine import tool_servers
from tests.mcp.agent import Agent

TOOLS_MAX, BYTES_MAX = 16, 14 * 1024
COORDINATED_BYTES_MAX = 19 * 1024
OPTED_IN = ProjectUse(is_opted_in=True)
USES = (ProjectUse(), OPTED_IN, ProjectUse(is_opted_in=True, has_notes=True), EVERYTHING)
MODERN = {"_meta": {VERSION_KEY: "2026-07-28"}}


def listed(use: ProjectUse) -> list[Tool[Any]]:
    return [tool for tool in TOOLS if tool.name in listed_names(use)]


def size(tools: list[Tool[Any]]) -> int:
    return len(msgspec.json.encode([tool.listing for tool in tools]))


def test_the_listing_holds_what_the_project_uses_and_stays_small() -> None:
    assert listed_names(ProjectUse(has_notes=True, is_coordinated=True)) == set(STARTING)
    assert listed_names(OPTED_IN) == {*STARTING, *WORKING}
    usual = listed(ProjectUse(is_opted_in=True, has_notes=True))
    assert {tool.name for tool in usual} == {*STARTING, *WORKING, *NOTES}

    assert len(usual) <= TOOLS_MAX
    assert size(usual) <= BYTES_MAX
    assert size(listed(EVERYTHING)) <= COORDINATED_BYTES_MAX
    assert listed_names(EVERYTHING) <= {tool.name for tool in TOOLS}


class Client:
    """The other end of a server that was started in a project."""

    def __init__(self, app: App, project: Path, name: str = "a client") -> None:
        self.notified: list[tuple[str, dict[str, Any]]] = []
        self.protocol = McpProtocol(app, TOOLS, link=self, look=partial(project_use, app, project))
        self.name = name

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.notified.append((method, params))

    def ask(self, method: str, params: dict[str, Any], *, during: int | str) -> None:
        raise AssertionError(f"nothing is asked: {method}, {params}, {during}")

    def request(self, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        reply = self.protocol.answer(msgspec.json.encode(message))
        return msgspec.json.decode(reply)["result"] if reply else None

    def initialize(self) -> Any:
        return self.request("initialize", clientInfo={"name": self.name, "version": "1"})

    def tools(self, **params: Any) -> set[str]:
        return {tool["name"] for tool in self.request("tools/list", **params)["tools"]}

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.request("tools/call", name=tool, arguments=arguments)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "project"
    (made / ".git").mkdir(parents=True)
    monkeypatch.chdir(made)
    return made


@pytest.mark.sqlite  # a store in PostgreSQL is shared, so its projects are coordinated
def test_a_conversation_is_notified_when_its_project_uses_more(app: App, project: Path) -> None:
    client = Client(app, project)
    assert client.initialize()["capabilities"] == {"tools": {"listChanged": True}}
    assert client.tools() == set(STARTING)
    client.call("list_workflows")
    assert client.notified == []

    opt_in(project, "light")
    client.call("list_workflows")
    client.call("list_workflows")

    changed: tuple[str, dict[str, Any]] = ("notifications/tools/list_changed", {})
    assert client.notified == [changed], "once"
    assert client.tools() == {*STARTING, *WORKING}
    client.call("write_note", title="Found", content="It is so")
    assert client.notified == [changed, changed]
    assert client.tools() == {*STARTING, *WORKING, *NOTES}


def test_a_tool_that_was_listed_stays(app: App, project: Path) -> None:
    opt_in(project, "light")
    client = Client(app, project)
    client.call("write_note", title="Found", content="It is so")
    before = client.tools()
    (project / ".interlock" / "notes" / "Found.md").unlink()
    (project / ".interlock" / "config.toml").unlink()

    assert set(NOTES) <= before == client.tools()


@pytest.mark.sqlite  # a store in PostgreSQL is shared, so its projects are coordinated
def test_the_tools_for_several_agents_are_listed_once_there_are_several(
    app: App, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt_in(project, "light")
    client = Client(app, project)
    client.initialize()
    client.call("start_workflow", workflowId="hello", goal="Alone")
    assert not set(COORDINATION) & client.tools(), "being registered oneself is not company"

    monkeypatch.setattr(os, "getpid", lambda: 1)  # the server of another client
    other = announce_server(app, (), is_chosen=False)
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert other is not None
    assert tool_servers.running_servers(app.home)
    client.call("list_workflows")

    assert client.notified == [("notifications/tools/list_changed", {})]
    assert set(COORDINATION) <= client.tools()
    other.withdraw()
    assert set(COORDINATION) <= client.tools()


@pytest.mark.sqlite  # a store in PostgreSQL is shared, so its projects are coordinated
def test_planned_work_makes_a_project_coordinated(app: App, project: Path) -> None:
    opt_in(project, "light")
    assert not project_use(app, project, frozenset()).is_coordinated
    desk = open_desk(app, project)

    tracker.add(app, desk, Participant("person:Ana", base="Ana"), WorkDraft("Do it"))

    assert project_use(app, project, frozenset()).is_coordinated


def test_a_client_that_lists_the_tools_once_is_shown_all_that_the_project_may_need(
    app: App, project: Path
) -> None:
    (name,) = FIXED_LISTING_CLIENTS
    outside = Client(app, project, name)
    outside.initialize()
    assert outside.tools() == set(STARTING)
    opt_in(project, "light")
    outside.call("list_workflows")
    assert outside.notified == []

    inside = Client(app, project, name)
    inside.initialize()

    assert inside.tools() == listed_names(EVERYTHING)


def test_a_client_of_2026_is_notified_by_its_subscription(app: App, project: Path) -> None:
    client = Client(app, project)
    found = client.request("server/discover", **MODERN)
    assert found["capabilities"] == {"tools": {"listChanged": True}}
    wanted = {"toolsListChanged": True, "promptsListChanged": True}
    assert client.request("subscriptions/listen", notifications=wanted, **MODERN) is None
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": "subscriptions/listen"}}
    honoured = {"notifications": {"toolsListChanged": True}}
    acknowledged = ("notifications/subscriptions/acknowledged", meta | honoured)
    assert client.notified == [acknowledged]
    assert client.tools(**MODERN) == set(STARTING)

    opt_in(project, "light")
    client.call("list_workflows")

    assert client.notified[1:] == [("notifications/tools/list_changed", meta)]


def test_a_tool_that_was_replaced_can_still_be_called(agent: Agent) -> None:
    """A conversation that was shown it goes on with it after an upgrade."""
    Path(".git").mkdir()
    opt_in(Path.cwd(), "light")
    attended = agent.ok("session", action="start")["session"]
    item = agent.ok("work_items", title="Do it", sessionId=attended)["items"][0]["id"]
    agent.ok("write_note", title="A note", content="text")

    def call(tool: str, **arguments: Any) -> Any:
        result = agent.plain(tool, arguments)
        assert not result["isError"], result["content"][0]["text"]
        return result["structuredContent"]

    assert call("claim_work", item=item, sessionId=attended)["items"][0]["assignee"]
    assert call("move_note", identifier="A note", to="old/")["path"] == "old/A note.md"
    assert call("recent_activity", limit=5)["hits"][0]["note"]["title"] == "A note"


STOP_WORDS = re.compile(
    "(an?|all|also|and|any|are|as|at|be|before|by|do|else|for|from|get|has|have|how|in|is|its?|more"
    "|not|of|on|only|or|so|that|the|then|there|they|this|to|was|we|were|what|when|where|which|who"
    "|with|without|your?)"
)
STEMS = {"continu": "continue", "resum": "resume", "start": "start", "step": "step"}
FOUND_MAX = 8
"""The number of tools that Codex's `tool_search` returns unless the model asks for more."""
FOREIGN_MAX = 3
"""Places that tools of others may take: Codex's own come first for `resume`."""


def words_of(text: str) -> list[str]:
    """The words that Codex's search compares: no stop words, and no endings."""
    words = (word for word in re.findall(r"\w+", text.lower()) if not STOP_WORDS.fullmatch(word))
    return [
        next((word for stem, word in STEMS.items() if found.startswith(stem)), found.rstrip("s"))
        for found in words
    ]


def _own_text(tool: Tool[Any]) -> str:
    arguments = sorted(tool.listing["inputSchema"]["properties"])
    names = (f"mcp__interlock{tool.name}", tool.name, tool.name, "interlock")
    return " ".join((*names, tool.purpose, *arguments))


def found_by(query: str, tools: list[Tool[Any]]) -> list[str]:
    """What Codex's `tool_search` returns: BM25 over name, description and names of arguments.

    To each tool it adds the instructions of the server, so that no word in them tells tools apart.
    """
    instructions = instructions_for(tools)
    texts = {tool.name: words_of(f"{_own_text(tool)} {instructions}") for tool in tools}
    average = sum(map(len, texts.values())) / len(texts)
    scores: dict[str, float] = {}
    for word in words_of(query):
        holders = sum(word in text for text in texts.values())
        rarity = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for name, text in texts.items():
            count = text.count(word)
            if count:
                weight = count + 1.2 * (0.25 + 0.75 * len(text) / average)
                scores[name] = scores.get(name, 0) + rarity * count * 2.2 / weight
    best = sorted(scores, key=lambda name: scores[name], reverse=True)
    return best[: FOUND_MAX - FOREIGN_MAX]


@pytest.mark.parametrize("query", ["start the workflow hello", "continue", "resume", "next step"])
@pytest.mark.parametrize("use", USES)
def test_a_search_for_the_words_of_the_job_finds_all_of_its_tools(
    use: ProjectUse, query: str
) -> None:
    job = {"start_workflow", "continue_workflow", "resume_session"}

    assert job <= set(found_by(query, listed(use)))


def test_a_search_for_stop_words_finds_nothing_so_the_instructions_name_the_tool() -> None:
    """Whatever a tool says of itself: Codex drops the words of "where were we"."""
    assert found_by("where were we", listed(EVERYTHING)) == []
    (line,) = [one for one in instructions_for(TOOLS).splitlines() if "where were we" in one]
    assert line.endswith('"where were we": resume_session.')
