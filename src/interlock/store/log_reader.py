"""Reading an event log, whatever engine stores it. It is given no way to write."""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, overload

from interlock.core import canonical, ids
from interlock.core.ids import BlobRef, ProjectId, RunId, SessionId
from interlock.core.project_stream import (
    GENESIS,
    OutboxMessage,
    ProjectEntry,
    ProjectRow,
    ProjectRows,
    find_damage,
)
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope, decode_envelope
from interlock.core.session.head import Head
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead
from interlock.store import queries
from interlock.store.blob_cache import BlobCache
from interlock.store.failures import ContentMissing
from interlock.store.queries import blob_hash, blob_ref
from interlock.store.records import EarlierRequest, Stats
from interlock.store.session_index import SessionIndex
from interlock.store.shared_tables import SharedTables, read_shared_tables
from interlock.store.sql import Contents, Query, Rows, SqlDatabase, Texts

_PROJECT_ROWS = (
    "SELECT r.kind, r.key, r.seq, r.content FROM project p"
    " JOIN project_row r ON r.project = p.id WHERE p.name = ? AND r.kind = ANY (?)"
)
_WITHOUT_ANSWER = (
    "FROM project p JOIN project_row r ON r.project = p.id"
    " WHERE r.kind = ? AND NOT EXISTS (SELECT 1 FROM project_row a"
    " WHERE a.project = p.id AND a.kind = ? AND a.key = r.key)"
)


class ProjectReader:
    def __init__(self, db: SqlDatabase) -> None:
        self._database = db

    def projects(self) -> list[ProjectId]:
        """The projects that have a stream, in the order in which they began."""
        rows = self._database.read("SELECT name FROM project ORDER BY id")
        return [ProjectId(name) for (name,) in rows]

    def project_end(self, project: ProjectId) -> tuple[int, bytes]:
        """The number of its entries, and the digest of the last one."""
        rows = self._database.read("SELECT version, digest FROM project WHERE name = ?", (project,))
        return next(iter(rows), (0, GENESIS))

    def project_rows(self, project: ProjectId, kinds: Sequence[str]) -> ProjectRows:
        """The rows of these kinds, by kind and key."""
        ends, rows = self._database.read_all(
            [
                ("SELECT version FROM project WHERE name = ?", (project,)),
                (f"{_PROJECT_ROWS} ORDER BY r.kind, r.key", (project, Texts(kinds))),
            ]
        )
        return ProjectRows(ends[0][0] if ends else 0, tuple(ProjectRow(*row) for row in rows))

    def rows_of_projects(self, kinds: Sequence[str]) -> dict[ProjectId, ProjectRows]:
        """The rows of these kinds in all projects that have any, by kind and key."""
        rows = self._database.read(
            "SELECT p.name, p.version, r.kind, r.key, r.seq, r.content FROM project p"
            " JOIN project_row r ON r.project = p.id"
            " WHERE r.kind = ANY (?) ORDER BY p.id, r.kind, r.key",
            (Texts(kinds),),
        )
        ends: dict[ProjectId, int] = {}
        found: defaultdict[ProjectId, list[ProjectRow]] = defaultdict(list)
        for name, version, *row in rows:
            ends[name] = version
            found[name].append(ProjectRow(*row))
        return {name: ProjectRows(ends[name], tuple(own)) for name, own in found.items()}

    def rows_without_answer(
        self, kind: str, answers: str, *, limit: int = 1_000_000_000
    ) -> list[tuple[ProjectId, ProjectRow]]:
        """The rows of this kind to whose key there is none of the kind `answers`, oldest first."""
        rows = self._database.read(
            "SELECT p.name, r.kind, r.key, r.seq, r.content"
            f" {_WITHOUT_ANSWER} ORDER BY p.id, r.seq LIMIT ?",
            (kind, answers, limit),
        )
        return [(ProjectId(name), ProjectRow(*row)) for name, *row in rows]

    def count_without_answer(self, kind: str, answers: str) -> int:
        """Return the number of rows that `rows_without_answer` has without a limit."""
        rows = self._database.read(f"SELECT count(*) {_WITHOUT_ANSWER}", (kind, answers))
        return next(iter(rows))[0]

    def oldest_rows(
        self,
        project: ProjectId,
        kinds: Sequence[str],
        *,
        after: int = 0,
        limit: int = 1_000_000_000,
    ) -> list[ProjectRow]:
        """Return the oldest rows of these kinds that were written after entry `after`."""
        clauses = "AND r.seq > ? ORDER BY r.seq LIMIT ?"
        rows = self._database.read(
            f"{_PROJECT_ROWS} {clauses}", (project, Texts(kinds), after, limit)
        )
        return [ProjectRow(*row) for row in rows]

    def newest_rows(
        self, project: ProjectId, kinds: Sequence[str], *, limit: int
    ) -> list[ProjectRow]:
        """Return the newest rows of these kinds, oldest first."""
        clauses = "ORDER BY r.seq DESC LIMIT ?"
        rows = self._database.read(f"{_PROJECT_ROWS} {clauses}", (project, Texts(kinds), limit))
        return [ProjectRow(*row) for row in rows][::-1]

    def row_kinds(self, project: ProjectId, prefix: str) -> list[str]:
        """The kinds of the rows that begin so; `prefix` ends in a slash."""
        rows = self._database.read(
            "SELECT DISTINCT r.kind FROM project p JOIN project_row r ON r.project = p.id"
            " WHERE p.name = ? AND r.kind >= ? AND r.kind < ?",
            (project, prefix, f"{prefix[:-1]}0"),
        )
        return [kind for (kind,) in rows]

    def project_entries(
        self, project: ProjectId, *, after: int = 0, limit: int = 1_000_000_000
    ) -> Iterator[ProjectEntry]:
        """The entries after the one with the number `after`, oldest first."""
        rows = self._database.read(
            "SELECT e.seq, e.key, e.body, e.digest FROM project p"
            " JOIN project_entry e ON e.project = p.id"
            " WHERE p.name = ? AND e.seq > ? ORDER BY e.seq LIMIT ?",
            (project, after, limit),
        )
        return (ProjectEntry(*row) for row in rows)

    def project_damage(self) -> Iterator[tuple[ProjectId, str]]:
        """The projects whose streams are damaged, and in what way."""
        for project in self.projects():
            with self._database.snapshot(is_long=False):
                version, end = self.project_end(project)
                damage = find_damage(self.project_entries(project), version=version, end=end)
            if damage:
                yield project, damage

    def shared_tables(self) -> SharedTables:
        """Everything that belongs to no session."""
        return read_shared_tables(self._database)

    def outbox(self, topic: str | None = None, *, limit: int) -> list[OutboxMessage]:
        """The messages that nobody has acknowledged, of one topic or all, oldest first."""
        condition, values = ("WHERE topic = ?", (topic,)) if topic is not None else ("", ())
        rows = self._database.read(
            f"SELECT key, topic, content FROM outbox {condition} ORDER BY id LIMIT ?",
            (*values, limit),
        )
        return [OutboxMessage(*row) for row in rows]


A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class LogReader(SessionIndex, ProjectReader):
    """The reading half of a log."""

    def __init__(
        self, db: SqlDatabase, *, schema_version: int, cache: BlobCache | None = None
    ) -> None:
        SessionIndex.__init__(self, db)
        self._schema_version = schema_version
        self._cache = cache or BlobCache()

    def close(self) -> None:
        self._database.close()

    def snapshot(self, *, is_long: bool = False) -> AbstractContextManager[None]:
        """Everything read inside is of one moment, and costs less than separate reads.

        `is_long`: other work may be done inside, for as long as it takes.
        """
        return self._database.snapshot(is_long=is_long)

    @overload
    def ask(self, first: Query[A], /) -> A: ...
    @overload
    def ask(self, first: Query[A], second: Query[B], /) -> tuple[A, B]: ...
    @overload
    def ask(self, first: Query[A], second: Query[B], third: Query[C], /) -> tuple[A, B, C]: ...
    @overload
    def ask(
        self, first: Query[A], second: Query[B], third: Query[C], fourth: Query[D], /
    ) -> tuple[A, B, C, D]: ...
    def ask(self, *asked: Query[Any]) -> Any:
        """Answer questions as of one moment, in one round trip at most."""
        statements = [statement for query in asked for statement in query.statements]
        rows = iter(self._database.read_all(statements) if statements else ())
        answers = [query.decode([next(rows) for _ in query.statements]) for query in asked]
        return answers[0] if len(answers) == 1 else tuple(answers)

    def stream(self, session: SessionId, run: RunId | None = None) -> Stream | None:
        """The end of a session's stream, with the head of one of its runs if that is named."""
        return self.ask(queries.end_of_stream(session, run))

    def known_stream(self, session: SessionId, run: RunId | None = None) -> Stream:
        """Return the end of the stream of an existing session."""
        stream = self.stream(session, run)
        assert stream is not None, f"{session} is there"
        return stream

    def head(self, session: SessionId) -> Head:
        """Return the head of an existing session."""
        head = self.known_stream(session).head
        assert head is not None, "a stored stream has a head"
        return head

    def history(self, session: SessionId) -> list[Envelope]:
        """All events of a session, unchecked."""
        return [decode_envelope(link.body) for link in self.links(session)]

    def runs(self, session: SessionId, *, latest: int = 1_000_000_000) -> list[RunHead]:
        """The heads of the runs of a session, in the order in which they were started.

        `latest`: only so many of those that were started last.
        """
        return self.ask(queries.latest_runs(session, limit=latest))

    def event_with_key(self, session: SessionId, key: str) -> Envelope | None:
        """The event with the key `key`, if there is one."""
        return self.events_with_keys(session, (key,)).get(key)

    def events_with_keys(self, session: SessionId, keys: Sequence[str]) -> dict[str, Envelope]:
        """The events with these keys, as far as there are any."""
        return self.ask(queries.events_with_keys(session, keys))

    def blobs(self, refs: Iterable[BlobRef]) -> Query[dict[BlobRef, bytes]]:
        """The contents of blobs. Nothing is read of those that were used lately.

        The answer raises `ContentMissing` if one is missing or does not match.
        """
        known: dict[BlobRef, bytes] = {}
        missing: list[BlobRef] = []
        for ref in dict.fromkeys(refs):
            content = self._cache.get(ref)
            if content is None:
                missing.append(ref)
            else:
                known[ref] = content

        def decode(results: Sequence[Rows]) -> dict[BlobRef, bytes]:
            stored = {blob_ref(digest): content for rows in results for digest, content in rows}
            contents = {ref: _inflate(ref, stored.get(ref)) for ref in missing}
            self._cache.add(contents)
            return known | contents

        statement = (
            "SELECT hash, content FROM blob WHERE hash = ANY (?)",
            (Contents(map(blob_hash, missing)),),
        )
        return Query((statement,) if missing else (), decode)

    def blob(self, ref: BlobRef) -> bytes:
        """The content of a blob. Raises `ContentMissing` if it is missing or does not match."""
        return self.ask(self.blobs((ref,)))[ref]

    def stored_blob(self, ref: BlobRef) -> bytes:
        """The same as it is on the disk now, whether it was read before or not."""
        row = self._row("SELECT content FROM blob WHERE hash = ?", (blob_hash(ref),))
        return _inflate(ref, row[0] if row else None)

    def earlier_request(self, key: BlobRef) -> EarlierRequest | None:
        """The last call with this request key, if there was one."""
        return self.ask(queries.earlier_request(key))

    def links(self, session: SessionId) -> Iterator[ChainLink]:
        """All links of the stream from its start, as stored and unchecked."""
        return self._links(session, "ORDER BY e.seq")

    def links_before(self, session: SessionId, seq: int, *, limit: int) -> list[ChainLink]:
        """The newest links of the stream that come before `seq`, newest first."""
        return [*self._links(session, "AND e.seq < ? ORDER BY e.seq DESC LIMIT ?", seq, limit)]

    def links_between(self, session: SessionId, start: int, end: int) -> list[ChainLink]:
        """The links of the stream from `start` to just before `end`."""
        return [*self._links(session, "AND e.seq >= ? AND e.seq < ? ORDER BY e.seq", start, end)]

    def _links(self, session: SessionId, clauses: str, *values: int) -> Iterator[ChainLink]:
        rows = self._database.read(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            f" WHERE s.session = ? {clauses}",
            (session, *values),
        )
        return (ChainLink(*row) for row in rows)

    def change_marker(self) -> int:
        """A number that changes whenever something was written."""
        return self._database.change_marker()

    def position(self) -> int:
        """The position of the newest event in the whole store."""
        return self._database.position()

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]:
        """The sessions with events after this position, each with that of its newest event."""
        return self._database.sessions_changed_since(position)

    def session_of_conversation(self, host: str, host_session: str) -> SessionId | None:
        """The session that a client's conversation belongs to: the one that bound it last."""
        conversation = (host, host_session)
        return self.ask(queries.sessions_of_conversations([conversation])).get(conversation)

    def requests(self) -> list[tuple[BlobRef, EarlierRequest]]:
        """All that `earlier_request` can return, by request key."""
        rows = self._database.read("SELECT key, arguments, node, at_ms FROM request ORDER BY key")
        return [
            (blob_ref(key), EarlierRequest(blob_ref(arguments), ids.node_id(node), at_ms))
            for key, arguments, node, at_ms in rows
        ]

    def identity(self) -> str:
        """The same for two readers exactly if they read the same store, whatever its label."""
        return self._database.identity()

    def session_count(self) -> int:
        return self._scalar("SELECT count(*) FROM stream")

    def stats(self) -> Stats:
        return Stats(
            sessions=self.session_count(),
            events=self._scalar("SELECT count(*) FROM event"),
            blobs=self._scalar("SELECT count(*) FROM blob"),
            size=self._database.size(),
            engine=self._database.engine(),
            schema=self._schema_version,
        )


def _inflate(ref: BlobRef, stored: bytes | None) -> bytes:
    try:
        content = zlib.decompress(stored) if stored is not None else None
    except zlib.error:
        content = None
    if content is None or canonical.blob_ref(content) != ref:
        raise ContentMissing(
            f"The stored content `{ref}` is {'missing' if stored is None else 'damaged'}",
            "Nothing was changed. `interlock store verify` names the sessions that need it.",
        )
    return content
