"""The SQLite file of a log: what SQLite does differently from other engines."""

import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import msgspec

from interlock.core.ids import SessionId
from interlock.core.session.run_head import decode_run_head
from interlock.store.blob_cache import BlobCache
from interlock.store.failures import StoreUnusable
from interlock.store.index_rows import words_of
from interlock.store.lock import WriteLock
from interlock.store.log_reader import LogReader
from interlock.store.sql import LEFT_FIRST, Contents, Numbers, Rows, Statement, Texts, Value
from interlock.store.sqlite import schema
from interlock.store.sqlite.database import SqliteDatabase

_LIST = re.compile(r"= ANY \(\?\)")
_HEX = re.compile(r"encode\((\S+), 'hex'\)")
_LIKE = re.compile(r"convert_from\((\S+), 'UTF8'\) COLLATE \"C\" ILIKE")
_ITEMS = {
    Texts: "IN (SELECT value FROM json_each(?))",
    Numbers: "IN (SELECT value FROM json_each(?))",
    Contents: "IN (SELECT unhex(value) FROM json_each(?))",
}


class SqliteLogDatabase(SqliteDatabase):
    def read(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]:
        kinds = tuple(type(value) for value in values if isinstance(value, list))
        if kinds:
            values = tuple(map(_as_json, values))
        return self.rows(_sqlite_form(sql, kinds), values)

    def read_all(self, statements: Sequence[Statement]) -> list[Rows]:
        with self.snapshot(is_long=False) if len(statements) > 1 else nullcontext():
            return [list(self.read(*statement)) for statement in statements]

    @contextmanager
    def snapshot(self, *, is_long: bool) -> Generator[None]:  # noqa: ARG002 (always may be)
        if self.is_in_transaction:
            yield
            return
        self.run("BEGIN")
        try:
            yield
        finally:
            self.run("COMMIT")

    def runs_with_words(
        self, words: Sequence[str], *, all_of: bool, newest: int | None = None
    ) -> tuple[str, Sequence[Value]]:
        """The words of runs that were changed lately are not indexed yet, and compared one by one.

        In the same statement, so that a run whose words become due meanwhile is not missed.
        """
        self.add_function("has_words", _has_words)
        # The index is walked from its end, and no farther than needed: most runs may match.
        statement = (
            "SELECT id FROM (SELECT r.id FROM run_words w CROSS JOIN run r ON r.id = w.rowid"
            " CROSS JOIN stream s ON s.id = r.stream"
            " WHERE w.run_words MATCH ? AND NOT r.are_words_due AND (? < 0 OR NOT s.is_archived)"
            " ORDER BY w.rowid DESC LIMIT ?)"
            " UNION ALL SELECT id FROM run WHERE are_words_due AND has_words(head, ?, ?)"
        )
        expression, typed = match_expression(words, all_of=all_of), msgspec.json.encode(words)
        limit = -1 if newest is None else newest
        return statement, (expression, limit, limit, typed.decode(), all_of)

    def change_marker(self) -> int:
        return self.scalar("PRAGMA data_version")

    def position(self) -> int:
        return self.scalar("SELECT max(position) FROM event") or 0

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]:
        rows = self.rows(
            "SELECT s.session, max(e.position) FROM event e JOIN stream s ON s.id = e.stream"
            " WHERE e.position > ? GROUP BY s.id",
            (position,),
        )
        return {SessionId(session): newest for session, newest in rows}

    def identity(self) -> str:
        status = self.path.stat()
        return f"{status.st_dev}:{status.st_ino}"

    def size(self) -> int:
        return sum(file.stat().st_size for file in self.path.parent.glob(f"{self.path.name}*"))

    def engine(self) -> str:
        return f"SQLite {apsw.sqlite_lib_version()}"


class WritableSqliteLogDatabase(SqliteLogDatabase):
    """The file as those who write to it open it, one process at a time."""

    clock_ms = "monotonic_ms()"
    """The clock of the machine: for all processes the same, and it never jumps. A function, so that
    it is read inside of the transaction."""
    does_clock_restart = True

    def __init__(self, path: Path, *, flags: int) -> None:
        self.lock = WriteLock(path.with_name(path.name + ".lock"))
        super().__init__(path, flags=flags)
        self.add_function("monotonic_ms", _monotonic_ms)

    def write_all(self, statements: Sequence[Statement]) -> list[Rows]:
        with nullcontext() if self.is_in_transaction else self.transaction():
            return [list(self.read(*statement)) for statement in statements]

    @contextmanager
    def transaction(self) -> Generator[None]:
        with self.lock.hold():
            self.run("BEGIN IMMEDIATE")
            try:
                # Another process may have brought the file forward since this one opened it.
                schema.check_version(self, self.scalar("PRAGMA user_version"))
                yield
                self.require_transaction()
                self.run("COMMIT")
            except BaseException:
                # A full disk or a failed write may have rolled the transaction back already.
                if self.is_in_transaction:
                    self.run("ROLLBACK")
                raise

    def require_transaction(self) -> None:
        """Raise if a failing disk has ended the transaction: what follows would stand alone."""
        if not self.is_in_transaction:
            raise StoreUnusable(
                "What was written together with this could not be written",
                "Nothing was recorded. Check the disk, then repeat the call: it is recorded once.",
            )

    def close(self) -> None:
        super().close()
        self.lock.close()


def _has_words(head: bytes, typed: str, all_of: int) -> int:
    """Whether a run has all or some of the typed words, which are a list in JSON."""
    from interlock.store.fulltext import has_words  # noqa: PLC0415 (most processes search nothing)

    texts = words_of(decode_run_head(head))
    return has_words(texts, msgspec.json.decode(typed, type=list[str]), all_of=bool(all_of))


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def open_reader(
    path: Path, *, may_be_unfinished: bool = False, cache: BlobCache | None = None
) -> LogReader:
    """Open a store that exists, through a connection that cannot write."""
    db = SqliteLogDatabase.read_only(path)
    schema.check(db, may_be_unfinished=may_be_unfinished)
    return LogReader(db, schema_version=schema.VERSION, cache=cache)


def match_expression(words: Sequence[str], *, all_of: bool) -> str:
    """Each word in quotes: what the user typed is text and never FTS syntax."""
    terms = ('"' + word.replace('"', '""').replace("\0", "") + '" *' for word in words)
    return (" AND " if all_of else " OR ").join(terms)


@cache
def _sqlite_form(sql: str, kinds: tuple[type, ...]) -> str:
    """Return the statement in the form of SQLite, which takes lists of these kinds."""
    kinds_left = iter(kinds)
    sql = sql.replace(LEFT_FIRST, "CROSS JOIN").removesuffix(" FOR UPDATE")
    sql = _LIKE.sub(r"CAST(\1 AS TEXT) LIKE", sql)
    return _HEX.sub(r"lower(hex(\1))", _LIST.sub(lambda _: _ITEMS[next(kinds_left)], sql))


def _as_json(value: Value) -> Value:
    if isinstance(value, Contents):
        value = Texts(content.hex() if content else None for content in value)
    return msgspec.json.encode(value).decode() if isinstance(value, list) else value
