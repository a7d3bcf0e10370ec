"""Everything in a store that belongs to no session, as rows that another store can take over.

A lease is taken over without its time, which is that of another clock: it has ended, and its epoch
goes on.
"""

from typing import Any, TypeAlias

from interlock.store.sql import SqlDatabase, Statement, WritableSqlDatabase

SharedTables: TypeAlias = list[list[tuple[Any, ...]]]
"""The rows of each table of `_TABLES`."""

_ENTRIES = "FROM project p JOIN project_entry e ON e.project = p.id ORDER BY p.id, e.seq"
_ROWS = "FROM project p JOIN project_row r ON r.project = p.id ORDER BY p.id, r.kind, r.key"
_TABLES = (
    (
        "SELECT version, digest, name FROM project ORDER BY id",
        "INSERT INTO project (version, digest, name) VALUES (?, ?, ?)",
    ),
    (
        f"SELECT e.seq, e.key, e.body, e.digest, p.name {_ENTRIES}",
        "INSERT INTO project_entry (project, seq, key, body, digest)"
        " SELECT id, ?, ?, ?, ? FROM project WHERE name = ?",
    ),
    (
        f"SELECT r.kind, r.key, r.seq, r.content, p.name {_ROWS}",
        "INSERT INTO project_row (project, kind, key, seq, content)"
        " SELECT id, ?, ?, ?, ? FROM project WHERE name = ?",
    ),
    (
        "SELECT name, holder, epoch FROM lease ORDER BY name",
        "INSERT INTO lease (name, holder, epoch, renewed_ms, until_ms) VALUES (?, ?, ?, 0, 0)",
    ),
    (
        "SELECT key, topic, content, at_ms FROM outbox ORDER BY id",
        "INSERT INTO outbox (key, topic, content, at_ms) VALUES (?, ?, ?, ?)",
    ),
)


def read_shared_tables(db: SqlDatabase) -> SharedTables:
    return [list(rows) for rows in db.read_all([(select, ()) for select, _ in _TABLES])]


def write_shared_tables(db: WritableSqlDatabase, tables: SharedTables) -> None:
    """Replace what is there by these rows."""
    names = ("project", "project_entry", "project_row", "lease", "outbox")
    statements: list[Statement] = [(f"DELETE FROM {name}", ()) for name in names]
    for (_, insert), rows in zip(_TABLES, tables, strict=True):
        statements += [(insert, row) for row in rows]
    db.write_all(statements)
