"""A provider on loopback: it answers each request with the next reply, and keeps what it was sent.

It speaks the wire of Anthropic's Messages and of OpenAI's Chat Completions as far as streams go.
Tools that a real provider rejects are rejected here too, whatever the next reply is.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, cast

import msgspec

from tests.agents.models.tool_schema_check import tool_problems

Event = Mapping[str, Any]
Calls = Sequence[tuple[str, str, str]]
"""Id, name and arguments."""


class Reply(msgspec.Struct, frozen=True):
    """One answer of the provider. What comes `then`: its proper end, a cut line, or nothing."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    then: Literal["end", "cut", "hang"] = "end"
    parts: int = 2
    """In how many parts it comes, so that events are cut somewhere."""
    pause_seconds: float = 0
    """Before each of them."""


class Request(msgspec.Struct, frozen=True):
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


class FakeProvider(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: list[Reply] = []
        self.reply_to: Callable[[Request], Reply] = lambda _: self.replies.pop(0)
        self.requests: list[Request] = []
        self.was_hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        provider = cast("FakeProvider", self.server)
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, body)
        provider.requests.append(request)
        reply = provider.reply_to(request)
        if problem := next(tool_problems(request.json.get("tools", ())), None):
            error = {"type": "invalid_request_error", "message": problem}
            reply = Reply(json.dumps({"type": "error", "error": error}).encode(), status=400)
        self.send_response(reply.status)
        kind = "text/event-stream" if reply.status == 200 else "application/json"
        for name, value in {"content-type": kind, **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        size = len(reply.body) // reply.parts + 1
        for start in range(0, len(reply.body), size):
            time.sleep(reply.pause_seconds)
            part = reply.body[start : start + size]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        match reply.then:
            case "end":
                self.wfile.write(b"0\r\n\r\n")
            case "cut":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            case "hang":
                with suppress(ConnectionResetError):
                    assert self.connection.recv(1) == b"", "Nobody sends a second request."
                provider.was_hung_up.set()
                self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is given)
        pass


@contextmanager
def running_provider() -> Generator[FakeProvider]:
    with FakeProvider() as provider:
        thread = threading.Thread(target=provider.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join()


def anthropic_stream(
    *,
    texts: Sequence[str] = (),
    calls: Calls = (),
    thought: tuple[str, str] = ("", ""),
    usage: Mapping[str, int] | None = None,
    stop: str = "end_turn",
) -> bytes:
    """An answer of Anthropic: thoughts, text in pieces, and calls with arguments in two pieces."""
    start: Event = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    counts = {"input_tokens": 10, "output_tokens": 1, **(usage or {})}
    blocks: list[tuple[Event, Sequence[Event]]] = []
    if any(thought):
        thinking, signature = thought
        deltas = [
            {"type": "thinking_delta", "thinking": thinking},
            {"type": "signature_delta", "signature": signature},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if texts:
        deltas = [{"type": "text_delta", "text": text} for text in texts]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for call, name, arguments in calls:
        half = len(arguments) // 2
        deltas = [
            {"type": "input_json_delta", "partial_json": part}
            for part in (arguments[:half], arguments[half:])
        ]
        blocks.append(({"type": "tool_use", "id": call, "name": name, "input": {}}, deltas))
    events: list[Event] = [
        {
            "type": "message_start",
            "message": {**start, "model": "claude-opus-5", "usage": counts},
        },
        {"type": "ping"},
    ]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": counts})
    events.append({"type": "message_stop"})
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    )


def openai_stream(
    *,
    texts: Sequence[str] = (),
    calls: Calls = (),
    thought: tuple[str, str] = ("", ""),
    usage: Mapping[str, Any] | None = None,
    stop: str = "stop",
) -> bytes:
    """An answer of Chat Completions. The thought comes with the name of the field that it is in."""
    deltas: list[Event] = []
    if any(thought):
        deltas.append({thought[1]: thought[0]})
    deltas += [{"content": text} for text in texts]
    for index, (call, name, arguments) in enumerate(calls):
        half = len(arguments) // 2
        first = {"name": name, "arguments": arguments[:half]}
        deltas += [
            {"tool_calls": [{"index": index, "id": call, "type": "function", "function": first}]},
            {"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]},
        ]
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-5-mini",
    }
    chunks: list[Event] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    counts = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, **(usage or {})}
    chunks.append({**head, "choices": [], "usage": counts})
    lines = [json.dumps(chunk).encode() for chunk in chunks] + [b"[DONE]"]
    return b"".join(b"data: %s\n\n" % line for line in lines)
