"""The instructions an agent gets before any tool: all it sees where schemas come later.

A client that shows only the names of tools at first still shows this, so each tool is named here
with the arguments that matter. Clients cut long instructions off: the budget is tested.
"""

from collections.abc import Iterable
from typing import Any

from interlock.mcp.tool import Tool

BYTES_MAX = 2_000

_HEAD = """\
Interlock records the work of agents: nothing is lost by a rewind, compaction or restart."""
_WORKFLOWS = """\
A workflow comes one step at a time. Do only the step you are shown, and hand it in with notes on \
what you did, found and decided."""
_TOKENS = """\
The token: each answer in a workflow has a continueToken of 48 characters. Copy the newest one \
whole; never make one up. Sending the same call twice is safe. An older token goes back to where \
it was handed out: other notes there make a branch, and nothing is lost.
After a compaction, or when you have lost your place: continue_workflow with the newest token you \
have and without output shows its step, the notes so far and whether the run went on since. \
Without a token, or if it did: resume_session leads to the newest point."""
_ERRORS = "An error says what is true, what to do, and a call that would work where there is one."


def instructions_for(tools: Iterable[Tool[Any]]) -> str:
    """The instructions of a server that has these tools; tools that it lacks are not mentioned."""
    cues = {tool.name: f"- {tool.name}: {tool.cue}." for tool in tools}
    has_workflows = {"continue_workflow", "resume_session"} <= cues.keys()
    parts = (
        _HEAD,
        _WORKFLOWS if has_workflows else "",
        *cues.values(),
        _TOKENS if has_workflows else "",
        _ERRORS,
    )
    return "\n".join(filter(None, parts))
