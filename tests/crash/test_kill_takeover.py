"""kill -9 of a process that takes over from others: each is taken over wholly, or not at all."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.context import open_app
from interlock.core.project_stream import find_damage
from tests.app.coordination.team import Team
from tests.effort import scale, seeded

ROUNDS = scale(6, at_least=4)
SILENT = ROUNDS * 8
TAKES_OVER = """
import sys
from pathlib import Path
from interlock.app.context import open_app
from tests.app.coordination.team import Team
team = Team(open_app(Path(sys.argv[1])), Path(sys.argv[2]))
team.later(11)
for name in sorted(team.board().identities):
    if name.startswith("Old"):
        team.take_over("New", name)
        print(name, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.invariant("taken-over-is-fenced")
def test_a_takeover_is_whole_or_has_not_happened(engine: str, home: Path, tmp_path: Path) -> None:
    """ST2: kill -9 at any point leaves all or nothing."""
    assert engine
    root, chance = tmp_path / "shop", seeded()[1]
    root.mkdir()
    with closing(open_app(home)) as app:
        team, items = Team(app, root), dict[str, set[str]]()
        for number in range(SILENT):
            identity = team.join(f"Old{number}").id
            team.reserve(f"Old{number}", f"part{number}/**", f"docs{number}/**")
            added = [team.add(f"Item {number}{part}").id for part in "ab"]
            items[identity] = {team.claim(f"Old{number}", item).id for item in added}
        acknowledged = set[str]()
        for _ in range(ROUNDS):
            command = [sys.executable, "-c", TAKES_OVER, str(home), str(root)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            for _ in range(chance.randrange(1, SILENT // ROUNDS)):
                acknowledged |= set(process.stdout.readline().split())
            process.kill()
            acknowledged |= set(process.stdout.read().split())
            process.wait()
            process.stdout.close()

            board = team.board()
            told = {
                row.kind.removeprefix("mail/")
                for kind in app.reader.row_kinds(team.desk.project, "mail/")
                for row in app.reader.newest_rows(team.desk.project, [kind], limit=1)
            }
            assert acknowledged <= board.ended.keys()
            for name, claimed in items.items():
                is_over = name in board.ended
                held = {one.id for one in board.claims_of(name)}
                open_again = {one for one in claimed if board.work[one].value.status == "open"}
                session = f"ses_{name.partition('-')[0]}"
                assert (name in board.identities) != is_over
                assert (held, open_again) == ((set(), claimed) if is_over else (claimed, set()))
                assert len(board.reservations_of(name)) == (0 if is_over else 2)
                assert (session in told) == is_over
            version, end = app.reader.project_end(team.desk.project)
            entries = app.reader.project_entries(team.desk.project)
            assert not find_damage(entries, version=version, end=end)
        assert acknowledged
