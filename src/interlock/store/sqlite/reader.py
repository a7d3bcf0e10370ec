"""Reading the log from SQLite. Opened read-only, it cannot write, whatever it is asked."""

import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from interlock.core import canonical, ids
from interlock.core.ids import BlobRef, NodeId, RunId, SessionId
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope, decode_envelope
from interlock.core.session.head import decode_head
from interlock.core.session.plan import Stream
from interlock.store.failures import StoreUnusable
from interlock.store.log import (
    EarlierRequest,
    ListedSession,
    LocatedNode,
    ResumeRow,
    SessionFilter,
    Stats,
    WorkflowUsage,
)
from interlock.store.sqlite import schema
from interlock.store.sqlite.database import SqliteDatabase, Value, engine


class SqliteReader:
    def __init__(self, db: SqliteDatabase, *, may_be_unfinished: bool = False) -> None:
        self._db = db
        schema.check(db, may_be_unfinished=may_be_unfinished)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def snapshot(self, *, is_long: bool = False) -> Generator[None]:  # noqa: ARG002 (always may be)
        if self._db.is_in_transaction:  # inside another snapshot: what is read is of its moment
            yield
            return
        self._db.run("BEGIN")
        try:
            yield
        finally:
            self._db.run("COMMIT")

    def stream(self, session: SessionId) -> Stream | None:
        row = self._db.row("SELECT version, digest, head FROM stream WHERE session = ?", (session,))
        return _stream(session, *row) if row else None

    def locate(self, node: NodeId) -> LocatedNode | None:
        row = self._db.row(
            "SELECT s.session, s.version, s.digest, s.head, e.seq, e.body, e.digest, p.digest"
            " FROM node n JOIN stream s ON s.id = n.stream"
            " JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
            " JOIN event p ON p.stream = n.stream AND p.seq = n.seq - 1 WHERE n.id = ?",
            (ids.raw_bytes(node),),
        )
        if row is None:
            return None
        return LocatedNode(_stream(*row[:4]), ChainLink(*row[4:7]), previous_digest=row[7])

    def event_with_key(self, session: SessionId, key: str) -> Envelope | None:
        row = self._db.row(
            "SELECT e.body FROM stream s JOIN event_key k ON k.stream = s.id"
            " JOIN event e ON e.stream = k.stream AND e.seq = k.seq"
            " WHERE s.session = ? AND k.key = ?",
            (session, key),
        )
        return decode_envelope(row[0]) if row else None

    def events_with_keys(self, session: SessionId, keys: Sequence[str]) -> dict[str, Envelope]:
        marks = ", ".join("?" * len(keys))
        rows = self._db.rows(
            "SELECT k.key, e.body FROM stream s JOIN event_key k ON k.stream = s.id"
            " JOIN event e ON e.stream = k.stream AND e.seq = k.seq"
            f" WHERE s.session = ? AND k.key IN ({marks})",
            (session, *keys),
        )
        return {key: decode_envelope(body) for key, body in rows}

    def line_to(self, node: NodeId, *, steps: int) -> list[Envelope]:
        rows = self._db.rows(
            "WITH RECURSIVE line (depth, steps, stream, seq, parent) AS ("
            " SELECT 1, kind = 'step', stream, seq, parent FROM node WHERE id = ?"
            " UNION ALL SELECT line.depth + 1, line.steps + (n.kind = 'step'),"
            " n.stream, n.seq, n.parent"
            " FROM line JOIN node n ON n.id = line.parent WHERE line.steps < ?)"
            " SELECT e.body FROM line JOIN event e ON e.stream = line.stream AND e.seq = line.seq"
            " ORDER BY line.depth",
            (ids.raw_bytes(node), steps),
        )
        return [decode_envelope(body) for (body,) in rows]

    def checkpoints_beside(self, nodes: Sequence[NodeId], *, limit: int) -> list[Envelope]:
        marks = ", ".join("?" * len(nodes))
        rows = self._db.rows(
            "SELECT e.body FROM node n JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
            f" WHERE n.kind = 'checkpoint' AND n.parent IN ({marks}) ORDER BY n.seq DESC LIMIT ?",
            (*(ids.raw_bytes(node) for node in nodes), limit),
        )
        return [decode_envelope(body) for (body,) in rows]

    def next_steps(self, node: NodeId, *, limit: int) -> list[NodeId]:
        # A step that was accepted after blocked attempts hangs below those.
        rows = self._db.rows(
            "WITH RECURSIVE tries (id) AS (VALUES (?) UNION ALL SELECT n.id"
            " FROM tries JOIN node n ON n.parent = tries.id AND n.kind = 'blocked')"
            # In this order: left to itself, SQLite walks all nodes of the store.
            " SELECT n.id FROM tries CROSS JOIN node n ON n.parent = tries.id"
            " AND n.kind IN ('step', 'approval') ORDER BY n.seq DESC LIMIT ?",
            (ids.raw_bytes(node), limit),
        )
        return [ids.node_id(raw) for (raw,) in rows]

    def newest_below(self, node: NodeId) -> NodeId:
        raw = self._db.scalar(
            "WITH RECURSIVE below (id, seq) AS (SELECT id, seq FROM node WHERE id = ?"
            " UNION ALL SELECT n.id, n.seq FROM below CROSS JOIN node n ON n.parent = below.id"
            " AND n.kind != 'checkpoint') SELECT id FROM below ORDER BY seq DESC LIMIT 1",
            (ids.raw_bytes(node),),
        )
        return ids.node_id(raw)

    def earlier_request(self, key: BlobRef) -> EarlierRequest | None:
        row = self._db.row(
            "SELECT arguments, node, at_ms FROM request WHERE key = ?", (blob_hash(key),)
        )
        if row is None:
            return None
        return EarlierRequest(_ref(row[0]), ids.node_id(row[1]), row[2])

    def tail(self, stream: Stream) -> tuple[ChainLink, ...]:
        rows = self._db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = ? AND e.seq >= ? AND e.seq < ? ORDER BY e.seq",
            (stream.session, stream.version - 2, stream.version),
        )
        return tuple(ChainLink(*row) for row in rows)

    def links(self, session: SessionId) -> Iterator[ChainLink]:
        rows = self._db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = ? ORDER BY e.seq",
            (session,),
        )
        return (ChainLink(*row) for row in rows)

    def blob(self, ref: BlobRef) -> bytes:
        row = self._db.row("SELECT content FROM blob WHERE hash = ?", (blob_hash(ref),))
        content = _inflate(row[0]) if row else None
        if content is None or canonical.blob_ref(content) != ref:
            raise StoreUnusable(
                f"The stored content `{ref}` is {'missing' if row is None else 'damaged'}",
                "Nothing was changed. `interlock store verify` names the sessions that need it.",
            )
        return content

    def list_sessions(
        self, session_filter: SessionFilter, *, before: tuple[int, int] | None, limit: int
    ) -> list[ListedSession]:
        conditions, values = ["true"], list[Value]()
        if session_filter.is_archived is not None:
            conditions.append("is_archived = ?")
            values.append(int(session_filter.is_archived))
        if session_filter.workspace:
            conditions.append("workspace = ?")
            values.append(session_filter.workspace)
        if session_filter.workflow:
            conditions.append("stream IN (SELECT stream FROM resume WHERE workflow = ?)")
            values.append(session_filter.workflow)
        if session_filter.statuses:
            conditions.append(f"status IN ({', '.join('?' * len(session_filter.statuses))})")
            values += session_filter.statuses
        if session_filter.words:
            conditions.append(
                "stream IN (SELECT r.stream FROM resume_words w JOIN resume r ON r.id = w.rowid"
                " WHERE resume_words MATCH ?)"
            )
            values.append(_match_expression(session_filter.words, " AND "))
        if before:
            conditions.append("(at, stream) < (?, ?)")
            values += before
        rows = self._db.rows(
            # SQLite takes the other columns from the row that has the maximum.
            "WITH newest AS (SELECT stream, max(updated_ms) AS at, status, workspace,"
            " is_archived FROM resume GROUP BY stream UNION ALL SELECT stream, updated_ms,"
            " CASE status WHEN 'ended' THEN 'complete' ELSE 'open' END, workspace, is_archived"
            " FROM attended a WHERE NOT EXISTS"
            " (SELECT 1 FROM resume r WHERE r.stream = a.stream))"
            " SELECT s.session, s.version, s.digest, s.head, n.at, n.stream FROM"
            f" (SELECT * FROM newest WHERE {' AND '.join(conditions)}"
            " ORDER BY at DESC, stream DESC LIMIT ?) n"
            " JOIN stream s ON s.id = n.stream ORDER BY n.at DESC, n.stream DESC",
            (*values, limit),
        )
        return [ListedSession(_stream(*row[:4]), (row[4], row[5])) for row in rows]

    def usage(self) -> list[WorkflowUsage]:
        rows = self._db.rows(
            "SELECT workflow, count(DISTINCT CASE is_archived WHEN 0 THEN stream END),"
            " count(DISTINCT CASE is_archived WHEN 1 THEN stream END), max(updated_ms)"
            " FROM resume GROUP BY workflow"
        )
        return [WorkflowUsage(*row) for row in rows]

    def workspaces(self, *, limit: int) -> list[str]:
        rows = self._db.rows(
            "SELECT workspace FROM (SELECT workspace, updated_ms FROM resume"
            " UNION ALL SELECT workspace, updated_ms FROM attended)"
            " GROUP BY workspace ORDER BY max(updated_ms) DESC, workspace LIMIT ?",
            (limit,),
        )
        return [workspace for (workspace,) in rows]

    def links_before(self, session: SessionId, seq: int, *, limit: int) -> list[ChainLink]:
        rows = self._db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = ? AND e.seq < ? ORDER BY e.seq DESC LIMIT ?",
            (session, seq, limit),
        )
        return [ChainLink(*row) for row in rows]

    def change_marker(self) -> int:
        return self._db.scalar("PRAGMA data_version")

    def position(self) -> int:
        return self._db.scalar("SELECT max(position) FROM event") or 0

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]:
        rows = self._db.rows(
            "SELECT s.session, max(e.position) FROM event e JOIN stream s ON s.id = e.stream"
            " WHERE e.position > ? GROUP BY s.id",
            (position,),
        )
        return {SessionId(session): newest for session, newest in rows}

    def newest_runs(self, *, limit: int) -> list[ResumeRow]:
        return self._resume_rows(
            "WHERE r.is_archived = 0 ORDER BY r.updated_ms DESC LIMIT ?", (limit,)
        )

    def runs_with_approvals(self, *, limit: int) -> list[ResumeRow]:
        return self._resume_rows("WHERE r.approvals > 0 ORDER BY r.updated_ms LIMIT ?", (limit,))

    def count_open_approvals(self) -> int:
        return self._db.scalar("SELECT sum(approvals) FROM resume WHERE approvals > 0") or 0

    def rows(self, sessions: Sequence[SessionId]) -> list[ResumeRow]:
        marks = ", ".join("?" * len(sessions))
        return self._resume_rows(f"WHERE s.session IN ({marks})", tuple(sessions))

    def runs_with_words(self, words: Sequence[str], *, all_of: bool, limit: int) -> list[ResumeRow]:
        if not words:
            return []
        # The plus keeps SQLite from walking all sessions that are not archived instead of the
        # words.
        query = _match_expression(words, " AND " if all_of else " OR ")
        return self._resume_rows(
            "JOIN resume_words ON resume_words.rowid = r.id WHERE resume_words MATCH ?"
            " AND +r.is_archived = 0 ORDER BY resume_words.rowid DESC LIMIT ?",
            (query, limit),
        )

    def runs_at_git(self, *, branch: str | None, head: str | None, limit: int) -> list[ResumeRow]:
        rows: list[ResumeRow] = []
        for column, value in (("git_head", head), ("git_branch", branch)):
            if value is not None:
                rows += self._resume_rows(
                    f"WHERE r.{column} = ? AND +r.is_archived = 0"
                    " ORDER BY r.updated_ms DESC LIMIT ?",
                    (value, limit),
                )
        return rows

    def _resume_rows(self, clauses: str, values: Sequence[Value]) -> list[ResumeRow]:
        rows = self._db.rows(
            "SELECT s.session, r.title, r.workflow, r.status, r.step, r.steps_done,"
            " r.steps_skipped, r.step_count, r.recap, r.workspace, r.updated_ms, r.run, r.tip,"
            " r.git_branch, r.git_head, r.is_archived"
            f" FROM resume r JOIN stream s ON s.id = r.stream {clauses}",
            values,
        )
        return [ResumeRow(*row[:-1], is_archived=bool(row[-1])) for row in rows]

    def find_session(self, prefix: str) -> list[SessionId]:
        rows = self._db.rows(
            "SELECT session FROM stream WHERE session >= ? AND session < ?"
            " ORDER BY session LIMIT 10",
            (prefix, prefix + "\U0010ffff"),
        )
        return [session for (session,) in rows]

    def session_of_conversation(self, host: str, host_session: str) -> SessionId | None:
        return self._db.scalar(
            "SELECT s.session FROM host_session h JOIN stream s ON s.id = h.stream"
            " WHERE h.host = ? AND h.id = ?",
            (host, host_session),
        )

    def attended_sessions_in(self, workspace: str) -> list[SessionId]:
        rows = self._db.rows(
            "SELECT s.session FROM attended a JOIN stream s ON s.id = a.stream"
            " WHERE a.workspace = ? AND a.status != 'ended' ORDER BY a.updated_ms DESC LIMIT 20",
            (workspace,),
        )
        return [session for (session,) in rows]

    def find_run(self, prefix: str) -> list[tuple[RunId, SessionId]]:
        rows = self._db.rows(
            "SELECT r.run, s.session FROM resume r JOIN stream s ON s.id = r.stream"
            " WHERE r.run >= ? AND r.run < ? ORDER BY r.run LIMIT 10",
            (prefix, prefix + "\U0010ffff"),
        )
        return [(RunId(run), SessionId(session)) for run, session in rows]

    def all_sessions(self) -> list[SessionId]:
        return [session for (session,) in self._db.rows("SELECT session FROM stream ORDER BY id")]

    def requests(self) -> list[tuple[BlobRef, EarlierRequest]]:
        rows = self._db.rows("SELECT key, arguments, node, at_ms FROM request ORDER BY key")
        return [
            (_ref(key), EarlierRequest(_ref(arguments), ids.node_id(node), at_ms))
            for key, arguments, node, at_ms in rows
        ]

    def identity(self) -> str:
        status = self._db.path.stat()
        return f"{status.st_dev}:{status.st_ino}"

    def stats(self) -> Stats:
        path = self._db.path
        size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
        return Stats(
            sessions=self._db.scalar("SELECT count(*) FROM stream"),
            events=self._db.scalar("SELECT count(*) FROM event"),
            blobs=self._db.scalar("SELECT count(*) FROM blob"),
            size=size,
            engine=engine(),
            schema=schema.VERSION,
        )


def _match_expression(words: Sequence[str], operator: str) -> str:
    """Each word in quotes: what the user typed is text and never FTS syntax."""
    return operator.join('"' + word.replace('"', '""').replace("\0", "") + '" *' for word in words)


def blob_hash(ref: BlobRef) -> bytes:
    return bytes.fromhex(ref.removeprefix("sha256:"))


def _ref(digest: bytes) -> BlobRef:
    return BlobRef(f"sha256:{digest.hex()}")


def _inflate(content: bytes) -> bytes | None:
    try:
        return zlib.decompress(content)
    except zlib.error:
        return None


def _stream(session: str, version: int, digest: bytes, head: bytes) -> Stream:
    return Stream(SessionId(session), version, digest, decode_head(head))
