"""Calls that are tried without being carried out: everything is decided, and nothing is written."""

import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from interlock.app.context import App
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.blanks import fill

TRIED = (
    "start_workflow",
    "continue_workflow",
    "checkpoint_workflow",
    "resume_session",
    "list_workflows",
    "inspect_workflow",
)
"""Tools whose calls write through the log alone, or not at all."""
DECIDED_BY_VALUES = (
    "assessment_followup_required",
    "capability_unavailable",
    "verification_failed",
    "verification_missing",
    "approval_denied",
)
"""Reasons for which a call of the right form is not accepted: the values decide."""
JUDGEMENTS = (
    "decision",
    "level",
    "verdict",
    "confidence",
    "status",
    "severity",
    "exitCode",
    "summary",
    "detail",
    "evidence",
    "reason",
    "rationale",
)
"""Members of artifacts in which an agent judges, reports or quotes."""


class _DryLog:
    """A log that takes every plan and keeps none."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, _plan: object) -> bool:
        return True

    append_to_project = append

    def replace_row(self, *_: object, **__: object) -> bool:
        return True


class DryRun:
    def __init__(self, app: App) -> None:
        log: Any = _DryLog(app.log)
        self._protocol = McpProtocol(msgspec.structs.replace(app, log=log), TOOLS)

    def check(self, structure: dict[str, Any]) -> None:
        """Assert of every call that an answer or a refusal shows that it works once filled in."""
        for call in suggested_calls(structure):
            if call["tool"] in TRIED:
                assert not list(_judgements(call["params"])), call
                self._try(call, is_form_wrong=structure.get("code") == "invalid_arguments")

    def _try(self, call: dict[str, Any], *, is_form_wrong: bool) -> None:
        params = {"name": call["tool"], "arguments": fill(call["params"])}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = json.loads(self._protocol.answer(json.dumps(message).encode()) or b"")["result"]
        told = (call, fill(call["params"]), result["content"][0]["text"])
        token = call["params"].get("continueToken", "")
        if "<" in token or (call["tool"] == "checkpoint_workflow" and not token):
            return  # a token cannot be made up, nor a session that was not written be found
        if "There is no directory" in told[-1]:
            return  # the server's own is gone, and nobody knows another
        made_up = ("unknown_workflow", "unknown_session")
        if is_form_wrong and result["structuredContent"].get("code") in made_up:
            return  # a name that was made up is told of once the form is right
        assert not result["isError"], told
        if "output" not in call["params"]:
            return  # what is only shown again may have been blocked before
        blockers = result["structuredContent"].get("blocked", {}).get("blockers", ())
        assert {one["code"] for one in blockers} <= set(DECIDED_BY_VALUES), told


def suggested_calls(structure: dict[str, Any]) -> Iterator[dict[str, Any]]:
    details = structure.get("details", {})
    candidates = [candidate.get("nextCall") for candidate in structure.get("candidates", ())]
    for call in (structure.get("nextCall"), details.get("correctCall"), *candidates):
        if call:
            yield call
    yield from details.get("nextCalls", ())


def _judgements(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What an example says in the agent's place."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _judgements(item, key)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _judgements(item, name)
    elif name in JUDGEMENTS and not (isinstance(value, str) and value.startswith("<")):
        yield name, value
