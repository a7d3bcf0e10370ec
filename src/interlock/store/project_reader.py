"""Reading the streams of projects, whatever engine stores them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from interlock.core.ids import ProjectId
from interlock.core.project_stream import (
    GENESIS,
    OutboxMessage,
    ProjectEntry,
    ProjectRow,
    ProjectRows,
    find_damage,
)
from interlock.store.shared_tables import SharedTables, read_shared_tables
from interlock.store.sql import SqlDatabase, Texts


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
                (
                    "SELECT r.kind, r.key, r.seq, r.content FROM project p"
                    " JOIN project_row r ON r.project = p.id"
                    " WHERE p.name = ? AND r.kind = ANY (?) ORDER BY r.kind, r.key",
                    (project, Texts(kinds)),
                ),
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
            "SELECT p.name, r.kind, r.key, r.seq, r.content FROM project p"
            " JOIN project_row r ON r.project = p.id"
            " WHERE r.kind = ? AND NOT EXISTS (SELECT 1 FROM project_row a"
            " WHERE a.project = p.id AND a.kind = ? AND a.key = r.key)"
            " ORDER BY p.id, r.seq LIMIT ?",
            (kind, answers, limit),
        )
        return [(ProjectId(name), ProjectRow(*row)) for name, *row in rows]

    def count_without_answer(self, kind: str, answers: str) -> int:
        """Return the number of rows that `rows_without_answer` has without a limit."""
        rows = self._database.read(
            "SELECT count(*) FROM project p JOIN project_row r ON r.project = p.id"
            " WHERE r.kind = ? AND NOT EXISTS (SELECT 1 FROM project_row a"
            " WHERE a.project = p.id AND a.kind = ? AND a.key = r.key)",
            (kind, answers),
        )
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
        rows = self._database.read(
            "SELECT r.kind, r.key, r.seq, r.content FROM project p"
            " JOIN project_row r ON r.project = p.id"
            " WHERE p.name = ? AND r.kind = ANY (?) AND r.seq > ? ORDER BY r.seq LIMIT ?",
            (project, Texts(kinds), after, limit),
        )
        return [ProjectRow(*row) for row in rows]

    def newest_rows(
        self, project: ProjectId, kinds: Sequence[str], *, limit: int
    ) -> list[ProjectRow]:
        """Return the newest rows of these kinds, oldest first."""
        rows = self._database.read(
            "SELECT r.kind, r.key, r.seq, r.content FROM project p"
            " JOIN project_row r ON r.project = p.id"
            " WHERE p.name = ? AND r.kind = ANY (?) ORDER BY r.seq DESC LIMIT ?",
            (project, Texts(kinds), limit),
        )
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
