"""How SQLite goes about what it is asked at every call: by an index, whatever the store holds."""
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import re
from pathlib import Path
from typing import Any

import pytest

from interlock.app.advance import advance
from interlock.app.checkpoint import checkpoint
from interlock.app.context import App
from interlock.app.rehydrate import rehydrate
from interlock.core.session.answer import Answered
from interlock.store.sqlite.database import Database
from tests.scenes import handed_in, output, started

# A search by words is not part of them, and a scan of what a query made itself is no scan.
TABLES = "stream|event|event_key|node|request|blob|resume|attended|host_session|[a-z]"


def played(app: App, workspace: Path) -> None:
    """A run with everything that an agent does again and again."""
    begun = started(app, workspace)
    token = begun.answer.continue_token
    blocked = advance(app, token, output(""))
    assert isinstance(blocked, Answered)
    second = handed_in(app, blocked, "done")
    handed_in(app, begun, "another way")
    checkpoint(app, second.answer.continue_token, output("a mark"))
    handed_in(app, second, "on")
    rehydrate(app.reader, app.keyring, app.entropy, app.pinned, token=second.answer.continue_token)


def test_nothing_walks_through_a_whole_table(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    rows, run = Database.rows, Database.run

    def noted_rows(self: Database, sql: str, values: Any = ()) -> Any:
        asked[sql] = values
        return rows(self, sql, values)

    def noted_run(self: Database, sql: str, values: Any = ()) -> None:
        asked[sql] = values
        run(self, sql, values)

    monkeypatch.setattr(Database, "rows", noted_rows)
    monkeypatch.setattr(Database, "run", noted_run)
    played(app, tmp_path)
    monkeypatch.undo()

    db: Database = app.reader._db  # pyright: ignore[reportAttributeAccessIssue]
    assert len(asked) > 20
    for sql, values in asked.items():
        if sql.startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
            for *_, step in db.rows(f"EXPLAIN QUERY PLAN {sql}", values):
                assert not re.fullmatch(rf"SCAN ({TABLES})( USING .*)?", step), f"{step}: {sql}"
