"""An agent reads its mail through the tools alone, however much of it has come."""

from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.context import App, open_app
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate.opt_in import opt_in
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import Message
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.app.coordination.team import who
from tests.mcp.agent import Agent

pytestmark = pytest.mark.both_stores
COUNT = 100
RECIPIENTS = ("id", "base", "session", "all", "track:shop", "all, track:shop")
OTHERS = ("track:docs", "overseer", "Nobody")
"""Their messages are not for the agent, and must not stand in the way of those that are."""


@pytest.fixture
def silent(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent that registers and says nothing while another one writes."""
    opt_in(tmp_path, "light")
    monkeypatch.chdir(tmp_path)
    agent = Agent(McpProtocol(app, TOOLS))
    session = agent.ok("session", action="start")["session"]
    found = agent.ok("preflight", track="shop")["identity"]
    names = {"id": found["id"], "base": found["id"].partition("-")[0], "session": session}
    with closing(open_app(app.home)) as other:
        desk = open_desk(other, tmp_path)
        for number in range(COUNT):
            to = RECIPIENTS[number % len(RECIPIENTS)]
            recipients = tuple(names.get(name, name) for name in to.split(", "))
            drafts = [MessageDraft(recipients, f"Number {number}")]
            drafts += [MessageDraft((name,), f"Not for you {number}") for name in OTHERS]
            for draft in drafts:
                assert isinstance(send_message(other, desk, who("Bo"), draft), Message)
    return agent


def numbers(texts: list[str]) -> list[int]:
    return [int(text.rpartition("Number ")[2]) for text in texts if "Number " in text]


def test_an_agent_that_was_silent_while_100_messages_came_is_delivered_each_once(
    silent: Agent,
) -> None:
    delivered, left = list[int](), COUNT
    for tool in ("list_workflows", "work_items", "preflight", "no_such_tool") * (COUNT // 4):
        news = silent.plain(tool, {})["structuredContent"].get("news", [])
        delivered += numbers(news)
        left -= len(numbers(news))
        assert (f"{left} more messages wait; " in "".join(news)) == bool(news and left)

    assert delivered == list(range(COUNT))


@pytest.mark.parametrize("way", ["page by page", "acknowledging"])
def test_an_agent_that_was_silent_while_100_messages_came_lists_all_of_them(
    silent: Agent, way: str
) -> None:
    listed, left, arguments = list[int](), COUNT, dict[str, object]()
    while left:
        answer = silent.plain("inbox", arguments)
        page, text = answer["structuredContent"], answer["content"][0]["text"]
        ids = [message["id"] for message in page["messages"]]
        listed += numbers([message["subject"] for message in page["messages"]])
        left -= len(ids)
        assert page["left"] == left == COUNT - len(listed)
        assert (f'{left} more: call `inbox {{"after":"{ids[-1]}"}}`' in text) == bool(left)
        arguments = {"after": ids[-1]} if way == "page by page" else {"acknowledge": ids}
    assert listed == list(range(COUNT))

    last = silent.plain("inbox", arguments)["content"][0]["text"]
    more = "more " if way == "page by page" else ""
    assert last == f"There are no {more}unacknowledged messages."
    whole = silent.plain("inbox", {"all": True})["content"][0]["text"]
    assert f'{COUNT - 50} more: call `inbox {{"all":true,"after":"msg_' in whole
