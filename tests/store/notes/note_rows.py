"""Putting notes into an index without files."""

from pathlib import Path

from interlock.core.notes import grammar
from interlock.core.notes.stamp import FileStamp
from interlock.store.lock import WriteLock
from interlock.store.notes.index import NoteIndex

SPEC = """---
title: The Plan
type: Decision
status: Open
permalink: specs/the-plan
created: 2026-01-02
tags: [Alpha, beta_gamma]
other: {deep: [1, two]}
---
# The Plan

- [decision] Use SQLite #storage (measured)
- implements [[Missing One]] (soon)

See [[b]].
"""


def opened(directory: Path) -> NoteIndex:
    return NoteIndex(directory / "k.db", WriteLock(directory / "k.lock"))


def put(index: NoteIndex, path: str, text: str = "", *, at_ms: int = 1) -> None:
    stamp = FileStamp(at_ms * 1_000_000, 0, len(text), 0)
    note = grammar.parse_note(text, path=path)
    index.put(path, note, digest=text[:9], stamp=stamp, is_racy=False)


def paths_of(rows: list[object]) -> list[str]:
    return [row.path for row in rows]  # type: ignore[attr-defined]
