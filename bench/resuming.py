"""What it costs to find a session again among few and among many."""

from itertools import count
from pathlib import Path

from bench.measure import Row
from bench.runs import pinned_line, plan_of_start, prepared
from interlock.app.context import App, open_app
from interlock.app.runs import resume
from interlock.app.runs.resume import ResumeQuery
from interlock.core.workflow.compiled_workflow import PinnedWorkflow

WORDS = ("parser", "cache", "release", "flaky", "login", "export", "search", "colour", "upgrade")


def resuming(base: Path, sizes: tuple[int, ...]) -> list[Row]:
    workspace = base / "resume-work"
    prepared(workspace, steps=3)
    app = open_app(base / "resume-home")
    pinned = pinned_line(app, workspace)
    # Filling the store is not what is measured: without fsync it takes seconds and not minutes.
    app.log._db.run("PRAGMA synchronous = off")  # noqa: SLF001  # pyright: ignore
    rows: list[Row] = []
    numbers = count()
    for size in sizes:
        while app.reader.stats().sessions < size:
            _fill(app, pinned, workspace, next(numbers))
        row = Row(f"resume_session, {size} sessions", against=rows[0] if rows else None)
        for sample in range(100):
            wanted = ResumeQuery(
                workspace, query=f"{WORDS[sample % len(WORDS)]} number {sample % 10}"
            )
            row.time(
                lambda wanted=wanted: resume.find_resumable_runs(app.reader, app.keyring, wanted)
            )
        rows.append(row)
    app.close()
    return rows


def _fill(app: App, pinned: PinnedWorkflow, workspace: Path, number: int) -> None:
    goal = f"Mend the {WORDS[number % len(WORDS)]}, number {number}"
    app.log.append(plan_of_start(pinned, workspace, goal, app.keyring.current()))
