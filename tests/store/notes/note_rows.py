"""Putting notes into an index without files."""

from pathlib import Path
from typing import Any

from interlock.core.notes import grammar
from interlock.core.notes.stamp import FileStamp
from interlock.store.lock import WriteLock
from interlock.store.notes.index import NoteIndex
from interlock.store.notes.links import LINK_COLUMNS, LINK_TARGET_SQL
from interlock.store.notes.reader import NoteReader

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


def dump(index: NoteReader) -> dict[str, Any]:
    """Return all that the files say, in an order that does not depend on how it came here."""
    index._db.run(  # pyright: ignore[reportPrivateUsage]
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instance"
        " USING fts5vocab ('main', 'words', 'instance')"
    )
    target_sql = LINK_TARGET_SQL.format(key="l.key", directory="n.directory")
    queries = {
        "note": "SELECT path, directory, place, title, type, status, permalink, permalink_key,"
        " front, tags, problem, digest, size, modified_ms FROM note n",
        "observation": "SELECT n.path, o.nr, o.line, o.category, o.text, o.tags, o.context"
        " FROM observation o JOIN note n ON n.id = o.note",
        "link": f"SELECT {LINK_COLUMNS}, ({target_sql}), l.nr, l.key FROM link l"
        " JOIN note n ON n.id = l.note",
        "tag": "SELECT n.path, t.tag FROM tag t JOIN note n ON n.id = t.note",
        "key": "SELECT n.path, k.key, k.rank FROM key k JOIN note n ON n.id = k.note",
        "words": "SELECT n.path, i.col, i.offset, i.term FROM temp.instance i"
        " JOIN note n ON n.id = i.doc",
        # Rows that belong to no note; there must be none.
        "stray": "SELECT 'observation', note FROM observation UNION SELECT 'link', note"
        " FROM link UNION SELECT 'tag', note FROM tag UNION SELECT 'key', note FROM key"
        " UNION SELECT 'words', doc FROM temp.instance"
        " EXCEPT SELECT t.column1, n.id FROM note n, (VALUES ('observation'), ('link'),"
        " ('tag'), ('key'), ('words')) t",
    }
    with index.snapshot():
        rows = index._rows  # pyright: ignore[reportPrivateUsage]
        return {name: sorted(rows(query)) for name, query in queries.items()}
