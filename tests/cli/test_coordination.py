"""The commands for several agents: what is said, and the exit codes by which scripts decide."""

import json
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

    assert "🟢 Ana (session" in drawn.out
    assert "Files: src/**" in drawn.out
    assert plain.out.isascii()
    assert ASCII_BOX in plain.out
    for words in (("work", "ready"), ("work", "list"), ("mail", "inbox")):
        assert typed(*words).code == 0
    assert team.events() == before


def test_paths_are_reserved_refused_by_name_and_released(typed: Terminal, team: Team) -> None:
    team.join("Ana")
    team.reserve("Ana", "src/**")

    refused = typed("reserve", "src/a.py")
    insisted = typed("reserve", "src/a.py", "--proceed", "--json")
    released = typed("release")

    assert refused.code == 1
    assert "Ana (session" in refused.err
    assert "hint:" in refused.err
    assert [one["pattern"] for one in answer(insisted)["reservations"]] == ["src/a.py"]  # pyright: ignore
    assert (released.code, released.out) == (0, "You hold nothing.\n")
    assert typed("release", "docs").code == 1
    assert typed("reserve", "../x").code == 1


def test_work_items_speak_like_beads(typed: Terminal, team: Team) -> None:
    assert team
    first = answer(typed("work", "add", "Write it", "-p", "1", "--json"))
    second = answer(typed("work", "add", "Test it", "--after", str(first["id"]), "--json"))
    ready = json.loads(typed("work", "ready", "--json").out)

    assert first["schema_version"] == 1
    assert [one["id"] for one in ready] == [first["id"]], "lists are bare"
    assert typed("claim", str(first["id"])).code == 0
    held = typed("claim", str(first["id"]), "--as", "Bo")
    assert held.code == 1
    assert "is claimed by" in held.err
    assert answer(typed("work", "done", str(first["id"]), "--json"))["status"] == "closed"
    assert [one["id"] for one in json.loads(typed("work", "ready", "--json").out)] == [second["id"]]
    assert typed("work", "show", "nothing").code == 1


def test_a_person_writes_as_the_overseer_and_reads_what_is_for_them(
    typed: Terminal, team: Team
) -> None:
    team.join("Ana")
    assert typed("mail", "send", "Ana", "Stop", "The build is broken").code == 0
    message = team.send("Ana", "overseer", "May I go on?")

    shown = typed("mail", "inbox")
    acknowledged = typed("mail", "ack", message.id)

    assert "May I go on?" in shown.out
    assert acknowledged.code == 0
    assert typed("mail", "inbox").out == "There are no unacknowledged messages.\n"
    assert "Stop" in typed("mail", "search", "broken").out
    assert typed("mail", "ack", "msg_0").code == 1
    assert typed("mail", "send", "a b", "x").code == 1


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


def test_taking_over_says_what_is_free_and_where_the_work_is(typed: Terminal, team: Team) -> None:
    ana = team.join("Ana", "checkout")
    team.reserve("Ana", "src/**")
    (team.root / "src" / "a.py").write_text("not committed\n")

    refused = typed("takeover", ana.id)
    forced = typed("takeover", "Ana", "--force", "--why", "it hangs")

    assert (refused.code, "was seen" in refused.err) == (1, True)
    assert forced.code == 0
    assert "Released: src/**" in forced.out
    ref = f"refs/interlock/taken-over/{ana.id}"
    assert ref in forced.out
    assert git(team.root, "show", f"{ref}:src/a.py") == "not committed\n"
    assert typed("takeover", ana.id, "--force").code == 1, "once"


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
        # Nothing but what git itself needs is set.
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(home.parent)}
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


def test_a_run_is_started_in_a_terminal(typed: Terminal, team: Team) -> None:
    started = typed("run", "start", "hello", "--goal", "say hello", "--track", "checkout")

    assert started.code == 0
    assert "continueToken: ct1" in started.out
    refused = typed(
        *("run", "start", "hello", "--goal", "again", "--track", "checkout"),
        *("--on-conflict", "refuse", "--json"),
    )
    assert (refused.code, answer(refused)["code"]) == (1, "conflict")
    assert len(team.board().identities) == 1
