"""How a store goes about what it is asked at every call: by an index, whatever it holds."""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import re
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App, open_app
from interlock.app.runs.advance import advance
from interlock.app.runs.checkpoint import checkpoint
from interlock.app.runs.rehydrate import rehydrate
from interlock.core.session.answer import RenderedAnswer
from interlock.store.open_store import STORE_FILE
from interlock.store.postgres.database import PostgresDatabase
from interlock.store.sqlite.database import SqliteDatabase
from tests.postgres import Cluster
from tests.scenes import handed_in, output, started

# A search by words is not part of them, and a scan of what a query made itself is no scan.
FEW_ROWS = "INDEX run_words_due"  # has only what is due
TABLES = "stream|event|event_key|node|request|blob|run|host_session|[a-z]"


def played(app: App, workspace: Path) -> None:
    """A run with everything that an agent does again and again."""
    begun = started(app, workspace)
    token = begun.answer.continue_token
    blocked = advance(app, token, output(""))
    assert isinstance(blocked, RenderedAnswer)
    second = handed_in(app, blocked, "done")
    handed_in(app, begun, "another way")
    checkpoint(app, second.answer.continue_token, output("a mark"))
    handed_in(app, second, "on")
    rehydrate(
        app.reader,
        app.keyring,
        app.pinned_workflow,
        token=second.answer.continue_token,
    )


def noted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What either database is asked from now on, with the values."""
    asked: dict[str, Any] = {}
    rows, run, execute = SqliteDatabase.rows, SqliteDatabase.run, PostgresDatabase._execute_once

    def note_rows(self: Any, sql: str, values: Any = ()) -> Any:
        asked[sql] = values
        return rows(self, sql, values)

    def note_run(self: Any, sql: str, values: Any = ()) -> Any:
        asked[sql] = values
        return run(self, sql, values)

    def note_all(self: Any, statements: Any, **more: bool) -> Any:
        asked.update(statements)
        return execute(self, statements, **more)

    monkeypatch.setattr(SqliteDatabase, "rows", note_rows)
    monkeypatch.setattr(SqliteDatabase, "run", note_run)
    monkeypatch.setattr(PostgresDatabase, "_execute_once", note_all)
    return asked


def test_nothing_walks_through_a_whole_table(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INTERLOCK_STORE", raising=False)
    app = open_app(home)
    asked = noted(monkeypatch)
    played(app, tmp_path)
    monkeypatch.undo()

    db = SqliteDatabase.read_only(home / STORE_FILE)
    assert len(asked) > 20
    for sql, values in asked.items():
        if sql.startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
            for *_, step in db.rows(f"EXPLAIN QUERY PLAN {sql}", values):
                is_scan = re.fullmatch(rf"SCAN ({TABLES})( USING .*)?", step)
                assert not is_scan or step.endswith(FEW_ROWS), f"{step}: {sql}"
    app.close()


def test_postgresql_needs_to_walk_through_no_table(
    home: Path, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would, as long as they are small; told not to, it finds an index for everything."""
    url = cluster.fresh()
    monkeypatch.setenv("INTERLOCK_STORE", url)
    app = open_app(home)
    asked = noted(monkeypatch)
    played(app, tmp_path)
    db: PostgresDatabase = app.log.db  # pyright: ignore[reportAttributeAccessIssue]
    assert len(asked) > 15
    explained = dict(asked)
    db.run("SET enable_seqscan = off")
    for sql, values in explained.items():
        if sql.startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
            plan = "\n".join(step for (step,) in db.rows(f"EXPLAIN {sql}", values))
            scanned = set(re.findall(r"Seq Scan on (\w+)", plan))
            assert scanned <= {"latest", "token_key_version", "token_key", "interlock_store"}, (
                f"{sql}\n{plan}"
            )
    app.close()
    cluster.give_back(url)
