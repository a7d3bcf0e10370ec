"""kill -9 of a process that writes to a project: an entry, its rows and its messages are one."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.core.ids import ProjectId
from interlock.core.project_stream import find_damage
from interlock.store.open_store import open_store
from tests.app.coordination.team import Team
from tests.effort import scale, seeded

ROUNDS = scale(12, at_least=6)
WRITES = """
import os, sys
from pathlib import Path
from interlock.core.ids import ProjectId
from interlock.core.project_stream import OutboxMessage, ProjectPlan, RowChange, RowCondition
from interlock.store.open_store import open_store
log = open_store(Path(sys.argv[1]), os.environ.get("INTERLOCK_STORE", ""), os.urandom).log
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


@pytest.mark.invariant("taken-over-is-fenced")
def test_a_takeover_is_one_entry(app: App, tmp_path: Path) -> None:
    """ST2: kill -9 at any point leaves all or nothing."""
    (tmp_path / "shop").mkdir()
    team = Team(app, tmp_path / "shop")
    old = team.join("Old").id
    team.reserve("Old", "src/**", "docs/**")
    item = team.claim("Old", team.add("Write it").id)
    team.later(11)
    team.join("New")
    before, _ = app.reader.project_end(team.desk.project)

    team.take_over("New", old)

    board = team.board()
    assert app.reader.project_end(team.desk.project)[0] == before + 1
    assert (old in board.ended, old in board.identities) == (True, False)
    assert (board.claims_of(old), board.reservations_of(old)) == ([], [])
    assert board.work[item.id].value.status == "open"
    (message,) = app.reader.newest_rows(team.desk.project, ["mail/ses_Old"], limit=1)
    assert message.seq == before + 1, "the message to it is part of the entry"
