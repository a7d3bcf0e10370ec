"""The instructions an agent gets before any tool: all it sees where schemas come later.

A client that shows only the names of tools at first still shows this, so each tool is named here
with the arguments that matter. Clients cut long instructions off: the budget is tested.
"""

from collections.abc import Iterable
from typing import Any

from interlock.mcp.tool import Tool

BYTES_MAX = 2_000

_HEAD = """\
Interlock records your work: a rewind, compaction or restart loses none of it."""
_WORKFLOWS = """\
A workflow shows one step at a time. Do only that step, then submit it with notes."""
_TOKENS = """\
Each workflow answer has a continueToken of 48 characters. Send the newest one, copied whole. \
Repeating a call is safe. An older token returns to its step; different notes there start a branch.
After a compaction, or when you have lost your place: continue_workflow with the newest token and \
without output shows the current step. Without a token, or when the user says "continue" or \
"where were we": resume_session."""
_REST = """\
If your client has not loaded a tool yet, search for its name.
An error says what to do; most errors include a call that works."""


def instructions_for(tools: Iterable[Tool[Any]]) -> str:
    """The instructions of a server that has these tools; tools that it lacks are not mentioned."""
    cues = {tool.name: f"- {tool.name} {tool.cue}" for tool in tools}
    has_workflows = {"continue_workflow", "resume_session"} <= cues.keys()
    parts = (
        _HEAD,
        _WORKFLOWS if has_workflows else "",
        *cues.values(),
        _TOKENS if has_workflows else "",
        _REST,
    )
    return "\n".join(filter(None, parts))
