"""Claude Code without a person. Tried with 2.1.325; older ones refuse the command line.

It runs in its restricted mode: of settings it takes only those on its command line, and its file
tools stay in the worktree. So nothing of the user's is changed, no hook, server or skill that the
model writes into the worktree is ever run, and the user's login works all the same. What may run
commands is its Bash alone, which our shell confines.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from interlock.agents.clients.headless import (
    LINE_BYTES_MAX,
    ClientCommand,
    ClientEnded,
    ClientEvent,
    ClientReady,
    ClientRetry,
    ClientStart,
    ClientToolResults,
    ClientTurn,
    EndReason,
)
from interlock.agents.hosts.claude_code import HOST
from interlock.agents.hosts.claude_code_shell import (
    BRANCH_VARIABLE,
    PLAIN_VARIABLES,
    SHELL_VARIABLE,
    WORKTREE_VARIABLE,
)
from interlock.agents.hosts.host import SERVER, JsonPart
from interlock.agents.hosts.mcp_config import SECRET_VARIABLE
from interlock.core.unattended.conversation import (
    AnswerPart,
    ModelMessage,
    SpokenPart,
    ThinkingPart,
    ToolMessage,
    ToolReply,
    ToolRequest,
    Usage,
)

TOOLS = ("Bash", "Read", "Edit", "Write", "Glob", "Grep")
"""The most that it gets. Nothing works in the background, and there is neither agent nor web."""
TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
LOGIN_VARIABLES = ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN")
LOGIN_PREFIX = "ANTHROPIC_"
NETWORK_VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
STORE_VARIABLE = "INTERLOCK_STORE"
"""Our hooks find the store by it."""
_SETTINGS = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # a command ends with its call
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",  # it would run git outside of the sandbox
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    **{f"GIT_{role}_NAME": "Interlock" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "interlock@localhost" for role in ("AUTHOR", "COMMITTER")},
}
"""As the driver's own tools have it, too: commands cannot read who the user is."""


class ClaudeCodeHeadless:
    """The output of one client process, with the state of what was read so far.

    `spent_micros` is the last cost reported by a resumed conversation.
    """

    def __init__(self, program: str, *, spent_micros: int = 0) -> None:
        self._program = program
        self._output = ClaudeCodeOutput(spent_micros)

    def command(self, start: ClientStart, environment: Mapping[str, str]) -> ClientCommand:
        """Return the command line and the variables for it. `environment` is the user's.

        Raises:
            OSError: the file of the bearer cannot be read.
        """
        settings, servers = _entries(start)
        words = [
            *(self._program, "-p", "--input-format=stream-json", "--output-format=stream-json"),
            # Without the pieces of a message nothing tells its end, nor the tokens of its output.
            *("--verbose", "--include-partial-messages"),
            *("--restricted", "--strict-mcp-config", "--permission-mode=dontAsk"),
            f"--tools={','.join(start.tools)}",
            f"--allowedTools={','.join((*start.tools, f'mcp__{SERVER}'))}",
            f"--settings={_json(settings)}",
            f"--mcp-config={_json(servers)}",
            f"--max-turns={start.turns_max}",
            f"--{'resume' if start.is_resumed else 'session-id'}={start.conversation}",
        ]
        if start.model:
            words.append(f"--model={start.model}")
        if start.rules:
            words.append(f"--append-system-prompt={start.rules}")
        if start.cost_micros_max is not None:
            words.append(f"--max-budget-usd={start.cost_micros_max / 1_000_000:.6f}")
        return ClientCommand(tuple(words), _variables(start, environment))

    def message_line(self, text: str) -> bytes:
        """Return the line for stdin that sends the model a message, now or while it works."""
        message = {"role": "user", "content": text}
        return _json({"type": "user", "message": message}).encode() + b"\n"

    def interrupt_line(self) -> bytes:
        """Return the line for stdin that stops the client; it then reports its cost."""
        request = {"subtype": "interrupt"}
        line = {"type": "control_request", "request_id": "interrupt", "request": request}
        return _json(line).encode() + b"\n"

    def read_line(self, line: bytes) -> tuple[ClientEvent, ...]:
        return self._output.read_line(line)


def _entries(start: ClientStart) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings and the server, as an install would write them."""
    shell = {SHELL_VARIABLE: start.shell} if start.shell else {}
    settings, servers = (
        part.addition
        for part in HOST.parts("user", "", str(start.home), shell)
        if isinstance(part, JsonPart)
    )
    if start.is_gated:
        settings["hooks"] = {name: settings["hooks"][name] for name in TOOL_EVENTS}
    if start.server:
        _, entry = HOST.manual_http_entry(f"{start.server.url}/mcp", SECRET_VARIABLE, "")
        servers = cast("dict[str, Any]", entry)
        servers["mcpServers"][SERVER]["headers"] |= start.server.headers
    return settings, servers


def _variables(start: ClientStart, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which there is nothing to sign in with but to the model and to us."""
    names = {*PLAIN_VARIABLES, *LOGIN_VARIABLES, *NETWORK_VARIABLES, STORE_VARIABLE}
    is_kept = {name: name in names or name.startswith(LOGIN_PREFIX) for name in environment}
    own = {"INTERLOCK_HOME": str(start.home), WORKTREE_VARIABLE: str(start.worktree)}
    if start.branch is not None:
        own[BRANCH_VARIABLE] = start.branch
    if start.shell:
        own[SHELL_VARIABLE] = start.shell
    if start.server:
        own[SECRET_VARIABLE] = start.server.bearer_file.read_text(encoding="utf-8").strip()
    user = {name: value for name, value in environment.items() if is_kept[name]}
    return {**user, **_SETTINGS, **own}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


DELTA_MARK = b'"content_block_delta"'
"""In the first bytes of most lines: a fragment of a part that also arrives complete."""
_MARK_BYTES = 200
_REASONS: dict[str, EndReason] = {"error_max_turns": "turns", "error_max_budget_usd": "money"}
_MICROS, _DOLLARS_MAX = 1_000_000, 1_000_000


class ClaudeCodeOutput:
    """Assembles the lines of its output into turns.

    A message of the model comes as events of its stream: a beginning, a line for each whole part,
    the final count of its tokens, an end. All lines of a message carry its id and a usage, which
    would be counted several times if it were added up; and tools may have answered before the
    message has ended, so results are held back until it has. What the client says by itself (an
    error of the provider's, say) is a line without a stream around it.
    """

    def __init__(self, spent_micros: int = 0) -> None:
        self._spent_micros = spent_micros
        self._total = Usage()
        self._open: str | None = None
        """The id of the message that is streamed."""
        self._parts: list[AnswerPart] = []
        self._counts: dict[str, Any] = {}
        """Its usage, in the client's words."""
        self._last = ""
        """The id of the last message whose usage was counted."""
        self._held: list[ClientToolResults] = []
        self._names: dict[str, str] = {}
        """The tools of the calls that have no result yet."""

    def read_line(self, line: bytes) -> tuple[ClientEvent, ...]:
        """Return the events of a line; none if it is unknown or not JSON."""
        if len(line) > LINE_BYTES_MAX or DELTA_MARK in line[:_MARK_BYTES]:
            return ()
        try:
            value = _object(msgspec.json.decode(line))
        except (msgspec.DecodeError, RecursionError):
            return ()
        if value.get("parent_tool_use_id"):
            return ()  # of an agent of its own; what that costs is in the end's cost
        match value.get("type"):
            case "stream_event":
                return self._read_stream(_object(value.get("event")))
            case "assistant":
                return self._read_message(_object(value.get("message")))
            case "user":
                return self._read_results(_object(value.get("message")))
            case "system":
                return _read_notice(value)
            case "result":
                return (*self._close_message(), self._read_end(value))
            case _:
                return ()

    def _read_stream(self, event: dict[str, Any]) -> tuple[ClientEvent, ...]:
        match event.get("type"):
            case "message_start":
                before = self._close_message()
                message = _object(event.get("message"))
                self._open = _text(message.get("id"))
                self._counts = _object(message.get("usage"))
                return before
            case "message_delta":
                self._counts = {**self._counts, **_object(event.get("usage"))}
            case "message_stop":
                return self._close_message()
            case _:
                pass
        return ()

    def _close_message(self) -> tuple[ClientEvent, ...]:
        """End the streamed message, if any. A message without parts was interrupted."""
        turns: tuple[ClientEvent, ...] = ()
        if self._open is not None:
            turns = self._make_turn(self._open, self._parts, self._counts)
        held, self._held = self._held, []
        self._open, self._parts = None, []
        return (*turns, *held)

    def _make_turn(
        self, message: str, parts: list[AnswerPart], counts: dict[str, Any]
    ) -> tuple[ClientEvent, ...]:
        usage = _usage(counts) if message != self._last else Usage()
        self._total += usage
        if not parts:
            return ()
        self._last = message
        cost = None if usage.tokens else 0
        usage = msgspec.structs.replace(usage, cost_micros=cost)
        return (ClientTurn(ModelMessage(tuple(parts)), usage),)

    def _read_message(self, message: dict[str, Any]) -> tuple[ClientEvent, ...]:
        parts = _answer_parts(message.get("content"))
        self._names |= {part.id: part.name for part in parts if isinstance(part, ToolRequest)}
        name = _text(message.get("id"))
        if name == self._open:
            self._parts += parts
            return ()
        return self._make_turn(name, parts, _object(message.get("usage")))

    def _read_results(self, message: dict[str, Any]) -> tuple[ClientEvent, ...]:
        results = tuple(
            ToolReply(
                call := _text(block.get("tool_use_id")),
                self._names.pop(call, ""),
                _content_text(block.get("content")),
                block.get("is_error") is True,
            )
            for block in _objects(message.get("content"))
            if block.get("type") == "tool_result"
        )
        if not results:
            return ()
        event = ClientToolResults(ToolMessage(results))
        if self._open is None:
            return (event,)
        self._held.append(event)
        return ()

    def _read_end(self, value: dict[str, Any]) -> ClientEnded:
        spent_micros, cost = self._spent_micros, None
        dollars: Any = value.get("total_cost_usd")
        if isinstance(dollars, int | float) and 0 <= dollars <= _DOLLARS_MAX:
            spent_micros = round(dollars * _MICROS)
            cost = max(spent_micros - self._spent_micros, 0)
        subtype, is_error = _text(value.get("subtype")), value.get("is_error") is not False
        reason: EndReason = _REASONS.get(subtype, "failed") if is_error else "done"
        if _text(value.get("terminal_reason")).startswith("aborted"):
            reason = "interrupted"
        errors = [error for error in _list(value.get("errors")) if isinstance(error, str)]
        if reason == "interrupted":
            errors = []  # remarks for those who make the client
        return ClientEnded(
            reason,
            _text(value.get("result")) or "\n".join(errors),
            msgspec.structs.replace(self._total, cost_micros=cost),
            spent_micros,
            _count(value.get("api_error_status")),
        )


def _read_notice(value: dict[str, Any]) -> tuple[ClientEvent, ...]:
    match value.get("subtype"):
        case "init":
            servers = _objects(value.get("mcp_servers"))
            own = [server.get("status") for server in servers if server.get("name") == SERVER]
            return (ClientReady(own == ["connected"]),)
        case "api_retry":
            status, wait_ms = value.get("error_status"), value.get("retry_delay_ms")
            return (ClientRetry(_count(status), _count(wait_ms)),)
        case _:
            return ()


def _answer_parts(content: Any) -> list[AnswerPart]:
    parts: list[AnswerPart] = []
    for block in _objects(content):
        match block.get("type"):
            case "text" if text := _text(block.get("text")):
                parts.append(SpokenPart(text))
            case "thinking":
                signature = _text(block.get("signature"))
                parts.append(ThinkingPart(_text(block.get("thinking")), signature))
            case "tool_use":
                arguments = msgspec.json.encode(block.get("input")).decode()
                name = _text(block.get("name"))
                parts.append(ToolRequest(_text(block.get("id")), name, arguments))
            case _:
                pass
    return parts


def _content_text(content: Any) -> str:
    """Return the text of a result, which is a string or a list of blocks, some of them images."""
    if isinstance(content, str):
        return content
    blocks = _objects(content)
    return "\n".join(_text(x.get("text")) or f"[{_text(x.get('type'))}]" for x in blocks)


def _usage(counts: dict[str, Any]) -> Usage:
    read, write = (
        _count(counts.get(f"cache_{which}_input_tokens")) for which in ("read", "creation")
    )
    fresh = _count(counts.get("input_tokens"))
    return Usage(fresh + read + write, _count(counts.get("output_tokens")), read, write)


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [_object(each) for each in _list(value)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
