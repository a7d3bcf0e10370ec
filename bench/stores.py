"""The two stores side by side, beside the least that a write costs in each.

Started by itself with `python -m bench.stores`.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bench.measure import HEADER, RawAppend, Row
from bench.runs import advance_in, begin, notes, pinned_line, plan_of_start, prepared
from interlock.app.context import open_app
from interlock.mcp.client import StdioClient
from tests.postgres import Cluster, binaries

ENGINES = ("SQLite", "PostgreSQL")
SAMPLES = 300
WRITERS, APPENDS = 8, 100


class RawInsert:
    """The least that it can cost with a server: a row of 3 KB, committed."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("CREATE TABLE raw (content bytea)")

    def __call__(self) -> None:
        self._connection.execute("INSERT INTO raw VALUES (%s)", (bytes(3 * 1024),))

    def close(self) -> None:
        self._connection.close()


def both_stores(base: Path) -> tuple[list[Row], list[str]]:
    """Nothing where no PostgreSQL can be started."""
    if binaries() is None:
        return [], []
    cluster = Cluster(is_durable=True)
    try:
        return _measured(base / "stores", cluster)
    finally:
        cluster.remove()


def _measured(base: Path, cluster: Cluster) -> tuple[list[Row], list[str]]:
    workspace, small = base / "work", base / "small"
    prepared(workspace, steps=SAMPLES + 2)
    prepared(small, steps=3)  # the whole workflow is in the plan of a start
    urls = {"SQLite": "", "PostgreSQL": cluster.fresh()}
    fsync = Row("raw fdatasync of 3 KB, beside the stores")
    insert = Row("raw INSERT of 3 KB into PostgreSQL, committed", against=fsync)
    least = {"SQLite": fsync, "PostgreSQL": insert}
    appended = {name: Row(f"append of a start, {name}", against=least[name]) for name in ENGINES}
    advanced = {name: Row(f"advance in process, {name}", against=least[name]) for name in ENGINES}
    piped = {name: Row(f"advance over stdio, {name}", against=least[name]) for name in ENGINES}
    with ExitStack() as stack:
        inserting = stack.enter_context(closing(RawInsert(cluster.empty())))
        acts: list[tuple[Row, Callable[[], object]]] = [
            (fsync, RawAppend(base / "raw")),
            (insert, inserting),
        ]
        for name in ENGINES:
            home = base / name
            with _store(urls[name]):
                acts.append((appended[name], _appending(stack, home, small)))
                acts.append((advanced[name], _advancing(stack, home, workspace)))
                acts.append((piped[name], _calling(stack, home, workspace)))
        for number in range(SAMPLES + 1):
            for row, act in acts:
                if number:
                    row.time(act)
                else:
                    act()  # what is prepared or compiled at the first time
    rows = [fsync, insert, *appended.values(), *advanced.values(), *piped.values()]
    facts = [_crowd(base, urls[name], name, small) for name in ENGINES]
    return rows, facts


@contextmanager
def _store(url: str) -> Generator[None]:
    """Whatever is opened inside has its store there."""
    before = os.environ.pop("INTERLOCK_STORE", None)
    if url:
        os.environ["INTERLOCK_STORE"] = url
    yield
    os.environ.pop("INTERLOCK_STORE", None)
    if before is not None:
        os.environ["INTERLOCK_STORE"] = before


def _appending(stack: ExitStack, home: Path, workspace: Path) -> Callable[[], object]:
    app = stack.enter_context(closing(open_app(home)))
    pinned, key = pinned_line(app, workspace), app.keyring.current()
    plans = iter([plan_of_start(pinned, workspace, f"Goal {n}", key) for n in range(SAMPLES + 1)])
    return lambda: app.log.append(next(plans))


def _advancing(stack: ExitStack, home: Path, workspace: Path) -> Callable[[], object]:
    app = stack.enter_context(closing(open_app(home)))
    last = [begin(app, workspace)]

    def act() -> None:
        last.append(advance_in(app, last.pop(), app.clock.now_ms()))

    return act


def _calling(stack: ExitStack, home: Path, workspace: Path) -> Callable[[], object]:
    client = StdioClient(home, workspace=workspace)
    stack.callback(client.close)
    client.initialize()
    last = [client.call("start_workflow", workflowId="line", goal="Over stdio")]

    def act() -> None:
        answer: dict[str, Any] = last.pop()
        token = answer["structuredContent"]["continueToken"]
        said = {"notesMarkdown": notes(len(token))}
        last.append(client.call("continue_workflow", continueToken=token, output=said))
        assert not last[0]["isError"], last

    return act


def _crowd(base: Path, url: str, name: str, workspace: Path) -> str:
    """Several processes, each with sessions of its own, as fast as they can."""
    spawn = multiprocessing.get_context("spawn")
    with _store(url), spawn.Manager() as manager:
        barrier = manager.Barrier(WRITERS)
        with spawn.Pool(WRITERS) as pool:
            jobs = [(base / name, workspace, number, barrier) for number in range(WRITERS)]
            written = pool.starmap(_write, jobs)
    samples = sorted(sample for each, _, _ in written for sample in each)
    took = max(end for _, _, end in written) - min(begun for _, begun, _ in written)
    return (
        f"{WRITERS} writers, {name}: {len(samples) / took:.0f} appends/s, p50"
        f" {samples[len(samples) // 2]:.1f} ms, p99 {samples[int(len(samples) * 0.99)]:.1f} ms"
    )


def _write(
    home: Path, workspace: Path, number: int, barrier: Any
) -> tuple[list[float], float, float]:
    """How long each append took (ms), and from when to when all of them."""
    row = Row(f"writer {number}")
    with closing(open_app(home)) as app:
        pinned, key = pinned_line(app, workspace), app.keyring.current()
        goals = [f"Writer {number}, {call}" for call in range(APPENDS)]
        plans = [plan_of_start(pinned, workspace, goal, key) for goal in goals]
        barrier.wait()
        begun = time.monotonic()
        for plan in plans:
            row.time(lambda plan=plan: app.log.append(plan))
    return row.samples, begun, time.monotonic()


def main() -> None:
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory(dir=root, prefix=".bench-") as directory:
        load = os.getloadavg()[0]
        rows, facts = both_stores(Path(directory))
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after\n\n{HEADER}")
    for row in rows:
        print(row.line())
    print()
    for fact in facts:
        print(f"- {fact}")


if __name__ == "__main__":
    main()
