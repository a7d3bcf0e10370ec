"""Reading an index: notes by any name, by their words, and what they say."""

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.core.notes.keys import folded, key_of
from interlock.core.notes.stamp import Stamp
from interlock.store.notes.links import LINK, MEANT, LinkReader, clean, directory_of, marks
from interlock.store.notes.rows import (
    Choices,
    Counts,
    Filter,
    Hit,
    Known,
    ObservationRow,
    Request,
    Row,
    Title,
)
from interlock.store.sqlite.database import Database, Value

_ROW = (
    "n.path, n.title, n.type, n.status, n.permalink, n.front, n.tags, n.problem,"
    " n.digest, n.size, n.modified_ms"
)
_NEWEST = "n.modified_ms DESC, n.path"


class NoteReader(LinkReader):
    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._file = _identity(db)

    def close(self) -> None:
        self._db.close()

    @property
    def is_current(self) -> bool:
        """Whether others still see this file, or somebody put another in its place."""
        return _identity(self._db) == self._file

    def stamps(self) -> dict[str, Known]:
        rows = self._rows("SELECT path, mtime_ns, ctime_ns, size, ino, digest, is_racy FROM note")
        return {
            path: Known(Stamp(mtime, ctime, size, ino), digest, bool(is_racy))
            for path, mtime, ctime, size, ino, digest, is_racy in rows
        }

    def by_path(self, path: str) -> Row | None:
        row = self._one(f"SELECT {_ROW} FROM note n WHERE n.path = ?", (path,))
        return _row(*row) if row else None

    def find(self, key: str, *, near: str = "") -> list[Row]:
        """Every note that is called so, the one first that a link in the note `near` means.

        Those with such a number only where none has it for an address or a name.
        """
        rows = self._rows(
            f"SELECT {_ROW} FROM key k JOIN note n ON n.id = k.note WHERE k.key = ?1"
            " AND (k.rank < 2 OR NOT EXISTS (SELECT 1 FROM key o WHERE o.key = ?1 AND o.rank < 2))"
            " ORDER BY k.rank, n.directory != ?2, length(n.path), n.path",
            (key_of(key), directory_of(near)),
        )
        return [_row(*row) for row in rows]

    def like(self, glob: str, *, limit: int) -> list[Row]:
        """Notes whose permalink or path fits what `core.notes.address.glob_of` made."""
        rows = self._rows(
            f"SELECT {_ROW} FROM note n WHERE n.place GLOB ? OR n.permalink_key GLOB ?"
            " ORDER BY n.path LIMIT ?",
            (glob, glob, limit),
        )
        return [_row(*row) for row in rows]

    def rows(self, wanted: Filter, *, limit: int) -> list[Row]:
        """The newest first."""
        conditions, values = _conditions(wanted)
        rows = self._rows(
            f"SELECT {_ROW} FROM note n WHERE {conditions} ORDER BY {_NEWEST} LIMIT ?",
            (*values, limit),
        )
        return [_row(*row) for row in rows]

    def count(self, wanted: Filter) -> int:
        conditions, values = _conditions(wanted)
        return self._db.scalar(f"SELECT count(*) FROM note n WHERE {conditions}", values)

    def search(self, expression: str, wanted: Filter, *, limit: int) -> list[Hit]:
        """The best first. The expression is one that `core.notes.words` made."""
        conditions, values = _conditions(wanted)
        # In this order: SQLite would rather ask for the words once for each note.
        rows = self._rows(
            f"SELECT {_ROW}, w.rank FROM words w CROSS JOIN note n ON n.id = w.rowid"
            f" WHERE words MATCH ? AND {conditions} ORDER BY w.rank, n.path LIMIT ?",
            (expression, *values, limit),
        )
        return [Hit(_row(*row[:-1]), -row[-1]) for row in rows]

    def observations(self, wanted: Filter, *, limit: int) -> list[ObservationRow]:
        """Those of the notes wanted, the newest notes first; of one category, if that is said."""
        return self._observations(*_of_category(wanted), limit)

    def observations_in(self, path: str, *, limit: int) -> list[ObservationRow]:
        """Those of one note."""
        return self._observations("n.path = ?", [path], limit)

    def count_observations(self, wanted: Filter) -> int:
        conditions, values = _of_category(wanted)
        return self._db.scalar(
            f"SELECT count(*) FROM observation o JOIN note n ON n.id = o.note WHERE {conditions}",
            values,
        )

    def titles(self) -> list[Title]:
        rows = self._rows("SELECT path, title, permalink FROM note ORDER BY path")
        return [Title(*row) for row in rows]

    def counts(self) -> Counts:
        row = self._one(
            "SELECT (SELECT count(*) FROM note), (SELECT count(*) FROM observation),"
            " (SELECT count(*) FROM link), (SELECT count(*) FROM link l"
            " WHERE NOT EXISTS (SELECT 1 FROM key k WHERE k.key = l.key)),"
            " (SELECT count(DISTINCT tag) FROM tag),"
            " (SELECT count(*) FROM note WHERE problem != '')"
        )
        assert row is not None, "counting always gives a row"
        return Counts(*row)

    def choices(self, *, limit: int) -> Choices:
        return Choices(
            self._counted("type", "note", limit),
            self._counted("status", "note", limit),
            self._counted("tag", "tag", limit),
            self._counted("directory", "note", limit),
        )

    def fronted(self, key: str, word: str, *, limit: int) -> list[Row]:
        """Notes whose frontmatter says this word under this key, the newest first."""
        rows = self._rows(
            f"SELECT {_ROW} FROM note n WHERE json_extract(n.front, ?) = ?"
            f" ORDER BY {_NEWEST} LIMIT ?",
            (f'$."{key}"', word, limit),
        )
        return [_row(*row) for row in rows]

    def mark(self) -> int:
        """Another one whenever a note was put or removed since, by whichever process."""
        return self._db.scalar("SELECT value FROM mark")

    def request(self, key: str) -> Request | None:
        row = self._one(
            "SELECT key, arguments, at_ms, path, before, answer, caller, is_done FROM request"
            " WHERE key = ?",
            (key,),
        )
        return Request(*row[:-1], is_done=bool(row[-1])) if row else None

    def dump(self) -> dict[str, Any]:
        """All that the files say, in an order that does not depend on how it came here."""
        self._db.run(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instance"
            " USING fts5vocab ('main', 'words', 'instance')"
        )
        meant = MEANT.format(key="l.key", directory="n.directory")
        queries = {
            "note": "SELECT path, directory, place, title, type, status, permalink, permalink_key,"
            " front, tags, problem, digest, size, modified_ms FROM note n",
            "observation": "SELECT n.path, o.nr, o.line, o.category, o.text, o.tags, o.context"
            " FROM observation o JOIN note n ON n.id = o.note",
            "link": f"SELECT {LINK}, ({meant}), l.nr, l.key FROM link l"
            " JOIN note n ON n.id = l.note",
            "tag": "SELECT n.path, t.tag FROM tag t JOIN note n ON n.id = t.note",
            "key": "SELECT n.path, k.key, k.rank FROM key k JOIN note n ON n.id = k.note",
            "words": "SELECT n.path, i.col, i.offset, i.term FROM temp.instance i"
            " JOIN note n ON n.id = i.doc",
            # What belongs to no note must not be there.
            "stray": "SELECT 'observation', note FROM observation UNION SELECT 'link', note"
            " FROM link UNION SELECT 'tag', note FROM tag UNION SELECT 'key', note FROM key"
            " UNION SELECT 'words', doc FROM temp.instance"
            " EXCEPT SELECT t.column1, n.id FROM note n, (VALUES ('observation'), ('link'),"
            " ('tag'), ('key'), ('words')) t",
        }
        with self.snapshot():
            return {name: sorted(self._rows(query)) for name, query in queries.items()}

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
            ObservationRow(path, title, modified, line, category, text, _words(tags), context)
            for path, title, modified, line, category, text, tags, context in rows
        ]

    def _counted(self, column: str, table: str, limit: int) -> dict[str, int]:
        return dict(
            self._db.rows(
                f"SELECT {column}, count(*) FROM {table} WHERE {column} != '' GROUP BY {column}"
                f" ORDER BY count(*) DESC, {column} LIMIT ?",
                (limit,),
            )
        )


def _identity(db: Database) -> tuple[int, int] | None:
    try:
        seen = os.stat(db.path)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _row(*values: Any) -> Row:
    path, title, type_, status, permalink, front, tags, problem, *figures = values
    digest, size, modified_ms = figures
    return Row(
        path=path,
        title=title,
        type=type_,
        status=status,
        permalink=permalink,
        front=msgspec.json.decode(front),
        tags=_words(tags),
        problem=problem,
        digest=digest,
        size=size,
        modified_ms=modified_ms,
    )


def _words(stored: str) -> tuple[str, ...]:
    return tuple(msgspec.json.decode(stored, type=list[str]))


def _conditions(wanted: Filter) -> tuple[str, list[Value]]:
    conditions, values = list[str](), list[Value]()
    for column, among in (("type", wanted.types), ("status", wanted.statuses)):
        if among:
            conditions.append(f"n.{column} IN ({marks(among)})")
            values += among
    if wanted.not_types:
        conditions.append(f"n.type NOT IN ({marks(wanted.not_types)})")
        values += wanted.not_types
    if wanted.tags:
        tags = tuple({clean(folded_tag(tag)) for tag in wanted.tags})
        conditions.append(
            f"n.id IN (SELECT note FROM tag WHERE tag IN ({marks(tags)})"
            " GROUP BY note HAVING count(*) = ?)"
        )
        values += [*tags, len(tags)]
    if wanted.category:
        conditions.append("n.id IN (SELECT note FROM observation WHERE category = ?)")
        values.append(wanted.category)
    if wanted.since_ms:
        conditions.append("n.modified_ms >= ?")
        values.append(wanted.since_ms)
    if wanted.prefix:
        conditions.append("n.path >= ? AND n.path < ?")
        values += [wanted.prefix, wanted.prefix + "\U0010ffff"]
    return " AND ".join(conditions) or "true", values


def _of_category(wanted: Filter) -> tuple[str, list[Value]]:
    """For observations: those of the category itself, and not all of a note that has one."""
    conditions, values = _conditions(msgspec.structs.replace(wanted, category=""))
    if not wanted.category:
        return conditions, values
    return f"o.category = ? AND {conditions}", [wanted.category, *values]


def folded_tag(tag: str) -> str:
    return folded(tag.removeprefix("#"))
