"""What it costs to find a session again among few and among many."""

import os
import time
from itertools import count
from pathlib import Path

from bench.measure import Row
from bench.runs import prepared
from interlock.app import resume
from interlock.app.context import App, open_app
from interlock.app.resume import Wanted
from interlock.core import ids
from interlock.core.ids import WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.session import begin
from interlock.core.session.begin import Begin
from interlock.core.session.decide import Decided
from interlock.core.session.plan import Stream
from interlock.core.workflow.compiled import Pinned

WORDS = ("parser", "cache", "release", "flaky", "login", "export", "search", "colour", "upgrade")


def resuming(base: Path, sizes: tuple[int, ...]) -> list[Row]:
    workspace = base / "resume-work"
    prepared(workspace, steps=3)
    app = open_app(base / "resume-home")
    entries, _ = app.catalogue.entries(workspace)
    pinned = next(entry.pinned for entry in entries if entry.workflow.id == WorkflowId("line"))
    # Filling the store is not what is measured: without fsync it takes seconds and not minutes.
    app.log._db.run("PRAGMA synchronous = off")  # noqa: SLF001  # pyright: ignore
    rows: list[Row] = []
    numbers = count()
    for size in sizes:
        while app.reader.stats().sessions < size:
            _fill(app, pinned, workspace, next(numbers))
        row = Row(f"resume_session, {size} sessions", against=rows[0] if rows else None)
        for sample in range(100):
            wanted = Wanted(workspace, query=f"{WORDS[sample % len(WORDS)]} number {sample % 10}")
            row.time(lambda wanted=wanted: resume.find(app.reader, app.keyring, os.urandom, wanted))
        rows.append(row)
    app.close()
    return rows


def _fill(app: App, pinned: Pinned, workspace: Path, number: int) -> None:
    beginning = Begin(
        stream=Stream(ids.session_id(os.urandom(8))),
        run=ids.run_id(os.urandom(8)),
        root=ids.node_id(os.urandom(8)),
        goal=f"Mend the {WORDS[number % len(WORDS)]}, number {number}",
        workspace=str(workspace),
        context={},
        preferences=Preferences(),
        seen=None,
    )
    decided = begin.start(
        beginning, pinned, key=app.keyring.current(), at_ms=time.time_ns() // 10**6
    )
    assert isinstance(decided, Decided), "a plain workflow starts"
    app.log.append(decided.plan)
