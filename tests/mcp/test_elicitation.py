"""An agent puts something to the user: in the client if that can ask, and always in the list."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.agents.hosts.registry import host_named
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.runs import approvals
from interlock.core.gate.state import CODING_CONSENT, CODING_QUESTION
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.approve import ApprovalVerdict
from interlock.mcp.protocol import HANDSHAKE_VERSIONS, McpProtocol
from interlock.mcp.stdio import StdioLink
from interlock.mcp.tools import TOOLS
from interlock.workspace.machine.identity import user_name
from tests.hooks.clients import attend
from tests.sessions import begin_recorded

PLAN = {"title": "Drop the table", "content": "DROP TABLE users"}


class Desk:
    """A server with a client at the other end of its pipes, whose words were sent before."""

    def __init__(self, app: App, pipes: ExitStack, **capabilities: Any) -> None:
        reading, self._writing = os.pipe()
        self._replies, writing = os.pipe()
        os.set_blocking(self._replies, False)
        for end in (reading, self._writing, self._replies):
            pipes.callback(os.close, end)
        self.link = StdioLink(reading, pipes.enter_context(os.fdopen(writing, "wb")), app.clock)
        self.protocol = McpProtocol(app, TOOLS, link=self.link)
        info = {"name": "playing-client", "version": "1"}
        self.request(
            "initialize",
            protocolVersion=HANDSHAKE_VERSIONS[-1],
            capabilities=capabilities,
            clientInfo=info,
        )

    def request(self, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        reply = self.protocol.answer(msgspec.json.encode(message))
        assert reply is not None
        return msgspec.json.decode(reply)["result"]

    def plan(self) -> Any:
        return self.request("tools/call", name="request_approval", arguments=PLAN)[
            "structuredContent"
        ]

    def will_say(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            content = msgspec.json.encode({"jsonrpc": "2.0", **message})
            os.write(self._writing, content + b"\n")

    def heard(self) -> list[Any]:
        try:
            lines = os.read(self._replies, 65_536).splitlines()
        except BlockingIOError:
            return []
        return [msgspec.json.decode(line) for line in lines]


@pytest.fixture
def desks() -> Iterator[Callable[..., Desk]]:
    with ExitStack() as pipes:

        def open_desk(app: App, **capabilities: Any) -> Desk:
            return Desk(app, pipes, **capabilities)

        yield open_desk


@pytest.fixture(autouse=True)
def session(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    opt_in(tmp_path, "standard")
    attend(monkeypatch, host_named("codex"))
    return begin_recorded(app, tmp_path, Conversation("codex", "talk-1")).session


def answer(**result: Any) -> dict[str, Any]:
    return {"id": "interlock-1", "result": result}


CANCELLED = {"method": "notifications/cancelled", "params": {"requestId": 7}}
SAID: dict[str, tuple[dict[str, Any], str]] = {
    "yes": (answer(action="accept", content={"approve": True}), "granted"),
    "no": (answer(action="accept", content={"approve": False, "reason": "No"}), "denied"),
    "declines": (answer(action="decline"), "waiting"),
    "cancels": (answer(action="cancel"), "waiting"),
    "odd": (answer(action="accept", content={"approve": "yes"}), "waiting"),
    "errs": ({"id": "interlock-1", "error": {"code": -32601, "message": "No"}}, "waiting"),
    "has left": (CANCELLED, "waiting"),
}


@pytest.mark.parametrize(("said", "status"), SAID.values(), ids=SAID)
def test_a_client_that_can_ask_is_asked_at_once(
    app: App, desks: Callable[..., Desk], said: Any, status: str
) -> None:
    desk = desks(app, elicitation={})
    listing = {"id": 8, "method": "tools/list"}
    desk.will_say({"id": 9, "method": "ping"}, listing, said)

    told = desk.plan()

    assert told["status"] == status
    asked, pong, *withdrawn = desk.heard()
    assert asked["method"] == "elicitation/create"
    assert asked["params"]["message"] == "Drop the table\n\nDROP TABLE users"
    assert pong == {"jsonrpc": "2.0", "id": 9, "result": {}}
    assert [one["method"] for one in withdrawn] == (
        ["notifications/cancelled"] if said == CANCELLED else []
    )
    assert msgspec.json.decode(desk.link.next_line(lambda: 1.0))["id"] == 8, "it is answered later"
    assert len(approvals.list_pending(app)) == (status == "waiting")
    if status != "waiting":
        assert told["who"] == f"{user_name()}, as playing-client says"


CODING = {
    "yes": ("coding", ""),
    "no": ("analysis", "the user said no: No"),
    "declines": ("analysis", "does not have it"),
}


@pytest.mark.invariant("agents-keep-their-rules")
@pytest.mark.parametrize("words", [(), ("exec",)], ids=["attended", "unattended"])
@pytest.mark.parametrize("said", CODING)
def test_a_client_that_can_ask_is_asked_about_coding(
    app: App,
    desks: Callable[..., Desk],
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    words: tuple[str, ...],
) -> None:
    attend(monkeypatch, host_named("codex"), *words, has_terminal=not words)
    mode, reason = CODING[said] if not words else ("analysis", "does not have it")
    desk = desks(app, elicitation={})
    desk.will_say(SAID[said][0])
    sought = {"mode": "coding", "task": "Fix it"}

    told = desk.request("tools/call", name="session", arguments=sought)["structuredContent"]

    asked = [one["params"]["message"] for one in desk.heard()]
    assert asked == ([] if words else [f"{CODING_QUESTION}. Task: Fix it. {CODING_CONSENT}"])
    assert reason in told.get("message", "")
    shown = desk.request("tools/call", name="session", arguments={})["structuredContent"]
    assert (shown["mode"], shown.get("task")) == (mode, "Fix it" if mode == "coding" else None)


@pytest.mark.parametrize(
    ("capabilities", "words"),
    [({}, ()), ({"elicitation": {"url": {}}}, ()), ({"elicitation": {}}, ("exec",))],
)
def test_others_are_not_asked_and_the_same_call_tells_the_answer(
    app: App,
    desks: Callable[..., Desk],
    monkeypatch: pytest.MonkeyPatch,
    capabilities: dict[str, Any],
    words: tuple[str, ...],
) -> None:
    attend(monkeypatch, host_named("codex"), *words, has_terminal=not words)
    desk = desks(app, **capabilities)

    waiting = desk.plan()
    shown = desk.request("tools/call", name="session", arguments={})["content"][0]["text"]
    approvals.answer(
        app, waiting["approval"], ApprovalVerdict("granted", "user", "Go", "ana, in a terminal")
    )
    told = desk.plan()

    assert waiting["status"] == "waiting"
    assert f"Waits for the user: {waiting['approval']}, Drop the table" in shown
    assert told == {
        "approval": waiting["approval"],
        "status": "granted",
        "who": "ana, in a terminal",
        "reason": "Go",
        "guidance": f"Approval {waiting['approval']} was granted by ana, in a terminal: Go. Do"
        " exactly what was approved.",
    }
    assert "Tell the user" in waiting["guidance"], "clients that show the structure need it too"
    assert desk.heard() == []
