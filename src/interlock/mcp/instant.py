"""Answer the handshake and `tools/list` before the rest of Interlock is imported.

Some clients do not wait for their servers: they leave out the tools of one that takes as long to
answer as importing takes. So `snapshot.txt` holds these answers, written by `make docs` from what
`protocol` replies, and a test compares the two. A thread imports the rest after the tools were
listed, or when the client is silent. The first message that the snapshot does not answer is left,
with all that follow, to the real server, which reads the handshake again.

Until then nothing is imported that takes long.
"""

import os
import select
import sys
import threading

from interlock.app.data_home import data_home_path
from interlock.app.hosts.likely_toolsets import likely_toolsets, use_key
from interlock.core.strict_json import as_object, decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Callable
    from typing import Any, BinaryIO, NoReturn
else:
    import _signal as signals  # without the names of `enum`, which take long to import

SNAPSHOT = os.path.join(os.path.dirname(__file__), "snapshot.txt")
INSTRUCTIONS, TOOLS = '"<instructions>"', '["<tools>"]'
"""The parts of the snapshot's replies that depend on the listed tools."""
OUTSIDE = use_key(is_opted_in=False, is_coordinated=False, has_notes=False)
EVERYTHING = use_key(is_opted_in=True, is_coordinated=True, has_notes=True)
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

LINE_BYTES_MAX, CHUNK_BYTES = 64 * 1024, 64 * 1024
NESTING_MAX = 100  # JSON parsers differ in the depth they accept
SILENCE_SECONDS = 0.05
INTERNAL_ERROR = -32603


class Snapshot:
    """The replies of a server with these toolsets (names with commas between).

    Without any, they are those of a server in a project with this use (`likely_toolsets.use_key`).

    Raises:
        KeyError: there are no such toolsets.
    """

    def __init__(self, toolsets: str | None, use: str = OUTSIDE) -> None:
        with open(SNAPSHOT, encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
        entries = {f"{kind} {name}": text for kind, name, text in (x.split(" ", 2) for x in lines)}
        self._entries, self._use = entries, use
        if toolsets is None:
            self._list(f"use {use}", use)
            return
        self._use = OUTSIDE  # named toolsets are listed whole, to every client
        chosen = {key: entries[key] for key in map(_toolset_key, toolsets.split(","))}
        in_order = [key for key in entries if key in chosen]
        names = ",".join(key.removeprefix("toolset ") for key in in_order)
        entries["chosen"] = ",".join(chosen[key] for key in in_order)
        self._list("chosen", names)

    def _list(self, key: str, instructions: str) -> None:
        tools = self._entries[key].split(",")
        self.listed_tools = frozenset(tools)
        """The names of the tools that are listed."""
        self._contents = {
            INSTRUCTIONS: self._entries[f"instructions {instructions}"],
            TOOLS: f"[{','.join(self._entries[f'tool {tool}'] for tool in tools)}]",
        }

    def answer(self, line: bytes) -> tuple[str, bytes] | None:
        """Return the method and the reply (empty if none is due); None if the method is unknown."""
        is_deep = line.count(b"{") + line.count(b"[") > NESTING_MAX
        if len(line) > LINE_BYTES_MAX or is_deep:
            return None
        if not line.strip():
            return "", b""
        try:
            message: Any = decode(line)
            return self._reply(as_object(message)) if type(message) is dict else None
        except Exception:  # noqa: BLE001 (the real server reports the fault)
            return None

    def _reply(self, message: "dict[str, Any]") -> tuple[str, bytes] | None:
        if "method" not in message:
            return "", b""  # a reply to a request that we never made
        method, request_id = message["method"], message.get("id")
        sent: Any = message.get("params")
        params: dict[str, Any] = {} if sent is None else sent
        version = as_object(params.get("_meta")).get(VERSION_KEY)
        if "id" not in message:
            return ("", b"") if type(method) is str else None
        key = f"reply {method}" if version is None else f"reply {method}:{version}"
        text = self._entries.get(key)
        if key == "reply initialize":
            client = as_object(params.get("clientInfo")).get("name")
            if self._use != OUTSIDE and f"fixed {client}" in self._entries:
                self._list(f"use {EVERYTHING}", EVERYTHING)
            text = self._entries.get(f"{key}:{params.get('protocolVersion')}", text)
        if type(request_id) is int and request_id >= 0:
            written = str(request_id)
        elif type(request_id) is str and _is_plain(request_id):
            written = f'"{request_id}"'
        else:
            return None
        if text is None:
            return None  # such as a call
        for placeholder, content in self._contents.items():
            text = text.replace(placeholder, content)
        return method, f'{{"jsonrpc":"2.0","id":{written},"result":{text}}}'.encode()


def _toolset_key(name: str) -> str:
    return f"toolset {name.strip()}"


def _is_plain(text: str) -> bool:
    """Whether every JSON encoder writes the text unescaped."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


class Opening:
    """The connection while the snapshot answers, and what the real server takes over."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        for number in (signals.SIGTERM, signals.SIGINT):
            # End at once: an append happens whole or not at all.
            signals.signal(number, signals.SIG_DFL)
        self.replies: BinaryIO = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # from here on a stray print goes to the log and cannot break the protocol
        self.snapshot = snapshot
        self.unread = b""
        """Lines that were read but not answered."""
        self.handshake = b""
        """The line that opened the connection; empty if it was not answered here."""
        self.is_listed = False

    @property
    def listed_tools(self) -> "frozenset[str]":
        """The tools that the client was shown."""
        return self.snapshot.listed_tools if self.snapshot and self.is_listed else frozenset()

    def next_unanswered(self, read: "Callable[[], bytes]") -> bytes:
        """Answer from the snapshot; return the first line for the real server, which stays unread.

        It is empty if `read` returns nothing before.
        """
        while True:
            line, end, rest = self.unread.partition(b"\n")
            if not end:
                if len(line) > LINE_BYTES_MAX or not (content := read()):
                    return b""
                self.unread += content
                continue
            answered = self.snapshot.answer(line) if self.snapshot else None
            if answered is None:
                return line
            self.unread = rest
            method, reply = answered
            if method:
                self.send(reply)
            if method == "initialize":
                self.handshake = line  # all else leaves nothing behind
            self.is_listed |= method == "tools/list"

    def read(self) -> bytes:
        return os.read(0, CHUNK_BYTES)

    def skip_line(self, reply: bytes) -> None:
        """Send the reply to the first unread line and drop that line."""
        self.send(reply)
        self.unread = self.unread.partition(b"\n")[2]

    def send(self, reply: bytes) -> None:
        try:
            self.replies.write(reply + b"\n")
            self.replies.flush()
        except BrokenPipeError:
            os._exit(0)  # the client is gone; an ordinary exit would try to flush once more


class _Loader(threading.Thread):
    def __init__(self, load: "Callable[[], object]") -> None:
        super().__init__(daemon=True)
        self._load = load
        self.error: BaseException | None = None
        self.end_signal, self._running = os.pipe()
        """The first is readable after the thread has ended."""

    def run(self) -> None:
        try:
            self._load()
        except BaseException as error:  # noqa: BLE001 (the first call reports it to the agent)
            self.error = error
        os.close(self._running)


def answer_while_loading(load: "Callable[[], object]", toolsets: str | None = None) -> Opening:
    """Answer what the snapshot answers while `load` is called in a thread; return when it is done.

    `toolsets`: their names with commas between; None for those of the settings or the project.
    If `load` fails, the client's calls are answered with the reason until it leaves.
    """
    try:
        configured, use = likely_toolsets(data_home_path(), os.getcwd(), os.environ)
        opening = Opening(Snapshot(configured if toolsets is None else toolsets, use))
    except (KeyError, OSError):
        opening = Opening()  # the real server reports the fault
    loader = _Loader(load)

    def read() -> bytes:
        """Read what the client sends; nothing once the thread has ended."""
        if opening.is_listed and not loader.ident:
            loader.start()
        while True:
            patience = None if loader.ident else SILENCE_SECONDS
            ready, _, _ = select.select([0, loader.end_signal], [], [], patience)
            if ready:
                return b"" if loader.end_signal in ready else opening.read()
            loader.start()

    opening.next_unanswered(read)
    if not loader.ident:
        loader.start()
    loader.join()
    os.close(loader.end_signal)
    if loader.error:
        _report_until_the_end(opening, loader.error)
    return opening


def _report_until_the_end(opening: Opening, error: BaseException) -> "NoReturn":
    import json  # noqa: PLC0415 (a server that works never needs these two)
    import traceback  # noqa: PLC0415

    traceback.print_exception(error)
    fault = f"Interlock cannot start: {type(error).__name__}: {error}"
    problem = {"code": INTERNAL_ERROR, "message": f"{fault}. Tell the user to install it again."}
    while line := opening.next_unanswered(opening.read):
        try:
            request_id = decode(line)["id"]
        except Exception:  # noqa: BLE001 (it is answered without its id)
            request_id = None
        reply = {"jsonrpc": "2.0", "id": request_id, "error": problem}
        opening.skip_line(json.dumps(reply).encode())
    sys.exit(1)
