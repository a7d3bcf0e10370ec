"""The payloads that clients send to our hooks: recorded, or written down from documentation.

A file is named after the host, its event, and what is special about it. `<PROJECT>` and `<HOME>`
stand for directories.
"""

import json
from pathlib import Path
from typing import Any

from interlock.agents.hosts.registry import host_named
from interlock.hooks.hook_result import EVENTS, HookEvent

PAYLOADS = Path(__file__).parents[1] / "payloads"
PREFIXES = {"claude-code": "claude"}
"""How files begin, where it is not the name of the host."""
OTHER_NAMES: dict[str, dict[str, HookEvent]] = {
    "copilot": {
        "PreToolUse": "pre-tool",
        "PostToolUse": "post-tool",
        "SubagentStart": "subagent-start",
    }
}
"""Names of events in the other form that a client knows."""


def recorded(name: str, project: Path, **changes: Any) -> dict[str, Any]:
    """The payload of this name, in a project."""
    text = (PAYLOADS / f"{name}.json").read_text(encoding="utf-8")
    text = text.replace("<PROJECT>", str(project)).replace("<HOME>", "/home/user")
    return {**json.loads(text), **changes}


def payload_names(host: str) -> dict[str, HookEvent]:
    """The payloads of the events that a hook of ours is on in a host, with our names of them."""
    prefix = PREFIXES.get(host, host)
    natives = {event.native: event.name for event in host_named(host).events}
    events = {**natives, **OTHER_NAMES.get(host, {})}
    found: dict[str, HookEvent] = {}
    for path in sorted(PAYLOADS.glob(f"{prefix}-*.json")):
        rest = path.stem.removeprefix(f"{prefix}-")
        for native, name in events.items():
            if rest == native or rest.startswith(f"{native}-"):
                found[path.stem] = next(event for event in EVENTS if event == name)
    return found
