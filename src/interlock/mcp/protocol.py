"""The Model Context Protocol for a server that only has tools: one message in, at most one out.

Two eras of the protocol are supported. Up to 2025-11-25 a connection opens with `initialize`; from
2026-07-28 on there is `server/discover`, and each request names its version in `_meta`. No state is
kept between messages, so a client may use either at any time; only who can be asked (`ClientLink`)
is remembered by what it said of itself when it opened the connection.
"""

import os
import sys
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any, Protocol, cast

import msgspec

from interlock import __version__
from interlock.app.callers.caller import (
    Caller,
    called_conversation,
    known_workspace,
    local_caller,
    recorded_session,
)
from interlock.app.callers.client_names import client_name, name_in, record_client
from interlock.app.callers.connection import Connection
from interlock.app.context import App
from interlock.app.failures import LeaseLost, SettingsBroken, StoreFailure
from interlock.app.hosts.project_use import FIXED_LISTING_CLIENTS, ProjectUse
from interlock.app.hosts.typed_forms import as_typed_in
from interlock.core import ids
from interlock.core.answers import answer_json
from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.visible_text import make_visible
from interlock.mcp import results
from interlock.mcp.argument_folding import ParsedArguments, parse_arguments
from interlock.mcp.arguments import token_in, workspace_of
from interlock.mcp.instructions import instructions_for
from interlock.mcp.listing import Listing
from interlock.mcp.results import SuggestedCall, ToolResult
from interlock.mcp.tool import Tool
from interlock.mcp.unknown_caller import needs_workspace, refuse_without_workspace

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_SERVER_INFO = {"name": "interlock", "title": "Interlock", "version": __version__}
# The listing depends on the project, and on what is used there at the moment.
_CACHE_HINTS = {"ttlMs": 0, "cacheScope": "private"}

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
_YES_OR_NO: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Approve this?"},
        "reason": {"type": "string", "title": "What the agent should know"},
    },
    "required": ["approve"],
}
_HANDSHAKE_METHODS = ("initialize", "ping")
IDLE_SECONDS = 60.0
BATCH_MAX = 50  # replies are larger than requests, and every other client waits meanwhile

_Result = Mapping[str, Any]


class RpcError(Exception):
    """The request itself is wrong, so there is no tool result to put the error in."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Reply(msgspec.Struct, frozen=True):
    content: bytes
    error: int | None = None
    """The JSON-RPC error code, if the request itself was wrong."""


class _Request(msgspec.Struct):
    method: str
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    params: dict[str, Any] | None = None


class ClientLink(Protocol):
    """A way to notify the client, or to ask it during one of its own requests."""

    def notify(self, method: str, params: dict[str, Any]) -> None: ...

    def ask(
        self, method: str, params: dict[str, Any], *, during: int | str
    ) -> dict[str, Any] | None: ...


class McpProtocol:
    """`connection`: of a client that did not start this process, so that our directory, our
    environment and our ancestors say nothing of it.
    """

    def __init__(
        self,
        app: App,
        tools: tuple[Tool[Any], ...],
        *,
        connection: Connection | None = None,
        link: ClientLink | None = None,
        look: Callable[[Set[SessionId]], ProjectUse] | None = None,
        listed: Set[str] = frozenset(),
    ) -> None:
        """`look` returns what the project uses and so which tools are listed; without it, all.

        It is given the sessions of this connection. `listed`: the tools that the client was shown.
        """
        self._app, self._link = app, link
        self._capabilities = {"tools": {"listChanged": True} if link else {}}
        self._asking_client = ""
        """The name of the client, if it can ask its user."""
        self._request_id: int | str = ""
        self._has_directory = connection is None
        self._connection = connection or Connection(str(os.getppid()))
        look_here = partial(look, self._connection.own_sessions) if look else None
        self.listing = Listing(tools, look_here, link, listed)
        self._served_session: SessionId | None = None
        """The session of the latest call, for the heartbeats."""
        self._tools = {tool.name: tool for tool in tools}
        self._replaced = {name: tool for tool in tools for name in tool.former_names}
        self._methods: Mapping[str, Callable[[dict[str, Any]], _Result]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "tools/list": self._tools_list,
            "tools/call": self._tools_call,
        }

    def answer(self, line: bytes) -> bytes | None:
        """The reply to one line, or None where none is due (notifications, stray replies)."""
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return NOT_JSON_REPLY.content
        reply = self.reply_to(message)
        return reply.content if reply else None

    def reply_to(self, message: object) -> Reply | None:
        """The reply to a decoded message or batch, or None where none is due."""
        if isinstance(message, list) and message:  # a batch: in the protocol until 2025-03-26
            batch = cast("list[Any]", message)
            if len(batch) > BATCH_MAX:
                problem = f"More than {BATCH_MAX} messages in one"
                return error_reply(None, RpcError(INVALID_REQUEST, problem))
            replies = [reply.content for item in batch if (reply := self._reply(item)) is not None]
            return Reply(b"[" + b",".join(replies) + b"]") if replies else None
        return self._reply(cast("object", message))

    def _reply(self, message: object) -> Reply | None:
        try:
            request = msgspec.convert(message, _Request)
        except msgspec.ValidationError as error:
            if isinstance(message, dict) and "method" not in message:
                return None  # a reply to a request that we never made
            return error_reply(None, RpcError(INVALID_REQUEST, f"Not a request: {error}"))
        if isinstance(request.id, msgspec.UnsetType):
            return None  # a notification; `notifications/cancelled` comes too late to matter
        self._request_id = request.id
        if request.method == "subscriptions/listen" and self._link:
            self.listing.subscribe(request.id, request.params or {})
            return None  # the reply would end the subscription
        try:
            result = self._carry_out(request)
        except RpcError as error:
            return error_reply(request.id, error)
        return Reply(answer_json({"jsonrpc": "2.0", "id": request.id, "result": result}))

    def _carry_out(self, request: _Request) -> _Result:
        params = request.params or {}
        is_modern = _modern_version(params) is not None
        method = self._methods.get(request.method)
        if method is None or (is_modern and request.method in _HANDSHAKE_METHODS):
            raise RpcError(METHOD_NOT_FOUND, f"No method `{request.method}`")
        return _with_era_fields(request, method(params))

    def _initialize(self, params: dict[str, Any]) -> _Result:
        requested = params.get("protocolVersion")
        self._asking_client = _asking_client(params)
        self.listing.is_final = client_name(params) in FIXED_LISTING_CLIENTS
        self._connection.name = name_in(params.get("clientInfo"))
        return {
            "protocolVersion": requested
            if requested in HANDSHAKE_VERSIONS
            else HANDSHAKE_VERSIONS[-1],
            "capabilities": self._capabilities,
            "serverInfo": _SERVER_INFO,
            "instructions": instructions_for(self.listing.tools),
        }

    def _discover(self, _: dict[str, Any]) -> _Result:
        return {
            "supportedVersions": MODERN_VERSIONS,
            "capabilities": self._capabilities,
            "instructions": instructions_for(self.listing.tools),
            **_CACHE_HINTS,
        }

    def _tools_list(self, params: dict[str, Any]) -> _Result:
        tools = [tool.listing for tool in self.listing.show()]
        return {"tools": tools, **(_CACHE_HINTS if _modern_version(params) else {})}

    def _tools_call(self, params: dict[str, Any]) -> _Result:
        if not isinstance(name := params.get("name"), str):
            raise RpcError(INVALID_PARAMS, "`params.name` says which tool to call")
        caller = self._caller(_arguments_or_empty(params.get("_meta")))
        result, warnings = self._call_tool(name, params.get("arguments"), caller)
        self.listing.announce_new_tools()
        answer = _call_result(result, warnings, self._news(caller, params))
        return as_typed_in(self._connection.name, answer)

    def _caller(self, metadata: Mapping[str, Any]) -> Caller:
        """Return the caller, before the arguments of the call."""
        here = workspace_of(None)
        if self._has_directory:
            caller = local_caller(self._app, here, surface="mcp", actor="agent")
            caller = msgspec.structs.replace(caller, connection=self._connection)
        else:
            connection = self._connection
            caller = Caller(surface="mcp", actor="agent", workspace=here, connection=connection)
        return called_conversation(self._app, caller, metadata)

    def beat(self) -> float:
        """Nothing has come for a while: the agent is still there. Returns how long to wait now."""
        if self._served_session is None:
            return IDLE_SECONDS
        from interlock.app.coordination.attention import beat  # noqa: PLC0415 (10 ms, not at the start)

        try:
            self.listing.announce_new_tools()
            return beat(self._app, self._served_session)
        except Exception:  # noqa: BLE001 (no agent loses its server by it)
            return IDLE_SECONDS

    def _news(self, caller: Caller, params: Mapping[str, Any]) -> tuple[str, ...]:
        """The news that the caller has to be told besides, whatever it has called."""
        from interlock.app.coordination.attention import attend_to  # noqa: PLC0415 (10 ms, not at the start)

        try:
            session = caller.connection.latest or recorded_session(self._app, caller)
            self._served_session = session
            record_client(self._app, self._connection, session, params)
            return attend_to(self._app, session) if session else ()
        except Exception as error:  # noqa: BLE001 (the answer to the call must not be lost by it)
            fault = make_visible(f"{type(error).__name__}: {error}")
            sys.stderr.write(f"news were not told: {fault}\n")
            return ()

    def _call_tool(
        self, name: str, sent: object, caller: Caller
    ) -> tuple[ToolResult, tuple[str, ...]]:
        tool = self._tools.get(name)
        if tool is None and (tool := self._replaced.get(name)):
            sent = {**tool.former_names[name], **_arguments_or_empty(sent)}
        if tool is None:
            return _unknown_tool(name, self._tools), ()
        try:
            parsed = parse_arguments(tool, sent)
            if not isinstance(parsed, ParsedArguments):
                return parsed, ()
            arguments = parsed.arguments
            if not self._has_directory and needs_workspace(arguments):
                root = known_workspace(self._app, caller)
                if root is None:
                    return refuse_without_workspace(tool, arguments), ()
                arguments = msgspec.structs.replace(arguments, workspace_path=str(root))
            caller = _with_arguments(caller, arguments)
            return self._ask_user(tool.call(self._app, caller, arguments)), parsed.warnings
        except StoreFailure as failure:
            return results.store_failure_result(
                failure, SuggestedCall(name, _arguments_or_empty(sent))
            ), ()
        except SettingsBroken as broken:
            return results.settings_broken_result(broken), ()
        except LeaseLost:
            raise  # a driver has to end, and no model is told
        except Exception as error:  # noqa: BLE001 (the edge: an agent gets an answer, not a hang)
            import traceback  # noqa: PLC0415 (a server that works never needs it)

            failure = ids.failure_id(self._app.entropy(ids.FAILURE_BYTES))
            sys.stderr.write(f"{failure} in {name}\n{make_visible(traceback.format_exc())}")
            return results.internal_error_result(error, failure), ()

    def _ask_user(self, result: ToolResult) -> ToolResult:
        """Have the client put a question to its user; the result stays if there is no answer."""
        if result.question is None or self._link is None or not self._asking_client:
            return result
        params = {"message": result.question.message, "requestedSchema": _YES_OR_NO}
        match self._link.ask("elicitation/create", params, during=self._request_id):
            case {"action": "accept", "content": {"approve": bool(is_granted), **rest}}:
                reason = str(rest.get("reason") or "")
                return result.question.record(is_granted, reason, self._asking_client)
            case _:
                return result


def _with_arguments(caller: Caller, arguments: msgspec.Struct) -> Caller:
    """Return the caller with the session that the arguments of the call name."""
    token: str | None = getattr(arguments, "continue_token", None)
    return msgspec.structs.replace(
        caller,
        workspace=workspace_of(getattr(arguments, "workspace_path", None)),
        session=getattr(arguments, "session_id", None),
        token=token_in(token) if token else None,
    )


def store_failure_reply(message: object, cause: StoreFailure | SettingsBroken) -> Reply:
    """The reply to a tool call whose writes could not be committed."""
    request = msgspec.convert(message, _Request)
    params = request.params or {}
    call = SuggestedCall(str(params.get("name")), _arguments_or_empty(params.get("arguments")))
    problem = (
        results.store_failure_result(cause, call)
        if isinstance(cause, StoreFailure)
        else results.settings_broken_result(cause)
    )
    result = _with_era_fields(request, _call_result(problem, ()))
    return Reply(msgspec.json.encode({"jsonrpc": "2.0", "id": request.id, "result": result}))


def _with_era_fields(request: _Request, result: _Result) -> _Result:
    is_modern = _modern_version(request.params or {}) or request.method == "server/discover"
    if not is_modern:
        return result
    return {**result, "resultType": "complete", "_meta": {_SERVER_KEY: _SERVER_INFO}}


def _call_result(
    result: ToolResult, warnings: tuple[str, ...], news: tuple[str, ...] = ()
) -> _Result:
    structured = msgspec.to_builtins(result.structured)
    text = result.text
    if warnings and not result.is_error:
        structured["warnings"] = [*structured.get("warnings", ()), *warnings]
        text += "".join(f"\nwarning: {warning}" for warning in warnings)
    content = [{"type": "text", "text": text}]
    if news:
        # Beside the answer, which is the same when it is asked for again.
        structured["news"] = news
        content.append({"type": "text", "text": "\n".join(("News, told once:", *news))})
    return {
        "content": content,
        "structuredContent": structured,
        "isError": result.is_error,
    }


def _unknown_tool(name: str, tools: Mapping[str, Tool[Any]]) -> ToolResult:
    import difflib  # noqa: PLC0415 (1 ms at the start of a server)

    similar = tuple(difflib.get_close_matches(name, tools, n=1))
    explanation = Explanation(
        "unknown_tool", f"No tool `{name}`", "Call one of these instead.", similar
    )
    suggested = tools[similar[0] if similar else next(iter(tools))]
    return results.refusal_result(explanation, suggested.example_call(), allowed=tuple(tools))


def _arguments_or_empty(sent: object) -> dict[str, Any]:
    return cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}


def _asking_client(params: Mapping[str, Any]) -> str:
    """The name of a client that can put a form to its user; empty if it cannot."""
    kinds = _arguments_or_empty(params.get("capabilities")).get("elicitation")
    # Forms were once the only kind, and an empty object stands for them.
    can_ask = kinds == {} or "form" in _arguments_or_empty(kinds)
    return (client_name(params) or "the client") if can_ask else ""


def _modern_version(params: Mapping[str, Any]) -> str | None:
    meta = params.get("_meta")
    version = cast("dict[str, Any]", meta).get(VERSION_KEY) if isinstance(meta, dict) else None
    if version is not None and version not in MODERN_VERSIONS:
        supported = {"supported": MODERN_VERSIONS, "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, f"Unsupported protocol version {version}", supported)
    return version


def error_reply(request_id: int | str | None, error: RpcError) -> Reply:
    error_object: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        error_object["data"] = error.data
    content = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error_object})
    return Reply(content, error.code)


NOT_JSON_REPLY = error_reply(None, RpcError(PARSE_ERROR, "Not JSON"))
