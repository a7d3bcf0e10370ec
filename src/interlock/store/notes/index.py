"""Writing the index of a notes folder: the rows of a note are put and removed together.

A note is a row of `note`, under whose id there are rows in `observation`, `link`, `tag` and `key`,
and one in the full-text table `words`. `put` replaces all of them and keeps the id. Links are not
resolved here but when they are read. A transaction that changed a note counts up `mark`, by which
other processes see that something is new.

The caller holds the folder's lock, around the change of a file as well as around the transaction.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.core.canonical import Json
from interlock.core.notes import fts_query, keys
from interlock.core.notes.note import Metadata, Note
from interlock.core.notes.stamp import FileStamp
from interlock.core.notes.status import status_of
from interlock.store.lock import WriteLock
from interlock.store.notes import schema
from interlock.store.notes.links import directory_of, placeholders, storable_text
from interlock.store.notes.reader import NoteReader, fold_tag
from interlock.store.notes.rows import NoteChangeRequest
from interlock.store.sqlite.database import Value

_ROWS_MAX = 1_000  # SQLite takes 32,766 variables in a statement
_PART_TABLES = ("observation", "link", "tag", "key")


class NoteIndex(NoteReader):
    def __init__(self, path: Path, lock: WriteLock) -> None:
        """
        Raises:
            StoreFailure: it can neither be used nor be created.
        """
        super().__init__(schema.open_index(path, lock))
        self._lock = lock
        self._is_changed = False

    def reopen(self) -> None:
        """Continue with the file that has the name now. The caller does not hold the lock."""
        self.close()
        super().__init__(schema.open_index(self._db.path, self._lock))

    def renew(self) -> None:
        """Replace this index, which is damaged, by an empty one. The caller does not hold the lock.

        If another process has already replaced it, its new index is used.
        """
        self.close()
        with self._lock.hold():
            if self.is_current:
                schema.discard(self._db.path)
        super().__init__(schema.open_index(self._db.path, self._lock))

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Do all of the block or nothing. Inside another transaction it is a part of that."""
        if self._db.is_in_transaction:
            yield
            return
        self._db.run("BEGIN IMMEDIATE")
        self._is_changed = False
        try:
            yield
            if self._is_changed:
                self._db.run("UPDATE mark SET value = value + 1")
            self._db.run("COMMIT")
        except BaseException:
            # A full disk may have rolled it back already.
            if self._db.is_in_transaction:
                self._db.run("ROLLBACK")
            raise

    def put(
        self,
        path: str,
        note: Note,
        *,
        digest: str,
        stamp: FileStamp,
        is_racy: bool,
        problem: str = "",
    ) -> None:
        """Store what the file says now, in place of what it said before.

        Args:
            path: The path below the folder.
            note: The note that was parsed from the file.
            digest: The digest of its bytes; empty if it was not read.
            stamp: The stamp from before it was read.
            is_racy: Whether the stamp says nothing about the content, so that it is read again.
            problem: The reason it was not read. The note then has a title, and no words.
        """
        front_json, encoding_problem = _front_json(note.front.values)
        row: tuple[Value, ...] = (
            path,
            directory_of(path),
            keys.folded_path(path),
            storable_text(note.title),
            storable_text(note.type),
            status_of(note) or "",
            storable_text(note.permalink),
            storable_text(keys.key_of(note.permalink)),
            front_json,
            _tags_json(note.tags),
            storable_text(problem or note.front.problem or encoding_problem),
            digest,
            stamp.size,
            stamp.modified_ms,
            stamp.mtime_ns,
            stamp.ctime_ns,
            stamp.ino,
            int(is_racy),
        )
        with self.transaction():
            self._is_changed = True
            id_ = self._clear_parts(path)
            if id_ is not None:
                self._db.run("DELETE FROM note WHERE id = ?", (id_,))
            id_ = self._db.scalar(
                f"INSERT INTO note VALUES (?, {placeholders(row)}) RETURNING id", (id_, *row)
            )
            self._put_parts(id_, path, note)
            if not problem:
                self._put_words(id_, note)

    def restamp(self, path: str, stamp: FileStamp, *, digest: str, is_racy: bool) -> bool:
        """Store the stamp of a file that still has this digest; False if the row has another."""
        with self.transaction():
            row = self._db.row(
                "SELECT modified_ms FROM note WHERE path = ? AND digest = ?", (path, digest)
            )
            if row is None:
                return False
            self._is_changed = self._is_changed or row[0] != stamp.modified_ms
            self._db.run(
                "UPDATE note SET mtime_ns = ?, ctime_ns = ?, size = ?, ino = ?, is_racy = ?,"
                " modified_ms = ? WHERE path = ?",
                (
                    stamp.mtime_ns,
                    stamp.ctime_ns,
                    stamp.size,
                    stamp.ino,
                    int(is_racy),
                    stamp.modified_ms,
                    path,
                ),
            )
            return True

    def remove(self, paths: Iterable[str]) -> None:
        with self.transaction():
            for path in paths:
                id_ = self._clear_parts(path)
                if id_ is not None:
                    self._is_changed = True
                    self._db.run("DELETE FROM note WHERE id = ?", (id_,))

    def erase(self, path: str) -> None:
        """Remove the note so that nothing of it is left in the file."""
        self._db.run("PRAGMA secure_delete = on")
        self.remove([path])
        # Deleting from the word index only marks what is gone; merging it drops the words.
        self._db.run("INSERT INTO words (words) VALUES ('optimize')")
        self._db.run("PRAGMA wal_checkpoint(truncate)")
        self._db.run("PRAGMA secure_delete = off")

    def put_request(self, request: NoteChangeRequest) -> None:
        """Store the call."""
        with self.transaction():
            self._db.run(
                "INSERT OR REPLACE INTO request"
                " (key, arguments, at_ms, path, before, answer, caller, is_done)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                msgspec.structs.astuple(request),
            )

    def finish_request(self, key: str) -> None:
        """Record that the file was changed as the call says."""
        with self.transaction():
            self._db.run("UPDATE request SET is_done = 1 WHERE key = ?", (key,))

    def withdraw_request(self, key: str) -> None:
        with self.transaction():
            self._db.run("DELETE FROM request WHERE key = ?", (key,))

    def forget_requests(self, *, before_ms: int, caller: str, path: str) -> None:
        """Delete old requests, and those without a name that the caller made for this note."""
        with self.transaction():
            self._db.run(
                "DELETE FROM request WHERE at_ms < ? OR (caller = ? AND path = ?)",
                (before_ms, caller, path),
            )

    def _clear_parts(self, path: str) -> int | None:
        """Delete all of the note's rows except its row of `note`, and return the id of that."""
        id_ = self._db.scalar("SELECT id FROM note WHERE path = ?", (path,))
        if id_ is not None:
            for table in _PART_TABLES:
                self._db.run(f"DELETE FROM {table} WHERE note = ?", (id_,))
            self._db.run("DELETE FROM words WHERE rowid = ?", (id_,))
        return id_

    def _put_parts(self, id_: int, path: str, note: Note) -> None:
        self._insert(
            "observation",
            [
                (
                    id_,
                    nr,
                    observation.line,
                    storable_text(observation.category),
                    storable_text(observation.text),
                    _tags_json(observation.tags),
                    storable_text(observation.context),
                )
                for nr, observation in enumerate(note.observations)
            ],
        )
        self._insert(
            "link",
            [
                (
                    id_,
                    nr,
                    link.line,
                    storable_text(link.kind),
                    target,
                    keys.key_of(target),
                    storable_text(link.context),
                )
                for nr, link in enumerate(note.links)
                for target in (storable_text(link.target),)
            ],
        )
        tags = {fold_tag(storable_text(tag)) for tag in note.tags} - {""}
        self._insert("tag", [(tag, id_) for tag in sorted(tags)])
        key_ranks = keys.keys_of(
            path, title=storable_text(note.title), permalink=storable_text(note.permalink)
        )
        self._insert("key", [(key, id_, rank) for key, rank in sorted(key_ranks.items())])

    def _put_words(self, id_: int, note: Note) -> None:
        texts = (note.title, " ".join(note.tags), note.body)
        self._db.run(
            "INSERT INTO words (rowid, title, tags, body) VALUES (?, ?, ?, ?)",
            (id_, *(fts_query.text_for_index(storable_text(text)) for text in texts)),
        )

    def _insert(self, table: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert all rows with as few statements as SQLite's limit on variables allows."""
        for first in range(0, len(rows), _ROWS_MAX):
            chunk = rows[first : first + _ROWS_MAX]
            row_placeholders = ", ".join([f"({placeholders(chunk[0])})"] * len(chunk))
            values = [value for row in chunk for value in row]
            self._db.run(f"INSERT INTO {table} VALUES {row_placeholders}", values)


def _tags_json(tags: Sequence[str]) -> str:
    return msgspec.json.encode([storable_text(tag) for tag in tags]).decode()


def _front_json(values: Metadata) -> tuple[str, str]:
    """Return the frontmatter as JSON, or empty JSON and the reason."""
    try:
        return msgspec.json.encode(values).decode(), ""
    except UnicodeEncodeError:
        return _cleaned_front_json(values)
    except RecursionError:
        return "{}", "its frontmatter is nested too deeply"


def _cleaned_front_json(values: Metadata) -> tuple[str, str]:
    try:
        return msgspec.json.encode(_clean_json(values)).decode(), ""
    except RecursionError:
        return "{}", "its frontmatter is nested too deeply"


def _clean_json(value: Json) -> Json:
    match value:
        case str():
            return storable_text(value)
        case list():
            return [_clean_json(item) for item in value]
        case dict():
            return {storable_text(key): _clean_json(item) for key, item in value.items()}
        case _:
            return value
