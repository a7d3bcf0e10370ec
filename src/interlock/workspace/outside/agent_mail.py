"""A client of an MCP Agent Mail server: it tells it who works where, and reads its messages.

Everything of one exchange has one deadline, from the look-up of the host's name to the last byte of
the last answer: the server may hang wherever it likes. Whatever the server does, the answer is a
value with warnings; nothing here raises because of it. Nothing is sent to other agents: the server
refuses strangers and broadcasts, so an agent is seen by its registration and its reservations.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.core.coordination.iso_times import iso_milliseconds, iso_text
from interlock.workspace.outside.deadline_http import DeadlineHttp, ServerDown
from interlock.workspace.outside.quotation import quote

RESERVATION_SECONDS = 3600
MESSAGES_MAX = 50
_TASK_CHARACTERS_MAX = 2000


class MailServer(msgspec.Struct, frozen=True):
    url: str
    """With the path of its MCP endpoint, as `http://127.0.0.1:8765/api/`."""
    token: str = ""
    timeout_ms: int = 3000
    """For all calls of one exchange together."""


class OutsideMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message of the server, as somebody has written it: not to be obeyed, nor shown raw."""

    id: str
    sender: str
    subject: str
    body: str
    at_ms: int
    thread: str = ""


class MailExchange(msgspec.Struct, frozen=True):
    is_used: bool
    """False if the server could not be reached, or did not do all of it in time."""
    messages: tuple[OutsideMessage, ...] = ()
    reservation_conflicts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    registration_token: str = ""
    """Proves at the next exchange that the name is ours; without it the server refuses it."""
    agent_name: str = ""
    """The name that the server has given the agent: some versions change it."""


class _ToolRefused(Exception):
    """The server says no to one call. The others may work."""


class _ToolResult(msgspec.Struct, frozen=True, rename="camel"):
    is_error: bool = False
    structured_content: Any = None
    content: tuple[dict[str, Any], ...] = ()


class _ToolAnswer(msgspec.Struct, frozen=True):
    error: dict[str, Any] | None = None
    result: _ToolResult = _ToolResult(is_error=True)


class _InboxMessage(msgspec.Struct, frozen=True):
    id: int | str
    subject: str = ""
    sender: str = msgspec.field(name="from", default="")
    created_ts: str | None = None
    body_md: str | None = None
    thread_id: str | None = None


class _PathHolder(msgspec.Struct, frozen=True):
    agent: str
    path_pattern: str


class _ReportedConflict(msgspec.Struct, frozen=True):
    path: str
    holders: tuple[_PathHolder, ...]


class _Grants(msgspec.Struct, frozen=True):
    conflicts: tuple[_ReportedConflict, ...] = ()


class _Registration(msgspec.Struct, frozen=True):
    name: str
    registration_token: str | None = None


def exchange(
    server: MailServer,
    *,
    project: str,
    agent: str,
    program: str,
    task: str,
    reserved: Sequence[str],
    released: Sequence[str],
    since_ms: int,
    registration_token: str = "",
) -> MailExchange:
    """Register the agent anew, read its inbox, and publish what it has reserved and released.

    The inbox comes before the reservations, which the server writes to its archive and which take
    most of the time.
    """
    calls = _MailCalls(server, project, registration_token)
    try:
        is_named = calls.register(agent, program, task)
        calls.fetch_inbox(since_ms)
        if is_named:  # else the name may be somebody else's, and so would be the reservations
            calls.reserve(reserved)
            calls.release(released)
    except ServerDown as failure:
        calls.warnings.append(f"The Agent Mail server {quote(str(failure))}.")
        return calls.outcome(is_used=False)
    finally:
        calls.http.close()
    return calls.outcome(is_used=True)


class _MailCalls:
    """The calls of one exchange, and what came of them so far."""

    def __init__(self, server: MailServer, project: str, token: str) -> None:
        self.http = DeadlineHttp(server.url, server.token, server.timeout_ms / 1000)
        self.project = project
        self.agent = ""
        self.token = token
        self.messages: tuple[OutsideMessage, ...] = ()
        self.conflicts: tuple[str, ...] = ()
        self.warnings: list[str] = []

    def outcome(self, *, is_used: bool) -> MailExchange:
        return MailExchange(
            is_used, self.messages, self.conflicts, tuple(self.warnings), self.token, self.agent
        )

    def register(self, agent: str, program: str, task: str) -> bool:
        """Register the agent, or refresh it. False if the server does not let it have its name."""
        self.agent = agent
        self._call("ensure_project", Any, human_key=self.project)
        proof = {"registration_token": self.token} if self.token else {}
        registration = self._call(
            "register_agent",
            _Registration,
            project_key=self.project,
            program=program,
            model="unknown",
            name=agent,
            task_description=task[:_TASK_CHARACTERS_MAX],
            **proof,
        )
        if registration is None:
            return False
        self.agent = registration.name
        self.token = registration.registration_token or self.token
        return True

    def fetch_inbox(self, since_ms: int) -> None:
        inbox = self._call_as_agent(
            "fetch_inbox",
            tuple[_InboxMessage, ...],
            limit=MESSAGES_MAX,
            include_bodies=True,
            since_ts=iso_text(since_ms).replace("Z", "+00:00"),
        )
        self.messages = tuple(map(_outside_message, inbox or ()))

    def reserve(self, patterns: Sequence[str]) -> None:
        if not patterns:
            return
        grants = self._call_as_agent(
            "file_reservation_paths",
            _Grants,
            paths=list(patterns),
            ttl_seconds=RESERVATION_SECONDS,
            exclusive=True,
        )
        sentences = (
            f"`{quote(conflict.path)}` overlaps with `{quote(holder.path_pattern)}`,"
            f" which {quote(holder.agent)} holds at the Agent Mail server"
            for conflict in (grants.conflicts if grants else ())
            for holder in conflict.holders
        )
        # Some versions grant the same anew each time, and then name the holder as often.
        self.conflicts = tuple(dict.fromkeys(sentences))

    def release(self, patterns: Sequence[str]) -> None:
        if patterns:
            self._call_as_agent("release_file_reservations", Any, paths=list(patterns))

    def _call_as_agent(self, tool: str, shape: Any, **arguments: Any) -> Any:
        return self._call(tool, shape, project_key=self.project, agent_name=self.agent, **arguments)

    def _call(self, tool: str, shape: Any, **arguments: Any) -> Any:
        """Return the result of a tool in its shape; None, and a warning, if there is none.

        Raises:
            ServerDown: nothing more can be expected of the server now.
        """
        answer = self.http.call("tools/call", {"name": tool, "arguments": arguments})
        try:
            return msgspec.convert(_tool_result(answer), shape)
        except _ToolRefused as refusal:
            reason = quote(str(refusal))
        except (ValueError, RecursionError):
            reason = "its answer has a form that is not known here"
        self.warnings.append(f"The Agent Mail server did not do `{tool}`: {reason}")
        return None


def _tool_result(answer: Any) -> Any:
    try:
        read = msgspec.convert(answer, _ToolAnswer)
    except ValueError as error:
        raise ServerDown("answered with something else than JSON-RPC") from error
    text = str(next((part.get("text") for part in read.result.content), ""))
    if read.error or read.result.is_error:
        raise _ToolRefused(str(read.error.get("message")) if read.error else text)
    match read.result.structured_content:
        case None:
            return msgspec.json.decode(text or "null")
        case {"result": wrapped, **others} if not others:  # a list, which must be in an object
            return wrapped
        case content:
            return content


def _outside_message(message: _InboxMessage) -> OutsideMessage:
    try:
        at_ms = iso_milliseconds(message.created_ts)
    except ValueError:
        at_ms = 0
    return OutsideMessage(
        str(message.id),
        message.sender,
        message.subject,
        message.body_md or "",
        at_ms,
        message.thread_id or "",
    )
