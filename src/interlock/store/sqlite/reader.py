"""Reading the log. Opened read-only, it cannot write whatever it is asked."""

import zlib
from collections.abc import Iterator

from interlock.core import canonical, ids
from interlock.core.ids import BlobRef, NodeId, SessionId
from interlock.core.session.chain import Link
from interlock.core.session.events import Envelope, decode_envelope
from interlock.core.session.head import decode_head
from interlock.core.session.plan import Stream
from interlock.store.failures import StoreUnusable
from interlock.store.log import Located, SessionRow, Stats
from interlock.store.sqlite import schema
from interlock.store.sqlite.database import Database, engine


class SqliteReader:
    def __init__(self, db: Database) -> None:
        self._db = db
        schema.check(db)

    def close(self) -> None:
        self._db.close()

    def stream(self, session: SessionId) -> Stream | None:
        row = self._db.row("SELECT version, digest, head FROM stream WHERE session = ?", (session,))
        return _stream(session, *row) if row else None

    def locate(self, node: NodeId) -> Located | None:
        row = self._db.row(
            "SELECT s.session, s.version, s.digest, s.head, e.seq, e.body, e.digest, p.digest"
            " FROM node n JOIN stream s ON s.id = n.stream"
            " JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
            " JOIN event p ON p.stream = n.stream AND p.seq = n.seq - 1 WHERE n.id = ?",
            (ids.raw(node),),
        )
        if row is None:
            return None
        return Located(_stream(*row[:4]), Link(*row[4:7]), before=row[7])

    def recorded(self, session: SessionId, key: str) -> Envelope | None:
        row = self._db.row(
            "SELECT e.body FROM stream s JOIN event_key k ON k.stream = s.id"
            " JOIN event e ON e.stream = k.stream AND e.seq = k.seq"
            " WHERE s.session = ? AND k.key = ?",
            (session, key),
        )
        return decode_envelope(row[0]) if row else None

    def newest_child(self, node: NodeId) -> NodeId | None:
        raw = self._db.scalar(
            "SELECT id FROM node WHERE parent = ? ORDER BY stream DESC, seq DESC LIMIT 1",
            (ids.raw(node),),
        )
        return ids.node_id(raw) if raw else None

    def tail(self, stream: Stream) -> tuple[Link, ...]:
        rows = self._db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = ? AND e.seq >= ? AND e.seq < ? ORDER BY e.seq",
            (stream.session, stream.version - 2, stream.version),
        )
        return tuple(Link(*row) for row in rows)

    def links(self, session: SessionId) -> Iterator[Link]:
        rows = self._db.rows(
            "SELECT e.seq, e.body, e.digest FROM stream s JOIN event e ON e.stream = s.id"
            " WHERE s.session = ? ORDER BY e.seq",
            (session,),
        )
        return (Link(*row) for row in rows)

    def blob(self, ref: BlobRef) -> bytes:
        row = self._db.row("SELECT content FROM blob WHERE hash = ?", (blob_hash(ref),))
        content = _inflated(row[0]) if row else None
        if content is None or canonical.blob_ref(content) != ref:
            raise StoreUnusable(
                f"The stored content `{ref}` is {'missing' if row is None else 'damaged'}",
                "Nothing was changed. `interlock store verify` names the sessions that need it.",
            )
        return content

    def sessions(self, *, limit: int) -> list[SessionRow]:
        rows = self._db.rows(
            "SELECT s.session, r.title, r.workflow, r.status, r.step, r.steps_done, r.step_count,"
            " r.recap, r.workspace, r.updated_ms FROM resume r JOIN stream s ON s.id = r.stream"
            " ORDER BY r.updated_ms DESC, r.stream DESC LIMIT ?",
            (limit,),
        )
        return [SessionRow(*row) for row in rows]

    def find_session(self, prefix: str) -> list[SessionId]:
        rows = self._db.rows(
            "SELECT session FROM stream WHERE session >= ? AND session < ?"
            " ORDER BY session LIMIT 10",
            (prefix, prefix + "\U0010ffff"),
        )
        return [session for (session,) in rows]

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


def blob_hash(ref: BlobRef) -> bytes:
    return bytes.fromhex(ref.removeprefix("sha256:"))


def _inflated(content: bytes) -> bytes | None:
    try:
        return zlib.decompress(content)
    except zlib.error:
        return None


def _stream(session: str, version: int, digest: bytes, head: bytes) -> Stream:
    return Stream(SessionId(session), version, digest, decode_head(head))
