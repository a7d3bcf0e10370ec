"""The subagents that a model requested, until the client reports their start.

Before the call, only the prompt is known; at the start, only the subagent's id. Each request is a
small file in the data home, because clients run the hooks of parallel calls at the same time.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.workspace.files.private_file import keep_small_file, name_for
from interlock.workspace.files.regular_file import read_regular_file

DIRECTORY = "asked-subagents"
VALID_MS = 3_600_000
_BYTES_MAX = 64 * 1024


class AskedSubagent(msgspec.Struct, frozen=True):
    agent: str
    prompt: str


def save(home: Path, host: str, conversation: str, asked: AskedSubagent, *, now_ms: int) -> None:
    """Keep a request, and drop stale ones.

    Raises:
        OSError: it cannot be written.
    """
    name = f"{name_for(host, conversation)}-{now_ms:015}-{os.getpid()}.json"
    path, content = home / DIRECTORY / name, msgspec.json.encode(asked)
    keep_small_file(path, content, oldest_ms=now_ms - VALID_MS)


def take(home: Path, host: str, conversation: str, agent: str) -> str:
    """Return the prompt of the oldest request for this agent, once; empty if there is none."""
    for path in sorted((home / DIRECTORY).glob(f"{name_for(host, conversation)}-*")):
        for asked in _read(path):
            if asked.agent in ("", agent):
                with suppress(OSError):
                    path.unlink()  # of two that take it, one fails here
                    return asked.prompt
    return ""


def _read(path: Path) -> Iterator[AskedSubagent]:
    with suppress(OSError, msgspec.MsgspecError):
        yield msgspec.json.decode(read_regular_file(path, _BYTES_MAX), type=AskedSubagent)
