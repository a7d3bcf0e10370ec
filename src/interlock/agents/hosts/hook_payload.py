"""The payload that a client sends to a hook, read in the way of its host."""

from typing import Any, cast

import msgspec

from interlock.agents.hosts.host import FIELDS, Host
from interlock.core.canonical import Json

BYTES_MAX = 8 * 1024 * 1024


class HookPayload(msgspec.Struct, frozen=True):
    """The payload of every hook, as far as it is read. Fields beyond these may come and go."""

    session_id: str = ""
    cwd: str = ""
    tool_name: str = ""
    tool_input: Json = None
    tool_use_id: str = ""
    source: str = ""
    reason: str = ""
    prompt: str = ""
    stop_hook_active: bool = False
    permission_mode: str = ""
    agent_id: str = ""
    """Of a subagent, in whose name the call is made; empty in the conversation itself."""
    agent_type: str = ""
    transcript_path: str = ""
    everything: dict[str, Any] = {}
    """The payload under the usual names, for the host to look at."""


class PayloadTooLarge(ValueError):
    """A client sends more than is read."""


def decode_payload(host: Host, content: bytes) -> HookPayload:
    """Decode a payload.

    Raises:
        ValueError: it is not what a client sends.
    """
    if len(content) > BYTES_MAX:
        raise PayloadTooLarge(f"its report has more than {BYTES_MAX >> 20} MB")
    value = msgspec.json.decode(content.decode("utf-8", "replace"))
    if not isinstance(value, dict):
        raise ValueError("the payload is no object")  # noqa: TRY004 (of JSON)
    usual = host.read_payload(cast("dict[str, Any]", value))
    names = (*FIELDS, "tool_input", "stop_hook_active")
    fields = {name: usual[name] for name in names if usual.get(name) is not None}
    return msgspec.convert({**fields, "everything": usual}, HookPayload)
