"""A headless client: an agent client of the user's that works on a run, seen from who starts it.

It is a process that reads messages from its stdin and says on its stdout, line by line, what its
model answers and its tools return. A client's own words for that are read in a module of its own;
here is what they come to. Nothing here starts a process.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from interlock.core.unattended.conversation import ModelMessage, ToolMessage, Usage

LINE_BYTES_MAX = 16 * 1024 * 1024
"""No line of use is as long: results of tools are cut by the clients themselves."""

EndReason = Literal["done", "turns", "money", "interrupted", "failed"]


class ServerAddress(msgspec.Struct, frozen=True):
    """Our server where it runs already."""

    url: str
    bearer_file: Path
    headers: Mapping[str, str] = {}


class ClientStart(msgspec.Struct, frozen=True):
    """The wish for a client, to be started in the worktree as its current directory."""

    home: Path
    """The data home, with the scripts of an install in it."""
    worktree: Path
    conversation: str
    """A UUID. Whoever starts the client chooses it, and so can tell the gate of it beforehand."""
    turns_max: int
    tools: tuple[str, ...]
    """All that it gets besides our server, of those that it can have. It asks nobody."""
    is_resumed: bool = False
    """Whether the conversation goes on with what it was told before."""
    branch: str | None = None
    """The branch that is worked on, if git shall move no others."""
    is_gated: bool = False
    """Whether the gate knows the conversation: then the client runs the hooks of tools alone."""
    shell: str = ""
    """The script in the data home that confines commands; empty if this machine cannot."""
    server: ServerAddress | None = None
    """None: the client starts a server of its own."""
    model: str = ""
    rules: str = ""
    """Added to what the model is told first: the client reads no file of the project for that."""
    cost_micros_max: int | None = None
    """The cost of this process, not of the conversation."""


class ClientCommand(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    environment: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ClientCommand({self.words[:1]}…)"  # there are secrets in the environment


class ClientReady(msgspec.Struct, frozen=True):
    is_connected: bool
    """Whether it has found our server. If not, its model cannot submit anything."""


class ClientTurn(msgspec.Struct, frozen=True):
    """One whole message of the model. Its cost is not known before the client has ended."""

    message: ModelMessage
    usage: Usage


class ClientToolResults(msgspec.Struct, frozen=True):
    """Results of calls of the last turn; there may be several of these for one turn."""

    message: ToolMessage


class ClientRetry(msgspec.Struct, frozen=True):
    """The provider gave no answer, and the client will ask it again."""

    status: int
    """Of HTTP; 0 if there was none."""
    wait_ms: int


class ClientEnded(msgspec.Struct, frozen=True):
    """The client has answered the last message. It waits for another until its stdin is closed."""

    reason: EndReason
    text: str
    usage: Usage
    """Of this process, with its cost."""
    spent_micros: int
    """The cost of the conversation, with that of all processes that it was resumed from."""
    status: int = 0
    """Of HTTP, if a provider's refusal has ended it."""


ClientEvent: TypeAlias = ClientReady | ClientTurn | ClientToolResults | ClientRetry | ClientEnded


class LineSplitter:
    """Splits a stream into lines. One that is too long is left out."""

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._rest = b""
        self._is_too_long = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this piece of the stream ends, without their line ends."""
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            line = self._rest + end
            if not self._is_too_long and len(line) <= self._bytes_max:
                lines.append(line)
            self._rest, self._is_too_long = b"", False
        self._rest += rest
        if len(self._rest) > self._bytes_max:
            self._rest, self._is_too_long = b"", True
        return lines
