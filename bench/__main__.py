"""`make bench`: one table, everything interleaved in one run, ratios against the machine itself."""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.compiling import compiling
from bench.coordinating import coordinating
from bench.crowd import crowded
from bench.disk import cost_of_advances
from bench.driving import driving
from bench.hooking import hooking
from bench.looking import looking
from bench.measure import HEADER, RawAppend, Row
from bench.noting import noting
from bench.resuming import resuming
from bench.runs import advance_in, begin, notes, prepared
from bench.serving import agents_over_http, sessions_page
from bench.stores import both_stores
from bench.triggering import triggering
from interlock.app.context import App, open_app
from interlock.app.runs.rehydrate import rehydrate
from interlock.core.session.answer import RenderedAnswer
from interlock.mcp.client import StdioClient

STEPS = (1, 10, 100, 1000)
WINDOW = 10
SESSIONS = 5
RUNS = 1_000


def in_process(base: Path, raw: RawAppend, fsync: Row) -> list[Row]:
    """Advances at several depths of the same sessions, with the raw cost sampled beside them."""
    workspace = base / "workspace"
    prepared(workspace, steps=STEPS[-1] + WINDOW + 1)
    app = open_app(base / "home")
    rows = {step: Row(f"advance in process, step {step}", against=fsync) for step in STEPS}
    started, replayed = Row("start in process", against=fsync), Row("replay in process")
    shown = Row("rehydrate in process")
    for _ in range(SESSIONS):
        fsync.time(raw)
        started.time(lambda: begin(app, workspace))
        answered = begin(app, workspace)
        for number in range(1, STEPS[-1] + WINDOW):
            step = max(step for step in STEPS if step <= number)
            before = answered
            if number < step + WINDOW:
                fsync.time(raw)
                rows[step].time(
                    lambda before=before, number=number: advance_in(app, before, number)
                )
                replayed.time(lambda before=before, number=number: advance_in(app, before, number))
            answered = advance_in(app, before, number)
            if number < step + WINDOW:
                token = answered.answer.continue_token
                shown.time(
                    lambda token=token: rehydrate(
                        app.reader, app.keyring, app.pinned_workflow, token=token
                    )
                )
    crowded = _among_runs(app, workspace, raw, fsync)
    app.close()
    return [started, *rows.values(), replayed, shown, *crowded]


def _among_runs(app: App, workspace: Path, raw: RawAppend, fsync: Row) -> list[Row]:
    """Advances in a session with one run, and in one with a thousand."""
    answered = {1: begin(app, workspace), RUNS: begin(app, workspace)}
    for _ in range(RUNS - 1):
        answered[RUNS] = begin(app, workspace, answered[RUNS].session)
    rows = {runs: Row(f"advance in a session with {runs} runs", against=fsync) for runs in answered}
    for number in range(50):
        for runs, before in answered.items():
            fsync.time(raw)
            made: list[RenderedAnswer] = []
            rows[runs].time(lambda: made.append(advance_in(app, before, number)))  # noqa: B023
            answered[runs] = made[0]
    return [*rows.values()]


def over_stdio(base: Path, raw: RawAppend, fsync: Row) -> tuple[list[Row], list[str]]:
    workspace = base / "stdio"
    prepared(workspace, steps=21)
    client = StdioClient(base / "home", workspace=workspace)
    client.initialize()
    started = Row("start over stdio, 20 steps", against=fsync)
    advanced = Row("advance over stdio", against=fsync)
    replayed, shown = Row("replay over stdio"), Row("rehydrate over stdio")
    for _ in range(10):
        results: list[dict[str, Any]] = []

        def call(tool: str, results: list[dict[str, Any]] = results, **arguments: object) -> None:
            results.append(client.call(tool, **arguments)["structuredContent"])

        goal = f"g{len(started.samples)}"
        started.time(
            lambda call=call, goal=goal: call("start_workflow", workflowId="line", goal=goal)
        )
        for number in range(20):
            token = results[-1]["continueToken"]
            hand_in = _hand_in(call, token, number)
            fsync.time(raw)
            advanced.time(hand_in)
            replayed.time(hand_in)
            shown.time(
                lambda call=call, token=token: call("continue_workflow", continueToken=token)
            )
            results.pop()
    listing = len(msgspec.json.encode(client.request("tools/list")))
    status = Path(f"/proc/{client.server.pid}/status")
    facts = [f"tools/list: {listing} bytes"]
    if status.exists():
        resident = next(line for line in status.read_text().splitlines() if "VmRSS" in line)
        facts.append(f"resident memory of the server: {int(resident.split()[1]) / 1024:.1f} MB")
    client.close()
    return [started, advanced, replayed, shown], facts


def _hand_in(call: Callable[..., None], token: str, number: int) -> Callable[[], None]:
    return lambda: call(
        "continue_workflow", continueToken=token, output={"notesMarkdown": notes(number)}
    )


def starting(base: Path) -> list[Row]:
    bare = Row("bare `python -I -S`")
    listed = Row("spawn to tools/list", against=bare)
    called = Row("spawn to the answer of a first call", against=bare)
    version = Row("`interlock --version`", against=bare)

    def serve(*, calls: bool) -> None:
        client = StdioClient(base / "home")
        client.initialize()
        client.request("tools/list")
        if calls:
            client.call("list_workflows")
        client.server.kill()
        client.server.wait()

    for _ in range(20):
        bare.time(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True))
        listed.time(lambda: serve(calls=False))
        called.time(lambda: serve(calls=True))
        version.time(
            lambda: subprocess.run(
                [sys.executable, "-m", "interlock", "--version"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        )
    return [bare, listed, called, version]


def main() -> None:
    root = Path(__file__).parents[1]
    # Beside the checkout and not in /tmp, which may be memory.
    with tempfile.TemporaryDirectory(dir=root, prefix=".bench-") as directory:
        base = Path(directory)
        raw, fsync = RawAppend(base / "raw"), Row("raw fdatasync of 3 KB")
        print("measuring starts", file=sys.stderr)
        starts = starting(base)
        print("measuring hooks", file=sys.stderr)
        hooks = hooking(base)
        print("measuring in process", file=sys.stderr)
        inside = in_process(base, raw, fsync)
        print("measuring over stdio", file=sys.stderr)
        outside, facts = over_stdio(base, raw, fsync)
        print("counting syncs and bytes", file=sys.stderr)
        facts += cost_of_advances(base / "disk-home", base / "disk", count=1000)
        print("measuring the compiler", file=sys.stderr)
        compiled = compiling(base)
        print("measuring resume", file=sys.stderr)
        found = resuming(base, (10, 1_000, 10_000))
        print("measuring notes", file=sys.stderr)
        noted = noting(base, fsync)
        print("measuring the server", file=sys.stderr)
        served, more = agents_over_http(base)
        served.append(sessions_page(base / "resume-home", sessions=10_000))
        served += looking(base)
        served += driving(base / "driving")
        served += triggering(base / "triggering")
        facts += more
        print("measuring several processes", file=sys.stderr)
        crowd, more = crowded(base / "crowd", processes=8, calls=100)
        facts += more
        print("measuring coordination", file=sys.stderr)
        team, more = coordinating(base / "coordinating", raw, fsync)
        facts += more
        print("measuring both stores", file=sys.stderr)
        stores, more = both_stores(base)
        facts += more
    flat = inside[4].p50 / inside[2].p50
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()},")
    print(f"load {os.getloadavg()[0]:.1f}\n\n{HEADER}")
    everything = [fsync, *starts, *hooks, *inside, *outside, *compiled, *found, *noted]
    for row in [*everything, *served, *crowd, *team, *stores]:
        print(row.line())
    print(f"\n- advance at step 1000 is {flat:.2f} x the one at step 10")
    for fact in facts:
        print(f"- {fact}")


if __name__ == "__main__":
    main()
