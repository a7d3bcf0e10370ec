"""Reading the log from PostgreSQL. The connection is read-only, so it cannot write."""

import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

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
from interlock.store.postgres import schema
from interlock.store.postgres.address import PostgresAddress
from interlock.store.postgres.database import PostgresDatabase, engine
from interlock.store.postgres.fulltext import to_tsquery
from interlock.store.postgres.values import Contents, Texts, Value

ASK_SECONDS = 5.0
"""The longest time without a query: something on the way may not pass on notices."""


class PostgresReader:
    def __init__(self, db: PostgresDatabase) -> None:
        self.db = db
        self._position, self._ask_at = 0, 0.0

    @classmethod
    def open_at(
        cls,
        at: PostgresAddress,
        *,
        make: Callable[[], None] | None = None,
        may_be_unfinished: bool = False,
    ) -> "PostgresReader":
        """`make` makes or migrates the store: a reader needs somebody else to do it."""
        check = partial(schema.require_store, make=make, may_be_unfinished=may_be_unfinished)
        return cls(PostgresDatabase(at, is_read_only=True, on_connected=check))

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def snapshot(self, *, is_long: bool = False) -> Generator[None]:
        if self.db.is_in_transaction:  # inside another snapshot: what is read is of its moment
            yield
            return
        self.db.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            if is_long:
                self.db.run("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield
        finally:
            self.db.rollback()  # there is nothing to keep

    def stream(self, session: SessionId) -> Stream | None:
        row = self.db.row("SELECT version, digest, head FROM stream WHERE session = %s", (session,))
        return _stream(session, *row) if row else None

    def locate(self, node: NodeId) -> LocatedNode | None:
        row = self.db.row(
            "SELECT s.session, s.version, s.digest, s.head, e.seq, e.body, e.digest, p.digest"
            " FROM node n JOIN stream s ON s.id = n.stream"
            " JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
            " JOIN event p ON p.stream = n.stream AND p.seq = n.seq - 1 WHERE n.id = %s",
            (ids.raw_bytes(node),),
        )
        if row is None:
            return None
        return LocatedNode(_stream(*row[:4]), ChainLink(*row[4:7]), previous_digest=row[7])

    def event_with_key(self, session: SessionId, key: str) -> Envelope | None:
        return next(iter(self.events_with_keys(session, (key,)).values()), None)

    def events_with_keys(self, session: SessionId, keys: Sequence[str]) -> dict[str, Envelope]:
        rows = self.db.rows(
            "SELECT e.key, e.body FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = %s AND e.key = ANY (%s)",
            (session, Texts(keys)),
        )
        return {key: decode_envelope(body) for key, body in rows}

    def line_to(self, node: NodeId, *, steps: int) -> list[Envelope]:
        rows = self.db.rows(
            "WITH RECURSIVE line (depth, steps, stream, seq, parent) AS ("
            " SELECT 1, (kind = 'step')::int, stream, seq, parent FROM node WHERE id = %s"
            " UNION ALL SELECT line.depth + 1, line.steps + (n.kind = 'step')::int,"
            " n.stream, n.seq, n.parent"
            " FROM line JOIN node n ON n.id = line.parent WHERE line.steps < %s)"
            " SELECT e.body FROM line JOIN event e ON e.stream = line.stream AND e.seq = line.seq"
            " ORDER BY line.depth",
            (ids.raw_bytes(node), steps),
        )
        return [decode_envelope(body) for (body,) in rows]

    def checkpoints_beside(self, nodes: Sequence[NodeId], *, limit: int) -> list[Envelope]:
        rows = self.db.rows(
            "SELECT e.body FROM node n JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
            " WHERE n.kind = 'checkpoint' AND n.parent = ANY (%s)"
            " ORDER BY n.seq DESC LIMIT %s",
            (Contents(ids.raw_bytes(node) for node in nodes), limit),
        )
        return [decode_envelope(body) for (body,) in rows]

    def next_steps(self, node: NodeId, *, limit: int) -> list[NodeId]:
        # A step that was accepted after blocked attempts hangs below those.
        rows = self.db.rows(
            "WITH RECURSIVE tries (id) AS (SELECT %s::bytea UNION ALL SELECT n.id"
            " FROM tries JOIN node n ON n.parent = tries.id AND n.kind = 'blocked')"
            " SELECT n.id FROM tries JOIN node n ON n.parent = tries.id"
            " AND n.kind IN ('step', 'approval') ORDER BY n.seq DESC LIMIT %s",
            (ids.raw_bytes(node), limit),
        )
        return [ids.node_id(raw) for (raw,) in rows]

    def newest_below(self, node: NodeId) -> NodeId:
        raw = self.db.scalar(
            "WITH RECURSIVE below (id, seq) AS (SELECT id, seq FROM node WHERE id = %s"
            " UNION ALL SELECT n.id, n.seq FROM below JOIN node n ON n.parent = below.id"
            " AND n.kind != 'checkpoint') SELECT id FROM below ORDER BY seq DESC LIMIT 1",
            (ids.raw_bytes(node),),
        )
        return ids.node_id(raw)

    def earlier_request(self, key: BlobRef) -> EarlierRequest | None:
        row = self.db.row(
            "SELECT arguments, node, at_ms FROM request WHERE key = %s", (blob_hash(key),)
        )
        if row is None:
            return None
        return EarlierRequest(_ref(row[0]), ids.node_id(row[1]), row[2])

    def tail(self, stream: Stream) -> tuple[ChainLink, ...]:
        rows = self.db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = %s AND e.seq >= %s AND e.seq < %s ORDER BY e.seq",
            (stream.session, stream.version - 2, stream.version),
        )
        return tuple(ChainLink(*row) for row in rows)

    def links(self, session: SessionId) -> Iterator[ChainLink]:
        rows = self.db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = %s ORDER BY e.seq",
            (session,),
        )
        return (ChainLink(*row) for row in rows)

    def links_before(self, session: SessionId, seq: int, *, limit: int) -> list[ChainLink]:
        rows = self.db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = %s AND e.seq < %s ORDER BY e.seq DESC LIMIT %s",
            (session, seq, limit),
        )
        return [ChainLink(*row) for row in rows]

    def blob(self, ref: BlobRef) -> bytes:
        row = self.db.row("SELECT content FROM blob WHERE hash = %s", (blob_hash(ref),))
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
            conditions.append("is_archived = %s")
            values.append(session_filter.is_archived)
        if session_filter.workspace:
            conditions.append("workspace = %s")
            values.append(session_filter.workspace)
        if session_filter.workflow:
            conditions.append("stream IN (SELECT stream FROM resume WHERE workflow = %s)")
            values.append(session_filter.workflow)
        if session_filter.statuses:
            conditions.append("status = ANY (%s)")
            values.append(Texts(session_filter.statuses))
        if session_filter.words:
            conditions.append("stream IN (SELECT stream FROM resume WHERE words @@ %s::tsquery)")
            values.append(to_tsquery(session_filter.words, all_of=True))
        if before:
            conditions.append("(at, stream) < (%s, %s)")
            values += before
        rows = self.db.rows(
            "WITH newest AS ((SELECT DISTINCT ON (stream) stream, updated_ms AS at, status,"
            " workspace, is_archived FROM resume ORDER BY stream, updated_ms DESC, id DESC)"
            " UNION ALL SELECT stream, updated_ms,"
            " CASE status WHEN 'ended' THEN 'complete' ELSE 'open' END, workspace, is_archived"
            " FROM attended a WHERE NOT EXISTS"
            " (SELECT FROM resume r WHERE r.stream = a.stream))"
            " SELECT s.session, s.version, s.digest, s.head, n.at, n.stream FROM"
            f" (SELECT * FROM newest WHERE {' AND '.join(conditions)}"
            " ORDER BY at DESC, stream DESC LIMIT %s) n"
            " JOIN stream s ON s.id = n.stream ORDER BY n.at DESC, n.stream DESC",
            (*values, limit),
        )
        return [ListedSession(_stream(*row[:4]), (row[4], row[5])) for row in rows]

    def usage(self) -> list[WorkflowUsage]:
        rows = self.db.rows(
            "SELECT workflow, count(DISTINCT stream) FILTER (WHERE NOT is_archived),"
            " count(DISTINCT stream) FILTER (WHERE is_archived), max(updated_ms)"
            ' FROM resume GROUP BY workflow ORDER BY workflow COLLATE "C"'
        )
        return [WorkflowUsage(*row) for row in rows]

    def workspaces(self, *, limit: int) -> list[str]:
        rows = self.db.rows(
            "SELECT workspace FROM (SELECT workspace, updated_ms FROM resume"
            " UNION ALL SELECT workspace, updated_ms FROM attended) used"
            " GROUP BY workspace ORDER BY max(updated_ms) DESC, workspace LIMIT %s",
            (limit,),
        )
        return [workspace for (workspace,) in rows]

    def change_marker(self) -> int:
        """The position, queried only after a notice of the server, or after a while.

        A caller may look four times a second, on many machines, at a store where nothing happens.
        """
        if self.db.is_in_transaction:
            return self.position()
        if self.db.has_notification(self.db.at.quoted_schema) or time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_SECONDS
            return self.position()
        return self._position

    def position(self) -> int:
        self._position = self.db.scalar("SELECT position FROM latest")
        return self._position

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]:
        rows = self.db.rows(
            "SELECT s.session, c.position FROM change c JOIN stream s ON s.id = c.stream"
            " WHERE c.position > %s",
            (position,),
        )
        return {SessionId(session): newest for session, newest in rows}

    def newest_runs(self, *, limit: int) -> list[ResumeRow]:
        return self._resume_rows(
            "WHERE NOT r.is_archived ORDER BY r.updated_ms DESC LIMIT %s", (limit,)
        )

    def runs_with_approvals(self, *, limit: int) -> list[ResumeRow]:
        return self._resume_rows("WHERE r.approvals > 0 ORDER BY r.updated_ms LIMIT %s", (limit,))

    def count_open_approvals(self) -> int:
        return int(
            self.db.scalar("SELECT sum(approvals)::bigint FROM resume WHERE approvals > 0") or 0
        )

    def rows(self, sessions: Sequence[SessionId]) -> list[ResumeRow]:
        return self._resume_rows("WHERE s.session = ANY (%s)", (Texts(sessions),))

    def runs_with_words(self, words: Sequence[str], *, all_of: bool, limit: int) -> list[ResumeRow]:
        query = to_tsquery(words, all_of=all_of)
        if not query:
            return []
        # Materialized: otherwise rare words are looked for by walking through all runs.
        return self._resume_rows(
            "WHERE r.id IN (WITH found AS MATERIALIZED (SELECT id FROM resume"
            " WHERE words @@ %s::tsquery AND NOT is_archived)"
            " SELECT id FROM found ORDER BY id DESC LIMIT %s) ORDER BY r.id DESC",
            (query, limit),
        )

    def runs_at_git(self, *, branch: str | None, head: str | None, limit: int) -> list[ResumeRow]:
        rows: list[ResumeRow] = []
        for column, value in (("git_head", head), ("git_branch", branch)):
            if value is not None:
                rows += self._resume_rows(
                    f"WHERE r.{column} = %s AND NOT r.is_archived"
                    " ORDER BY r.updated_ms DESC LIMIT %s",
                    (value, limit),
                )
        return rows

    def _resume_rows(self, clauses: str, values: Sequence[Value]) -> list[ResumeRow]:
        rows = self.db.rows(
            "SELECT s.session, r.title, r.workflow, r.status, r.step, r.steps_done,"
            " r.steps_skipped, r.step_count, r.recap, r.workspace, r.updated_ms, r.run, r.tip,"
            " r.git_branch, r.git_head, r.is_archived"
            f" FROM resume r JOIN stream s ON s.id = r.stream {clauses}",
            values,
        )
        return [ResumeRow(*row) for row in rows]

    def find_session(self, prefix: str) -> list[SessionId]:
        rows = self.db.rows(
            "SELECT session FROM stream WHERE session >= %s AND session < %s"
            " ORDER BY session LIMIT 10",
            (prefix, prefix + "\U0010ffff"),
        )
        return [session for (session,) in rows]

    def session_of_conversation(self, host: str, host_session: str) -> SessionId | None:
        return self.db.scalar(
            "SELECT s.session FROM host_session h JOIN stream s ON s.id = h.stream"
            " WHERE h.host = %s AND h.id = %s",
            (host, host_session),
        )

    def attended_sessions_in(self, workspace: str) -> list[SessionId]:
        rows = self.db.rows(
            "SELECT s.session FROM attended a JOIN stream s ON s.id = a.stream"
            " WHERE a.workspace = %s AND a.status != 'ended' ORDER BY a.updated_ms DESC LIMIT 20",
            (workspace,),
        )
        return [session for (session,) in rows]

    def find_run(self, prefix: str) -> list[tuple[RunId, SessionId]]:
        rows = self.db.rows(
            "SELECT r.run, s.session FROM resume r JOIN stream s ON s.id = r.stream"
            " WHERE r.run >= %s AND r.run < %s ORDER BY r.run LIMIT 10",
            (prefix, prefix + "\U0010ffff"),
        )
        return [(RunId(run), SessionId(session)) for run, session in rows]

    def all_sessions(self) -> list[SessionId]:
        return [session for (session,) in self.db.rows("SELECT session FROM stream ORDER BY id")]

    def requests(self) -> list[tuple[BlobRef, EarlierRequest]]:
        rows = self.db.rows("SELECT key, arguments, node, at_ms FROM request ORDER BY key")
        return [
            (_ref(key), EarlierRequest(_ref(arguments), ids.node_id(node), at_ms))
            for key, arguments, node, at_ms in rows
        ]

    def identity(self) -> str:
        # A standby has the identifier of its primary. Without the right to read it, the server is
        # identified by its start: two do not start in the same microsecond.
        may_read = self.db.scalar("SELECT has_function_privilege('pg_control_system()', 'execute')")
        server = (
            "(SELECT system_identifier FROM pg_control_system())"
            if may_read
            else "extract(epoch FROM pg_postmaster_start_time())"
        )
        return self.db.scalar(
            f"SELECT concat_ws(':', {server}, oid, current_schema())"
            " FROM pg_database WHERE datname = current_database()"
        )

    def stats(self) -> Stats:
        return Stats(
            sessions=self.db.scalar("SELECT count(*) FROM stream"),
            events=self.db.scalar("SELECT count(*) FROM event"),
            blobs=self.db.scalar("SELECT count(*) FROM blob"),
            size=self.db.scalar(
                "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c"
                " WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace(%s)",
                (self.db.at.schema,),
            ),
            engine=engine(self.db),
            schema=schema.VERSION,
        )


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
