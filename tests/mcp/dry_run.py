"""Calls that are tried and leave no trace: of some nothing is written, of others only to a copy."""

# pyright: reportPrivateUsage=false

import copy
import json
import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

import msgspec

from interlock.app.context import App, CoordinationCache
from interlock.app.node_cache import NodeCache
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.store.open_store import open_store
from interlock.store.sqlite.writer import SqliteLog
from interlock.workspace.projects.catalogue import Catalogue
from tests.blanks import fill
from tests.state_copy import copied_home, restored

DECIDED = (
    "start_workflow",
    "continue_workflow",
    "checkpoint_workflow",
    "resume_session",
    "list_workflows",
    "inspect_workflow",
)
"""Tools whose calls write through the log alone, or not at all: there deciding is enough."""
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
    def __init__(self, protocol: McpProtocol) -> None:
        self._app: App = protocol._app
        self._original = protocol
        log: Any = _DryLog(self._app.log)
        self._dry = self._protocol(msgspec.structs.replace(self._app, log=log))

    def check(self, structure: dict[str, Any]) -> None:
        """Assert of every call that an answer or a refusal shows that it works once filled in."""
        for call in suggested_calls(structure):
            if call["tool"] in DECIDED:
                assert not list(_judgements(call["params"])), call
                self._try(self._dry, call, structure)
            elif type(self._app.log) is SqliteLog:  # one that was made to fail is not copied
                named = (Path.cwd(), Path(fill(call["params"]).get("workspacePath") or "."))
                roots = {root for root in named if Path(gettempdir()) in root.parents}
                with self._copied(roots) as copied:
                    self._try(copied, call, structure)

    def _protocol(self, app: App) -> McpProtocol:
        """A server that knows what the agent's knows, and works with other objects."""
        made = McpProtocol(app, TOOLS, connection=copy.deepcopy(self._original._connection))
        made._has_directory = self._original._has_directory
        return made

    @contextmanager
    def _copied(self, roots: set[Path]) -> Generator[McpProtocol]:
        """A server of a copy of everything that is stored."""
        with ExitStack() as stack:
            for root in roots:
                stack.enter_context(restored(root))
            home = stack.enter_context(copied_home(self._app.home))
            store = open_store(home, "", os.urandom)
            app = msgspec.structs.replace(
                self._app,
                log=store.log,
                reader=store.reader,
                keyring=store.keyring,
                catalogue=Catalogue(home),
                home=home,
                notes={},
                coordination=CoordinationCache(),
                node_cache=NodeCache(),
                journals={},
            )
            try:
                yield self._protocol(app)
            finally:
                app.close()

    def _try(self, protocol: McpProtocol, call: dict[str, Any], shown: dict[str, Any]) -> None:
        params = {"name": call["tool"], "arguments": fill(call["params"])}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = json.loads(protocol.answer(json.dumps(message).encode()) or b"")["result"]
        text = result["content"][0]["text"]
        told = (call, fill(call["params"]), text)
        token = call["params"].get("continueToken", "")
        if "<" in token or (call["tool"] == "checkpoint_workflow" and not token):
            return  # a token cannot be made up, nor a session that was not written be found
        if "There is no directory" in text:
            return  # the server's own is gone, and nobody knows another
        if result["isError"]:
            assert "code" in shown, told
            assert leads_further(shown, result["structuredContent"]), (shown, told)
            return
        if "output" not in call["params"]:
            return  # what is only shown again may have been blocked before
        blockers = result["structuredContent"].get("blocked", {}).get("blockers", ())
        assert {one["code"] for one in blockers} <= set(DECIDED_BY_VALUES), told


def leads_further(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a suggested call that is refused has got past what the refused call failed at.

    The suggestion repairs what was wrong with the call; what else the agent wrote is its own. At
    the same stage, another reason leads on only where the user has to act.
    """
    if _stage(after["code"]) == _stage(before["code"]):
        has_call = bool(list(suggested_calls(after)))
        return not has_call and after["message"] != before["message"]
    return _stage(after["code"]) > _stage(before["code"])


def _stage(code: str) -> int:
    """How far a call comes that is refused so: its form, whose it is, what it names, the state."""
    if code in ("invalid_arguments", "unknown_tool") or code.startswith("token_"):
        return 0
    if code in ("several_sessions", "unknown_session"):
        return 1
    is_naming = code.startswith(("unknown_", "several_")) or code in ("no_project", "not_opted_in")
    return 2 if is_naming else 3


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
