"""The commands for several agents: what is said, and the exit codes by which scripts decide."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from tests.app.coordination.team import Team, git
from tests.cli.conftest import Said, Terminal

ASCII_BOX = "+- ACTIVE SESSIONS"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x\n")
    opt_in(tmp_path, "standard")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


@pytest.fixture
def team(home: Path, project: Path, typed: Terminal) -> Team:
    assert typed
    team = Team(open_app(home), project)
    app = open_app(home)
    team.clock.at_ms = app.store_clock.now_ms()  # that of the commands
    app.close()
    return team


def answer(said: Said) -> dict[str, object]:
    return json.loads(said.out)


def test_a_preflight_says_by_its_exit_code_whether_to_go_on(typed: Terminal, team: Team) -> None:
    """PF7, PF10: 0 go on, 4 needs an answer, and it never waits for one without a terminal."""
    first = typed("preflight", "--track", "checkout")
    team.join("Ana", "checkout")
    second = typed("preflight", "--track", "checkout", "--json")

    assert (first.code, "no active sessions" in first.out) == (0, True)
    assert second.code == 4
    report = answer(second)
    assert {"active_sessions", "conflicts", "recommendations"} <= report.keys()
    assert report["options"] == ["proceed", "switch", "wait"]
    assert report["default"] == "switch"
    assert "already on checkout" in str(report["prompt"])


def test_boxes_are_drawn_for_people_and_plain_where_asked(typed: Terminal, team: Team) -> None:
    """OP1, OP2: who is here, with track, items and files. PF2: reading registers nobody."""
    team.join("Ana", "checkout")
    team.reserve("Ana", "src/**")
    before = team.events()

    drawn, plain = typed("who"), typed("who", "--plain")
    assert "`interlock session list` shows all sessions" in drawn.err, "not all have registered"

    assert "🟢 Ana (session" in drawn.out
    assert "Files: src/**" in drawn.out
    assert plain.out.isascii()
    assert ASCII_BOX in plain.out
    for words in (("work", "ready"), ("work", "list"), ("mail", "inbox")):
        assert typed(*words).code == 0
    assert team.events() == before


def test_an_inbox_is_printed_page_by_page(typed: Terminal, team: Team) -> None:
    sent = [team.send("Ana", "overseer", f"Number {number}").id for number in range(60)]

    first = typed("mail", "inbox")
    second = typed("mail", "inbox", "--after", sent[49])

    assert [line.split()[0] for line in first.out.splitlines()] == sent[:50]
    assert f"10 more: `interlock mail inbox --after {sent[49]}`" in first.err
    assert [line.split()[0] for line in second.out.splitlines()] == sent[50:]
    assert len(json.loads(typed("mail", "inbox", "--json").out)) == 60
    assert typed("mail", "ack", *sent[:59]).code == 0
    assert typed("mail", "inbox").out.split()[0] == sent[59]
    assert typed("mail", "inbox", "--after", sent[59]).out == (
        "There are no more unacknowledged messages.\n"
    )
    assert typed("mail", "inbox", "--after", "msg_0").code == 1


def test_an_agent_does_not_take_over_from_who_is_there(
    typed: Terminal, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = team.join("Ana")
    monkeypatch.setenv("CLAUDECODE", "1")

    said = typed("takeover", ana.id, "--force")

    assert said.code == 1
    assert "wants a person" in said.err


@pytest.mark.parametrize("is_enforced", [False, True])
def test_the_guard_asks_before_a_commit(
    typed: Terminal, team: Team, home: Path, *, is_enforced: bool
) -> None:
    """OP8: names the holder, lets other files pass, and keeps the hook that was there."""
    if is_enforced:
        config = team.root / ".interlock" / "config.toml"
        config.write_text(f"{config.read_text()}\n[coordination]\nenforce = true\n")
    earlier = team.root / ".git" / "hooks" / "pre-commit"
    earlier.write_text("#!/bin/sh\necho the earlier hook\n")
    earlier.chmod(0o755)
    assert typed("guard", "install").code == 0
    assert typed("guard", "install").code == 0, "again changes nothing"
    team.join("Ana")
    team.reserve("Ana", "src/**")

    def commit(name: str) -> subprocess.CompletedProcess[str]:
        path = team.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("changed\n")
        git(team.root, "add", name)
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]
        # Nothing but what git itself needs is set, and where a store is that is not in a file.
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(home.parent)}
        variables |= {k: v for k, v in os.environ.items() if k == "INTERLOCK_STORE"}
        return subprocess.run(
            command, cwd=team.root, capture_output=True, text=True, check=False, env=variables
        )

    held, free, metadata = commit("src/a.py"), commit("docs.md"), commit(".beads/issues.jsonl")

    assert "Ana (session" in held.stderr
    assert held.returncode == int(is_enforced)
    if is_enforced:
        assert free.returncode == 1, "the refused file is still staged"
        git(team.root, "reset", "-q", "src/a.py")
        assert commit("docs.md").returncode == 0
    else:
        assert (free.returncode, metadata.returncode) == (0, 0)
        assert "the earlier hook" in free.stderr + free.stdout
    assert typed("guard", "remove").code == 0
    assert "the earlier hook" in earlier.read_text()
