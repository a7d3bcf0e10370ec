"""Reading an index: notes by name, by their words or by a filter, and their observations."""

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.core.notes.keys import fold_name, key_of
from interlock.core.notes.stamp import FileStamp
from interlock.store.notes.links import LinkReader, directory_of, placeholders, storable_text
from interlock.store.notes.rows import (
    FilterChoices,
    IndexCounts,
    IndexedFile,
    IndexHit,
    NoteChangeRequest,
    NoteFilter,
    NoteRow,
    NoteTitle,
    ObservationRow,
)
from interlock.store.sqlite.database import SqliteDatabase, Value

_NOTE_COLUMNS = (
    "n.path, n.title, n.type, n.status, n.permalink, n.front, n.tags, n.problem,"
    " n.digest, n.size, n.modified_ms"
)
_NEWEST_FIRST = "n.modified_ms DESC, n.path"


class NoteReader(LinkReader):
    def __init__(self, db: SqliteDatabase) -> None:
        super().__init__(db)
        self._file = _file_identity(db)

    def close(self) -> None:
        self._db.close()

    @property
    def is_current(self) -> bool:
        """Whether others still see this file; somebody may have put another in its place."""
        return _file_identity(self._db) == self._file

    def indexed_files(self) -> dict[str, IndexedFile]:
        rows = self._rows("SELECT path, mtime_ns, ctime_ns, size, ino, digest, is_racy FROM note")
        return {
            path: IndexedFile(FileStamp(mtime, ctime, size, ino), digest, bool(is_racy))
            for path, mtime, ctime, size, ino, digest, is_racy in rows
        }

    def by_path(self, path: str) -> NoteRow | None:
        row = self._first_row(f"SELECT {_NOTE_COLUMNS} FROM note n WHERE n.path = ?", (path,))
        return _note_row(*row) if row else None

    def find_by_name(self, key: str, *, near: str = "") -> list[NoteRow]:
        """Return every note with this name, first the one that a link in the note `near` means.

        A note that has it for its number counts only where none has it for an address or a name.
        """
        rows = self._rows(
            f"SELECT {_NOTE_COLUMNS} FROM key k JOIN note n ON n.id = k.note WHERE k.key = ?1"
            " AND (k.rank < 2 OR NOT EXISTS (SELECT 1 FROM key o WHERE o.key = ?1 AND o.rank < 2))"
            " ORDER BY k.rank, n.directory != ?2, length(n.path), n.path",
            (key_of(key), directory_of(near)),
        )
        return [_note_row(*row) for row in rows]

    def find_by_glob(self, glob: str, *, limit: int) -> list[NoteRow]:
        """Return notes whose permalink or path matches a glob of `core.notes.address.glob_of`."""
        rows = self._rows(
            f"SELECT {_NOTE_COLUMNS} FROM note n WHERE n.place GLOB ? OR n.permalink_key GLOB ?"
            " ORDER BY n.path LIMIT ?",
            (glob, glob, limit),
        )
        return [_note_row(*row) for row in rows]

    def newest_notes(self, note_filter: NoteFilter, *, limit: int) -> list[NoteRow]:
        """Return the notes that match the filter, the newest first."""
        conditions, values = _filter_conditions(note_filter)
        rows = self._rows(
            f"SELECT {_NOTE_COLUMNS} FROM note n WHERE {conditions}"
            f" ORDER BY {_NEWEST_FIRST} LIMIT ?",
            (*values, limit),
        )
        return [_note_row(*row) for row in rows]

    def count_notes(self, note_filter: NoteFilter) -> int:
        conditions, values = _filter_conditions(note_filter)
        return self._db.scalar(f"SELECT count(*) FROM note n WHERE {conditions}", values)

    def search(self, expression: str, note_filter: NoteFilter, *, limit: int) -> list[IndexHit]:
        """Return the best hits first. The expression is one of `core.notes.fts_query`."""
        conditions, values = _filter_conditions(note_filter)
        # CROSS JOIN keeps this order: SQLite would rather query the words once for each note.
        rows = self._rows(
            f"SELECT {_NOTE_COLUMNS}, w.rank FROM words w CROSS JOIN note n ON n.id = w.rowid"
            f" WHERE words MATCH ? AND {conditions} ORDER BY w.rank, n.path LIMIT ?",
            (expression, *values, limit),
        )
        return [IndexHit(_note_row(*row[:-1]), -row[-1]) for row in rows]

    def observations(self, note_filter: NoteFilter, *, limit: int) -> list[ObservationRow]:
        """Return observations of matching notes, newest notes first; of a category if set."""
        return self._observations(*_observation_conditions(note_filter), limit)

    def observations_in(self, path: str, *, limit: int) -> list[ObservationRow]:
        """Return the observations of one note."""
        return self._observations("n.path = ?", [path], limit)

    def count_observations(self, note_filter: NoteFilter) -> int:
        conditions, values = _observation_conditions(note_filter)
        return self._db.scalar(
            f"SELECT count(*) FROM observation o JOIN note n ON n.id = o.note WHERE {conditions}",
            values,
        )

    def titles(self) -> list[NoteTitle]:
        rows = self._rows("SELECT path, title, permalink FROM note ORDER BY path")
        return [NoteTitle(*row) for row in rows]

    def counts(self) -> IndexCounts:
        row = self._first_row(
            "SELECT (SELECT count(*) FROM note), (SELECT count(*) FROM observation),"
            " (SELECT count(*) FROM link), (SELECT count(*) FROM link l"
            " WHERE NOT EXISTS (SELECT 1 FROM key k WHERE k.key = l.key)),"
            " (SELECT count(DISTINCT tag) FROM tag),"
            " (SELECT count(*) FROM note WHERE problem != '')"
        )
        assert row is not None, "counting always gives a row"
        return IndexCounts(*row)

    def filter_choices(self, *, limit: int) -> FilterChoices:
        return FilterChoices(
            self._value_counts("type", "note", limit),
            self._value_counts("status", "note", limit),
            self._value_counts("tag", "tag", limit),
            self._value_counts("directory", "note", limit),
        )

    def find_by_frontmatter(self, key: str, word: str, *, limit: int) -> list[NoteRow]:
        """Return notes whose frontmatter has this word under this key, the newest first."""
        rows = self._rows(
            f"SELECT {_NOTE_COLUMNS} FROM note n WHERE json_extract(n.front, ?) = ?"
            f" ORDER BY {_NEWEST_FIRST} LIMIT ?",
            (f'$."{key}"', word, limit),
        )
        return [_note_row(*row) for row in rows]

    def change_mark(self) -> int:
        """Return a number that changes when any process puts or removes a note."""
        return self._db.scalar("SELECT value FROM mark")

    def find_request(self, key: str) -> NoteChangeRequest | None:
        row = self._first_row(
            "SELECT key, arguments, at_ms, path, before, answer, caller, is_done FROM request"
            " WHERE key = ?",
            (key,),
        )
        return NoteChangeRequest(*row[:-1], is_done=bool(row[-1])) if row else None

    def _observations(
        self, conditions: str, values: Sequence[Value], limit: int
    ) -> list[ObservationRow]:
        rows = self._rows(
            "SELECT n.path, n.title, n.modified_ms, o.line, o.category, o.text, o.tags, o.context"
            f" FROM observation o JOIN note n ON n.id = o.note WHERE {conditions}"
            " ORDER BY n.modified_ms DESC, n.path, o.nr LIMIT ?",
            (*values, limit),
        )
        return [
            ObservationRow(path, title, modified, line, category, text, _decode_tags(tags), context)
            for path, title, modified, line, category, text, tags, context in rows
        ]

    def _value_counts(self, column: str, table: str, limit: int) -> dict[str, int]:
        return dict(
            self._db.rows(
                f"SELECT {column}, count(*) FROM {table} WHERE {column} != '' GROUP BY {column}"
                f" ORDER BY count(*) DESC, {column} LIMIT ?",
                (limit,),
            )
        )


def _file_identity(db: SqliteDatabase) -> tuple[int, int] | None:
    try:
        file_stat = os.stat(db.path)
    except OSError:
        return None
    return file_stat.st_dev, file_stat.st_ino


def _note_row(*values: Any) -> NoteRow:
    path, title, type_, status, permalink, front, tags, problem, *file_values = values
    digest, size, modified_ms = file_values
    return NoteRow(
        path=path,
        title=title,
        type=type_,
        status=status,
        permalink=permalink,
        front=msgspec.json.decode(front),
        tags=_decode_tags(tags),
        problem=problem,
        digest=digest,
        size=size,
        modified_ms=modified_ms,
    )


def _decode_tags(stored: str) -> tuple[str, ...]:
    return tuple(msgspec.json.decode(stored, type=list[str]))


def _filter_conditions(note_filter: NoteFilter) -> tuple[str, list[Value]]:
    conditions, values = list[str](), list[Value]()
    for column, allowed in (("type", note_filter.types), ("status", note_filter.statuses)):
        if allowed:
            conditions.append(f"n.{column} IN ({placeholders(allowed)})")
            values += allowed
    if note_filter.not_types:
        conditions.append(f"n.type NOT IN ({placeholders(note_filter.not_types)})")
        values += note_filter.not_types
    if note_filter.tags:
        tags = tuple({storable_text(fold_tag(tag)) for tag in note_filter.tags})
        conditions.append(
            f"n.id IN (SELECT note FROM tag WHERE tag IN ({placeholders(tags)})"
            " GROUP BY note HAVING count(*) = ?)"
        )
        values += [*tags, len(tags)]
    if note_filter.category:
        conditions.append("n.id IN (SELECT note FROM observation WHERE category = ?)")
        values.append(note_filter.category)
    if note_filter.since_ms:
        conditions.append("n.modified_ms >= ?")
        values.append(note_filter.since_ms)
    if note_filter.prefix:
        conditions.append("n.path >= ? AND n.path < ?")
        values += [note_filter.prefix, note_filter.prefix + "\U0010ffff"]
    return " AND ".join(conditions) or "true", values


def _observation_conditions(note_filter: NoteFilter) -> tuple[str, list[Value]]:
    """Return conditions for observations of the category, not for all of a note that has one."""
    conditions, values = _filter_conditions(msgspec.structs.replace(note_filter, category=""))
    if not note_filter.category:
        return conditions, values
    return f"o.category = ? AND {conditions}", [note_filter.category, *values]


def fold_tag(tag: str) -> str:
    return fold_name(tag.removeprefix("#"))
