"""kill -9 of a process that writes to a project: an entry, its rows and its messages are one."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from interlock.core.ids import ProjectId
from interlock.core.project_stream import find_damage
from interlock.store.open_store import open_store
from tests.effort import scale, seeded

ROUNDS = scale(12, at_least=6)
WRITES = """
import os, sys
from pathlib import Path
from interlock.core.ids import ProjectId
from interlock.core.project_stream import (
    LeaseCondition, OutboxMessage, ProjectPlan, RowChange, RowCondition
)
from interlock.store.open_store import open_store
log = open_store(Path(sys.argv[1]), os.environ.get("INTERLOCK_STORE", ""), os.urandom).log
lease = log.acquire_lease("writer", str(os.getpid()), ttl_ms=1)
lease = lease if lease.holder == str(os.getpid()) else log.acquire_lease("writer", "x", ttl_ms=1)
while True:
    seq = log.project_rows(ProjectId("shop"), ["counter"]).seq
    name = str(seq + 1)
    log.append_to_project(ProjectPlan(
        ProjectId("shop"), name, b"{}", 1,
        (RowChange("counter", "all", name.encode()), RowChange("item", name, b"x")),
        (RowCondition("counter", "all", seq),),
        outbox=(OutboxMessage(name, "t", b"x"),),
    ))
    print(name, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.invariant("acknowledged-survives")
def test_what_was_acknowledged_is_there_whole(engine: str, home: Path) -> None:
    assert engine
    home.mkdir(parents=True)
    _, chance = seeded()
    acknowledged = 0
    for _ in range(ROUNDS):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITES, str(home)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(chance.randrange(1, 30)):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        last_words = writer.stdout.read().split()
        writer.wait()
        writer.stdout.close()
        acknowledged = int(last_words[-1]) if last_words else acknowledged

        url = os.environ.get("INTERLOCK_STORE", "")
        with closing(open_store(home, url, os.urandom)) as store:
            rows = store.reader.project_rows(ProjectId("shop"), ["counter", "item"])
            counter, *items = rows.rows
            assert rows.seq - acknowledged in (0, 1), "at most the last one was heard by nobody"
            assert (counter.seq, int(counter.content)) == (rows.seq, rows.seq)
            names = {str(number) for number in range(1, rows.seq + 1)}
            assert {item.key for item in items} == names
            assert {message.key for message in store.reader.outbox(limit=10_000)} == names
            version, end = store.reader.project_end(ProjectId("shop"))
            entries = store.reader.project_entries(ProjectId("shop"))
            assert not find_damage(entries, version=version, end=end)
