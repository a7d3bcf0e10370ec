"""A project with a hook in front of its tools, as a client would call it."""

import json
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from interlock.agents.hosts.claude_code import HOST
from interlock.hooks.full_hook import run_hook

_numbers = count(1)


class Heard(NamedTuple):
    answer: str
    """allow, deny or ask."""
    text: str
    """The reason, or what the model is told beside it."""


class Desk:
    def __init__(self, home: Path, project: Path, session: str = "host-1") -> None:
        self.home, self.project, self.session = home, project, session

    def config(self, text: str) -> None:
        path = self.project / ".interlock" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def begin(self) -> dict[str, Any]:
        """A conversation begins; what its start is answered."""
        payload = {"session_id": self.session, "cwd": str(self.project), "source": "startup"}
        outcome = run_hook(HOST, "session-start", self.home, json.dumps(payload).encode())
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    def tool(self, name: str, **tool_input: Any) -> Heard:
        payload = {
            "session_id": self.session,
            "cwd": str(self.project),
            "tool_name": name,
            "tool_input": tool_input,
            "tool_use_id": f"toolu_{next(_numbers)}",
        }
        outcome = run_hook(HOST, "pre-tool", self.home, json.dumps(payload).encode())
        assert outcome.code == 0, outcome.err
        found: dict[str, str] = json.loads(outcome.out)["hookSpecificOutput"] if outcome.out else {}
        text = found.get("permissionDecisionReason") or found.get("additionalContext", "")
        return Heard(found.get("permissionDecision", "allow"), text)

    def mode(self, mode: str) -> None:
        """The user types it."""
        payload = {
            "session_id": self.session,
            "cwd": str(self.project),
            "prompt": f"/mode {mode} --task T-1",
        }
        outcome = run_hook(HOST, "prompt-submit", self.home, json.dumps(payload).encode())
        assert b"The user has set the mode" in outcome.out
