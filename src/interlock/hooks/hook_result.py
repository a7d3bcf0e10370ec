"""The events of hooks, their result, and how it tells something to the agent and to the user."""

from typing import Any, Literal, NamedTuple, get_args

import msgspec

from interlock.agents.hosts.host import Host
from interlock.agents.hosts.typed_form import as_typed
from interlock.core.visible_text import make_visible_line

HookEvent = Literal[
    "session-start",
    "prompt-submit",
    "pre-tool",
    "post-tool",
    "tool-failed",
    "stop",
    "subagent-start",
    "subagent-stop",
    "pre-compact",
    "session-end",
]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
BLOCKING_EXIT_CODE = 2
"""The exit code that denies a call in every host."""


class HookResult(NamedTuple):
    code: int = 0
    out: bytes = b""
    err: str = ""


def tell(host: Host, event: HookEvent, text: str, remarks: tuple[str, ...] = ()) -> HookResult:
    """Something that the model should know, and perhaps remarks for the user's eyes."""
    text, remarks = as_typed(host, text), tuple(as_typed(host, remark) for remark in remarks)
    to_user = "\n".join(f"Interlock: {make_visible_line(remark)}" for remark in remarks if remark)
    return encode_result(host.encode_context(event, text, to_user))


def encode_result(answer: dict[str, Any]) -> HookResult:
    return HookResult(0, msgspec.json.encode(answer) if answer else b"")
