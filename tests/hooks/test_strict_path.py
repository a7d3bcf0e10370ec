"""From a fresh session to the first edit in a strict project, by doing only what is told."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.blanks import fill
from tests.hooks.clients import Client, attend, text_of

NAMED_SESSION = "Where a tool asks for `sessionId`: "


class Follower:
    """An agent that knows nothing of Interlock, and does what the answers say."""

    def __init__(self, app: App, client: Client) -> None:
        self._protocol = McpProtocol(app, TOOLS)
        self._client = client
        self.done: list[str] = []
        briefing = text_of(client.told("session-start", source="startup"))
        self._session = briefing.partition(NAMED_SESSION)[2].partition(".")[0]

    def edits(self) -> bool:
        return self._follows(*self._client.call("edit")[:2])

    def runs(self, command: str) -> bool:
        answer, reason, _ = self._client.call("shell", {"command": command})
        if answer == "allow":
            self.done.append(command)
            subprocess.run(
                command, shell=True, cwd=self._client.project, check=True, stderr=subprocess.DEVNULL
            )
        return self._follows(answer, reason)

    def types(self, prompt: str) -> None:
        """The user types what the answers name."""
        self.done.append(prompt)
        self._follow(text_of(self._client.told("prompt-submit", prompt=prompt)))

    def _follows(self, answer: str, reason: str) -> bool:
        if answer != "allow":
            self._follow(reason)
        return answer == "allow"

    def _follow(self, text: str) -> None:
        if "call `session` with mode `coding` and a task" in text:
            self._call({"mode": "coding", "task": "Fix the export"})
        elif "`session` with one" in text or "Call `session` with a task" in text:
            self._call({"task": "Fix the export"})
        elif "`git switch -c NAME`" in text:
            self.runs("git switch -c fix/export")
        else:
            assert "The user has set the mode to coding" in text, f"what now? {text}"

    def _call(self, arguments: dict[str, Any]) -> None:
        self.done.append(" ".join(("session", *arguments)))
        params = {"name": "session", "arguments": {"sessionId": self._session, **arguments}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = json.loads(self._protocol.answer(json.dumps(message).encode()) or b"")["result"]
        if not result["isError"]:
            return
        details = result["structuredContent"]["details"]
        if call := details.get("correctCall"):
            self._call(fill(call["params"]))
        else:
            assert "`/mode coding`" in details["hint"], details
            self.types("/mode coding")


@pytest.fixture
def follower(app: App, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Follower:
    subprocess.run(("git", "init", "-qb", "main", str(tmp_path)), check=True)
    opt_in(tmp_path, "strict")
    monkeypatch.chdir(tmp_path)
    client = Client(app, home, tmp_path, "claude-code")
    attend(monkeypatch, client.host)
    return Follower(app, client)


CODING = ["session mode task", "/mode coding", "session task"]
BRANCH = "git switch -c fix/export"


def test_an_edit_leads_to_coding_then_to_a_task_and_a_branch(follower: Follower) -> None:
    attempts = [follower.edits() for _ in range(3)]

    assert (attempts, follower.done) == ([False, False, True], [*CODING, BRANCH])


def test_a_branch_that_is_tried_first_leads_there_too(follower: Follower) -> None:
    assert [follower.runs(BRANCH), follower.runs(BRANCH), follower.edits()] == [False, True, True]
    assert follower.done == [*CODING, BRANCH]


def test_a_mode_that_the_user_types_first_names_the_task_that_is_missing(
    follower: Follower,
) -> None:
    follower.types("/mode coding")

    assert [follower.edits(), follower.edits()] == [False, True]
    assert follower.done == ["/mode coding", "session task", BRANCH]
