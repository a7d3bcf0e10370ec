"""MCP over stdio: a line in, a line out, until the client closes its end."""

import os
import sys
from collections import deque
from collections.abc import Callable, Set
from typing import Any, BinaryIO, cast

import msgspec

from interlock.app.clock import Clock
from interlock.app.context import App
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.hosts.project_use import ProjectUse
from interlock.core.ids import SessionId
from interlock.mcp.instant import INTERNAL_ERROR, Opening
from interlock.mcp.protocol import McpProtocol, RpcError, error_reply, store_failure_reply
from interlock.mcp.tools import Tools

LINE_BYTES_MAX = 16 * 1024 * 1024  # far above any real call; a bound on what one call may cost
CHUNK_BYTES = 64 * 1024
FIRST_BEAT_SECONDS = 1.0
ANSWER_MS_MAX = 10 * 60_000  # a client that waits less cancels its call, which ends this too
_TOO_LONG = b"(a line of more than 16 MiB)\n"  # is answered as what it is: not JSON


class StdioLink:
    """The lines from and to the client, and requests of our own to it."""

    def __init__(self, requests: int, replies: BinaryIO, clock: Clock, unread: bytes = b"") -> None:
        self._requests, self._replies, self._clock = requests, replies, clock
        self._buffer = bytearray(unread)
        self._is_too_long = False
        self._kept: deque[bytes] = deque()
        """Lines that came while we waited for an answer."""
        self._asked_count = 0

    def next_line(self, beat: Callable[[], float]) -> bytes:
        """The next line of the client; empty at the end of input.

        While none comes, `beat` is called again and again, after the seconds that it returned.
        """
        if self._kept:
            return self._kept.popleft()
        seconds = FIRST_BEAT_SECONDS
        while (line := self._read_line(seconds)) is None:
            seconds = beat()
        return line

    def send(self, content: bytes) -> None:
        self._replies.write(content + b"\n")
        self._replies.flush()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def ask(
        self, method: str, params: dict[str, Any], *, during: int | str
    ) -> dict[str, Any] | None:
        """Send a request and return its result; None if there is none, or none in time.

        Whatever else comes meanwhile is answered later, but for a ping. If the client cancels the
        request `during` which we ask, nobody waits for the answer any more.
        """
        self._asked_count += 1
        name = f"interlock-{self._asked_count}"
        request = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
        self.send(msgspec.json.encode(request))
        deadline_ms = self._clock.now_ms() + ANSWER_MS_MAX
        while (left_ms := deadline_ms - self._clock.now_ms()) > 0:
            line = self._read_line(left_ms / 1_000)
            if not line:
                break
            match _decode(line):
                case {"id": str(answered), **rest} if answered == name and "method" not in rest:
                    result = rest.get("result")
                    return cast("dict[str, Any]", result) if isinstance(result, dict) else None
                case {"method": "notifications/cancelled", "params": {"requestId": cancelled}}:
                    if cancelled == during:
                        break
                case {"method": "ping", "id": ping}:
                    self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": ping, "result": {}}))
                case _:
                    self._kept.append(line)
        self.notify("notifications/cancelled", {"requestId": name})
        return None

    def _read_line(self, seconds: float | None) -> bytes | None:
        """The next line from the pipe, empty at its end; None if none came in this time."""
        scanned = 0
        while (end := self._buffer.find(b"\n", scanned)) < 0:
            if len(self._buffer) > LINE_BYTES_MAX:
                self._buffer.clear()
                self._is_too_long = True
            scanned = len(self._buffer)
            if seconds is not None:
                import select  # noqa: PLC0415 (only who waits for an answer needs it)

                if not select.select([self._requests], [], [], seconds)[0]:
                    return None
            chunk = os.read(self._requests, CHUNK_BYTES)
            if not chunk:
                end = len(self._buffer) - 1
                break
            self._buffer += chunk
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        is_too_long, self._is_too_long = self._is_too_long, False
        return _TOO_LONG if is_too_long or len(line) > LINE_BYTES_MAX else line


def serve(
    app: App,
    tools: Tools,
    opening: Opening | None = None,
    look: Callable[[Set[SessionId]], ProjectUse] | None = None,
) -> None:
    """Answer until end of input. stdout carries the protocol and nothing else.

    `opening`: the requests and answers so far, perhaps with another listing.
    """
    opening = opening or Opening()
    link = StdioLink(sys.stdin.fileno(), opening.replies, app.clock, opening.unread)
    protocol = McpProtocol(app, tools, link=link, look=look, listed=opening.listed_tools)
    try:
        if opening.handshake:
            protocol.answer(opening.handshake)  # already answered; it names the client
            protocol.listing.announce_new_tools()
        while line := link.next_line(protocol.beat):
            reply = None if line.isspace() else protocol.answer(line)
            if reply is not None:
                link.send(reply)
    except BrokenPipeError:
        # The client is gone. The work whose reply it missed is recorded all the same.
        os._exit(0)  # an ordinary exit would try to flush once more, and complain


def failure_reply(line: bytes, failure: StoreFailure | SettingsBroken) -> bytes:
    """The reply to a request that cannot be carried out until the failure is repaired."""
    match message := _decode(line):
        case {"method": "tools/call", "id": int() | str(), "params": {}}:
            return store_failure_reply(message, failure).content
        case {"id": int() | str() as request_id}:
            pass
        case _:
            request_id = None
    return error_reply(request_id, RpcError(INTERNAL_ERROR, str(failure))).content


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
