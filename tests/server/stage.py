"""A store with something of everything in it, made through the tools as an agent would."""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from interlock.app.context import App
from interlock.app.gate import opt_in
from interlock.app.runs import user_actions
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.sessions import begin_recorded

HOSTILE = (
    "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    " [link](javascript:window.pwned=1) ![p](http://127.0.0.1:9/p.png)"
    " <svg onload=window.pwned=1> \x1b[31mred\x1b[0m \u202ebidi\u202c"
)
PLAN: dict[str, Any] = {
    "id": "ship-a-change",
    "name": "Ship a change",
    "description": "From an idea to a change that is merged.",
    "version": "1.2.0",
    "tags": ["coding", "review"],
    "steps": [
        {
            "id": "understand",
            "title": "Understand the task",
            "prompt": "Read what matters for: {{goal}}.",
        },
        {
            "id": "spike",
            "title": "Try the risky part",
            "prompt": "Try it.",
            "runCondition": {"var": "size", "equals": "large"},
        },
        {
            "id": "work",
            "type": "loop",
            "title": "Work in passes",
            "loop": {"type": "for", "count": 2, "maxIterations": 5},
            "body": [
                {
                    "id": "do",
                    "title": "Do the next part",
                    "prompt": "Do the next part, and test it.",
                },
            ],
        },
        {
            "id": "propose",
            "title": "Propose the change",
            "prompt": "Write what a reviewer must know.",
            "validationCriteria": {
                "type": "contains",
                "value": "Tests:",
                "message": "Say `Tests:` and what they showed",
            },
        },
        {
            "id": "ask",
            "title": "Ask for the merge",
            "prompt": "Say what will be merged.",
            "requireConfirmation": {"kind": "human_approval", "question": "Merge this into main?"},
        },
        {"id": "merge", "title": "Merge", "prompt": "Merge it and tell what is left."},
    ],
}


def tool_call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The message with which an agent calls a tool."""
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


class Stage:
    """Agents at work in one project: each run is started over a connection of its own."""

    def __init__(self, app: App, project: Path) -> None:
        self.app, self.project = app, project
        self._protocol = McpProtocol(app, TOOLS)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        message = msgspec.json.encode(tool_call(tool, arguments))
        reply = json.loads(self._protocol.answer(message) or b"")
        result = reply["result"]
        assert not result["isError"], result["content"][0]["text"]
        return result["structuredContent"]

    def start(self, workflow: str, goal: str, **more: Any) -> dict[str, Any]:
        self._protocol = McpProtocol(self.app, TOOLS)
        return self.call(
            "start_workflow",
            workflowId=workflow,
            goal=goal,
            workspacePath=str(self.project),
            requestId=goal + workflow,
            **more,
        )

    def go_on(
        self, answer: dict[str, Any], notes: str, context: Any = None, **more: Any
    ) -> dict[str, Any]:
        sent = {"output": {"notesMarkdown": notes, **more}} | (
            {"context": context} if context else {}
        )
        return self.call("continue_workflow", continueToken=answer["continueToken"], **sent)


def project_at(path: Path) -> Path:
    """A git checkout with a workflow of its own."""
    (path / ".interlock" / "workflows").mkdir(parents=True)
    (path / ".interlock" / "workflows" / "ship-a-change.json").write_text(
        json.dumps(PLAN, indent=2)
    )
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    return path


def perform(app: App, project: Path) -> dict[str, str]:
    """Sessions by what is to be seen in them; `branch` is a node."""
    stage = Stage(app, project)
    done = stage.start("hello", "Look around and improve one small thing")
    seen = {"done": done["introduction"]["session"]}
    while done["pending"]:
        done = stage.go_on(
            done,
            "The README does not say how to run the tests. **One line** would do."
            "\n\n- Left out: the logo.\n- Proof: `grep -c 'make test' README.md`.",
        )
    waits = stage.start(
        "ship-a-change", "Make the import of bundles stream instead of loading 16 MB"
    )
    seen["waits"] = waits["introduction"]["session"]
    first = waits
    waits = stage.go_on(
        waits,
        "The bundle is read whole in `app/sessions/bundle.py`. **Streaming** needs a reader"
        " that checks digests as it goes.\n\n1. `unpack` splits\n2. `adopt` takes an iterator",
        context={"bottleneck": "size"},
    )
    stage.go_on(
        first,
        "Another reading: the size is fine, the *time* is the problem. Start from a profile.",
        artifacts=[{"kind": "custom", "text": "profile"}],
        context={"bottleneck": "time"},
    )
    seen["branch"] = app.reader.runs(SessionId(seen["waits"]))[-1].tip or ""
    waits = stage.go_on(waits, "Split `unpack` into header and parts.")
    stage.call(
        "checkpoint_workflow",
        continueToken=waits["continueToken"],
        output={"notesMarkdown": "The header is read on its own now; tests are green."},
    )
    waits = stage.go_on(waits, "`adopt` takes an iterator; peak memory 31 MB instead of 190 MB.")
    blocked = stage.go_on(waits, "It is done, please review.")
    waits = stage.go_on(
        blocked, "Streams bundles. Tests: 212 passed, with a 16 MB bundle among them."
    )
    stage.go_on(waits, "Will merge `stream-bundles` (3 commits) into main.")
    blocked = stage.start("ship-a-change", "Colour the output of `interlock status`")
    seen["blocked"] = blocked["introduction"]["session"]
    for notes in ("Looked at click's styles.", "Added styles.", "Used them in status."):
        blocked = stage.go_on(blocked, notes)
    stage.go_on(blocked, "Done.")
    open_run = stage.start("coding-task", "Give the gate a fast path for reading tools")
    seen["open"] = open_run["introduction"]["session"]
    hostile = stage.start("ship-a-change", f"Goal {HOSTILE}")
    seen["hostile"] = hostile["introduction"]["session"]
    stage.go_on(
        hostile,
        f"Notes {HOSTILE}\n\n{'long ' * 3000}",
        artifacts=[{"kind": "custom", "text": HOSTILE}],
    )
    archived = stage.start("hello", "Something that is long over")
    seen["archived"] = archived["introduction"]["session"]
    user_actions.set_archived(app, archived["introduction"]["session"], is_archived=True)
    # Elsewhere: what is started where one is active goes into it.
    gated = project.with_name("gated")
    gated.mkdir()
    opt_in.opt_in(gated, "standard")
    seen["attended"] = begin_recorded(app, gated, Conversation("claude-code", "talk")).session
    return seen
