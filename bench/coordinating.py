"""Several agents in one project: reserving, claiming, writing and looking around.

Started by itself with `python -m bench.coordinating`.
"""

import multiprocessing
import os
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from bench.measure import HEADER, RawAppend, Row
from interlock.app.context import App, open_app
from interlock.app.coordination.holdings import (
    ReservedPaths,
    ReserveRequest,
    add_work,
    claim_work,
    reserve_paths,
)
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.preflight import PreflightRequest, run_preflight
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.records import Message, WorkItem
from interlock.core.coordination.work_items import WorkDraft

SAMPLES = 200
PROCESSES, CALLS = 20, 10
PAUSE_S = 0.1
"""Between the calls of one agent, where they are not made as fast as they can."""
IDENTITIES, MESSAGES, RESERVATIONS = 50, 10_000, 500
ACTS = ("reserve", "claim", "send")


def coordinating(base: Path, raw: RawAppend, fsync: Row) -> tuple[list[Row], list[str]]:
    alone = [Row(f"{name}, 1 process", against=fsync) for name in ACTS]
    root = base / "project"
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    with closing(open_app(base / "alone")) as app:
        acts = _acts(app, open_desk(app, root), 0, SAMPLES + 1)
        for number in range(SAMPLES + 1):
            for row, act in zip(alone, acts, strict=True):
                if number:
                    fsync.time(raw)
                    row.time(lambda act=act, number=number: act(number))
                else:
                    act(0)  # what is prepared or compiled at the first time
    paced, more = _crowd(base / "paced", root, alone, PAUSE_S)
    crowd, fact = _crowd(base / "crowd", root, alone, 0)
    looked = _looking(base / "many", root)
    return [*alone, *paced, *crowd, *looked], [more, fact]


def _crowd(home: Path, root: Path, alone: list[Row], pause_s: float) -> tuple[list[Row], str]:
    how = f"one call each {pause_s * 1_000:.0f} ms" if pause_s else "as fast as they can"
    rows = [
        Row(f"{name}, {PROCESSES} processes, {how}", against=one)
        for name, one in zip(ACTS, alone, strict=True)
    ]
    open_app(home).close()
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, spawn.Pool(PROCESSES) as pool:
        barrier = manager.Barrier(PROCESSES)
        jobs = [(home, root, n, barrier, pause_s) for n in range(1, PROCESSES + 1)]
        for samples in pool.starmap(_play, jobs):
            for row, more in zip(rows, samples, strict=True):
                row.samples.extend(more)
    worst = max(sample for row in rows for sample in row.samples)
    count = sum(len(row.samples) for row in rows)
    return rows, f"{PROCESSES} processes, {how}: {count} calls, no errors, worst {worst:.1f} ms"


def _acts(app: App, desk: ProjectDesk, number: int, calls: int) -> list[Any]:
    """The three calls of one agent, each about something else every time."""
    own = Participant(f"ses_{number}", f"Agent{number}")
    register(app, desk, own)
    items: list[str] = []
    for call in range(calls):
        item = add_work(app, desk, own, WorkDraft(f"Item {number} {call}"))
        assert isinstance(item, WorkItem)
        items.append(item.id)

    def reserve(call: int) -> None:
        request = ReserveRequest((f"src/part{number}/file{call}.py",))
        assert isinstance(reserve_paths(app, desk, own, request), ReservedPaths)

    def claim(call: int) -> None:
        assert isinstance(claim_work(app, desk, own, items[call]), WorkItem)

    def send(call: int) -> None:
        draft = MessageDraft(("all",), f"[PROGRESS] {number} {call}", "Done with it. " * 10)
        assert isinstance(send_message(app, desk, own, draft), Message)

    return [reserve, claim, send]


def _play(home: Path, root: Path, number: int, barrier: Any, pause_s: float) -> list[list[float]]:
    """How long each call took, by kind; whoever fails ends the measurement."""
    rows = [Row(name) for name in ACTS]
    with closing(open_app(home)) as app:
        acts = _acts(app, open_desk(app, root), number, CALLS + 1)
        for act in acts:
            act(0)
        barrier.wait()
        time.sleep(pause_s * number / PROCESSES)  # not all at the same moment
        for call in range(1, CALLS + 1):
            for row, act in zip(rows, acts, strict=True):
                time.sleep(pause_s)
                row.time(lambda act=act, call=call: act(call))
    return [row.samples for row in rows]


def _looking(home: Path, root: Path) -> list[Row]:
    """Preflight among many, of whom a tenth are silent."""
    row = Row(f"preflight, {IDENTITIES} identities, {MESSAGES:,} messages, {RESERVATIONS} paths")
    with closing(open_app(home)) as app:
        desk = open_desk(app, root)
        quiet = msgspec.structs.replace(app, store_clock=_Earlier(app))
        everybody = [Participant(f"ses_{n}", f"Agent{n}") for n in range(IDENTITIES)]
        with app.log.group_commit():
            for number, one in enumerate(everybody):
                patterns = tuple(
                    f"src/part{number}/{part}/**" for part in range(RESERVATIONS // IDENTITIES)
                )
                current = quiet if number % 10 == 0 else app
                register(current, desk, one)
                reserve_paths(current, desk, one, ReserveRequest(patterns))
        for number in range(MESSAGES):
            draft = MessageDraft((f"Agent{number % IDENTITIES}",), f"Number {number}")
            send_message(app, desk, everybody[number % 7 + 1], draft)
        request = PreflightRequest(("docs/**", "src/part7/3/x.py"))
        for number in range(50):
            # Each as a process that has just been started.
            fresh = msgspec.structs.replace(app, coordination=type(app.coordination)())
            found: list[object] = []
            row.time(
                lambda fresh=fresh, number=number, found=found: found.append(
                    run_preflight(fresh, desk, everybody[1 + number % 7], request)
                )
            )
            assert isinstance(found[0], PreflightReport)
            assert len(found[0].active_sessions) == IDENTITIES - 1
    return [row]


class _Earlier:
    """The store's clock, a quarter of an hour ago."""

    def __init__(self, app: App) -> None:
        self._app = app

    def now_ms(self) -> int:
        return self._app.store_clock.now_ms() - 15 * 60_000


def main() -> None:
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory(dir=root, prefix=".bench-") as directory:
        base, load = Path(directory), os.getloadavg()[0]
        fsync = Row("raw fdatasync of 3 KB")
        rows, facts = coordinating(base / "coordinating", RawAppend(base / "raw"), fsync)
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after\n\n{HEADER}")
    for row in (fsync, *rows):
        print(row.line())
    print()
    for fact in facts:
        print(f"- {fact}")


if __name__ == "__main__":
    main()
