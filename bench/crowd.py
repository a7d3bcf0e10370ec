"""Several stdio servers on one store, all of them writing."""

import multiprocessing
import time
from pathlib import Path

from bench.measure import Row
from bench.runs import notes, prepared
from interlock.mcp.client import StdioClient


def crowded(base: Path, *, processes: int, calls: int) -> tuple[list[Row], list[str]]:
    """Each client has a server and a run of its own; the store is shared."""
    workspace = base / "work"
    prepared(workspace, steps=calls + 1)
    alone = Row("advance over stdio, 1 process")
    crowd = Row(f"advance over stdio, {processes} processes at once", against=alone)
    alone.samples.extend(_play(base / "home", workspace, calls, 0))
    begun = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        arguments = [(base / "home", workspace, calls, n) for n in range(1, processes + 1)]
        for samples in pool.starmap(_play, arguments):
            crowd.samples.extend(samples)
    took = time.perf_counter() - begun
    p99 = sorted(crowd.samples)[int(len(crowd.samples) * 0.99)]
    return [alone, crowd], [
        f"{processes} processes: {processes * calls} advances, no errors, p99 {p99:.1f} ms,"
        f" {took:.1f} s with starting them"
    ]


def _play(home: Path, workspace: Path, calls: int, number: int) -> list[float]:
    client = StdioClient(home, workspace=workspace)
    client.initialize()
    answer = client.call("start_workflow", workflowId="line", goal=f"Client {number}")
    samples: list[float] = []
    for call in range(calls):
        token = answer["structuredContent"]["continueToken"]
        begun = time.perf_counter()
        answer = client.call(
            "continue_workflow", continueToken=token, output={"notesMarkdown": notes(call)}
        )
        samples.append((time.perf_counter() - begun) * 1000)
        assert not answer["isError"], answer
    client.close()
    return samples
