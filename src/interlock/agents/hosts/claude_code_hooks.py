"""The payload that Claude Code sends to hooks, and the answers that it takes."""

from collections.abc import Iterable

import msgspec

from interlock.core.canonical import Json
from interlock.core.gate.decide import ADVISORY, GateDecision
from interlock.core.visible_text import make_visible_line


class HookPayload(msgspec.Struct, frozen=True):
    """The payload of every hook, as far as it is read. Fields beyond these may come and go."""

    session_id: str = ""
    cwd: str = ""
    hook_event_name: str = ""
    tool_name: str = ""
    tool_input: Json = None
    tool_use_id: str = ""
    source: str = ""
    reason: str = ""
    prompt: str = ""
    stop_hook_active: bool = False
    permission_mode: str = ""


def encode_decision(decision: GateDecision, gate_id: str, notice: str = "") -> bytes:
    """The answer to a tool call; nothing where it is allowed: others may still say no."""
    if decision.opened == ADVISORY:
        text = f"Allowed, but a rule here advises against it: {decision.reason}."
        return encode_context("PreToolUse", f"{text} ({decision.rule}, {gate_id})")
    if decision.answer == "allow":
        return b""
    reason = f"{decision.reason}. {decision.remedy} ({decision.rule}, {gate_id})"
    return _encode_hook_output(
        "PreToolUse",
        {
            "permissionDecision": decision.answer,
            # The user reads this too, and may decide by it.
            "permissionDecisionReason": make_visible_line(f"{reason} {notice}".rstrip()),
        },
    )


def encode_context(event: str, text: str, remarks: Iterable[str] = ()) -> bytes:
    """Something that the model should know, and perhaps remarks for the user's eyes."""
    return _encode_hook_output(event, {"additionalContext": text}, remarks) if text else b""


def encode_stop_block(reason: str) -> bytes:
    """The answer that keeps the agent from stopping."""
    return msgspec.json.encode({"decision": "block", "reason": reason})


def _encode_hook_output(event: str, fields: dict[str, str], remarks: Iterable[str] = ()) -> bytes:
    answer: dict[str, Json] = {"hookSpecificOutput": {"hookEventName": event, **fields}}
    to_user = "\n".join(f"Interlock: {make_visible_line(remark)}" for remark in remarks)
    return msgspec.json.encode(answer | ({"systemMessage": to_user} if to_user else {}))
