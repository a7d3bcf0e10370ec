"""Reading the links of an index: the note that each leads to, and the links to a note."""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from interlock.store.notes.rows import LinkRow
from interlock.store.sqlite.database import SqliteDatabase, Value

# The note a link means: by address before by name, then in the same directory, then the highest.
LINK_TARGET_SQL = (
    "SELECT t.path FROM key k JOIN note t ON t.id = k.note WHERE k.key = {key}"
    " ORDER BY k.rank, t.directory != {directory}, length(t.path), t.path LIMIT 1"
)
LINK_COLUMNS = "n.path, l.line, l.kind, l.target, l.context"
_NO_DIRECTORY = "/"  # no note is there
_CANDIDATES_MAX = 10
# Lone surrogates stand for bytes that are not UTF-8; SQLite accepts neither them nor NUL.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class LinkReader:
    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """Read everything inside the block as of one moment."""
        if self._db.is_in_transaction:
            yield
            return
        self._db.run("BEGIN")
        try:
            yield
        finally:
            self._db.run("COMMIT")

    def links_from(self, path: str) -> list[LinkRow]:
        # Each name is looked up once: a note may repeat a name that many notes have.
        target_sql = LINK_TARGET_SQL.format(key="d.key", directory="d.directory")
        of_note = "FROM link l JOIN note n ON n.id = l.note WHERE n.path = ?"
        with self.snapshot():
            names = f"SELECT DISTINCT l.key, n.directory {of_note}"
            target_paths = dict(
                self._rows(f"SELECT d.key, ({target_sql}) FROM ({names}) d", (path,))
            )
            rows = self._rows(f"SELECT {LINK_COLUMNS}, l.key {of_note} ORDER BY l.nr", (path,))
            return [LinkRow(*row[:-1], to=target_paths[row[-1]]) for row in rows]

    def links_to(self, path: str, *, limit: int) -> list[LinkRow]:
        """Return links that lead to the note, wherever they are written, even if older than it."""
        with self.snapshot():
            condition, values = self._links_to_condition(path)
            rows = self._rows(
                f"SELECT {LINK_COLUMNS}, ? FROM link l JOIN note n ON n.id = l.note"
                f" WHERE {condition} ORDER BY n.path, l.nr LIMIT ?",
                (path, *values, limit),
            )
            return [LinkRow(*row) for row in rows]

    def backlink_counts(self, paths: Sequence[str]) -> dict[str, int]:
        """Return how many other notes name each of these, as far as any does."""
        rows = self._db.rows(
            "SELECT t.path, count(DISTINCT l.note) FROM note t JOIN key k ON k.note = t.id"
            " JOIN link l ON l.key = k.key AND l.note != t.id"
            f" WHERE t.path IN ({placeholders(paths)}) GROUP BY t.id",
            tuple(paths),
        )
        return dict(rows)

    def unresolved_links(self, *, limit: int) -> list[LinkRow]:
        rows = self._rows(
            f"SELECT {LINK_COLUMNS}, NULL FROM link l JOIN note n ON n.id = l.note WHERE NOT EXISTS"
            " (SELECT 1 FROM key k WHERE k.key = l.key) ORDER BY n.path, l.nr LIMIT ?",
            (limit,),
        )
        return [LinkRow(*row) for row in rows]

    def ambiguous_links(self, *, limit: int) -> list[tuple[LinkRow, tuple[str, ...]]]:
        """Return links that may mean several notes, with these: only their length tells them apart.

        At most `limit` links are examined, and `_CANDIDATES_MAX` notes for each.
        """
        with self.snapshot():
            rows = self._rows(
                f"SELECT {LINK_COLUMNS}, NULL, l.key, n.directory"
                " FROM link l JOIN note n ON n.id = l.note"
                " WHERE l.key IN (SELECT key FROM key GROUP BY key HAVING count(*) > 1)"
                " ORDER BY n.path, l.nr LIMIT ?",
                (limit,),
            )
            targets = dict[tuple[str, str], tuple[str, ...]]()
            ambiguous: list[tuple[LinkRow, tuple[str, ...]]] = []
            for *link, key, directory in list(rows):
                if (key, directory) not in targets:
                    targets[key, directory] = self._equal_targets(key, directory)
                if len(targets[key, directory]) > 1:
                    ambiguous.append((LinkRow(*link), targets[key, directory]))
            return ambiguous

    def _rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]:
        return self._db.rows(
            sql, [storable_text(value) if isinstance(value, str) else value for value in values]
        )

    def _first_row(self, sql: str, values: Sequence[Value] = ()) -> tuple[Any, ...] | None:
        first, *_ = (*self._rows(sql, values), None)
        return first

    def _links_to_condition(self, path: str) -> tuple[str, list[Value]]:
        """Return an SQL condition for the links that mean the note, without resolving each of them.

        Those beside it, if it comes first there; if it comes first of all, also those that have no
        note of that name beside them.
        """
        conditions, values = list[str](), list[Value]()
        directory = directory_of(path)
        keys = "SELECT k.key, k.rank FROM key k JOIN note t ON t.id = k.note WHERE t.path = ?"
        for key, rank in list(self._rows(keys, (path,))):
            if self._target_path(key, directory) != path:
                continue
            is_first = self._target_path(key, _NO_DIRECTORY) == path
            conditions.append(
                "l.key = ? AND (n.directory = ? OR ? AND n.directory NOT IN (SELECT t.directory"
                " FROM key k JOIN note t ON t.id = k.note WHERE k.key = ? AND k.rank = ?))"
            )
            values += [key, directory, is_first, key, rank]
        return f"({' OR '.join(conditions) or 'false'})", values

    def _target_path(self, key: str, directory: str) -> str | None:
        """Return the path of the note that this name means to notes in the directory."""
        row = self._first_row(LINK_TARGET_SQL.format(key="?", directory="?"), (key, directory))
        return row[0] if row else None

    def _equal_targets(self, key: str, directory: str) -> tuple[str, ...]:
        """Return the paths of the notes that the name means equally well there."""
        rows = list(
            self._rows(
                "SELECT t.path, k.rank, t.directory = ? FROM key k JOIN note t ON t.id = k.note"
                " WHERE k.key = ? ORDER BY k.rank, t.directory != ?, length(t.path), t.path"
                " LIMIT ?",
                (directory, key, directory, _CANDIDATES_MAX),
            )
        )
        return tuple(path for path, *precedence in rows if precedence == [*rows[0][1:]])


def storable_text(text: str) -> str:
    """Return the text with a replacement character for each that SQLite does not accept."""
    return text if text.isascii() and "\0" not in text else _UNSTORABLE.sub("\ufffd", text)


def directory_of(path: str) -> str:
    return path.rpartition("/")[0]


def placeholders(values: Sequence[Value]) -> str:
    return ", ".join("?" * len(values))
