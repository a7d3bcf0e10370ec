"""Unattended work on the command line: ordered, watched, controlled, and never by an agent."""

import json
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from interlock import __version__
from interlock.app.admin.server_process import RunningServer, ServerLease, become_server
from interlock.app.context import App
from interlock.app.unattended.driver_settings import DriverSettings
from interlock.app.unattended.orders import list_active, state_of, steer_texts
from interlock.cli import unattended_order
from interlock.core.gate.decide import decide
from interlock.core.gate.own_calls import needs_no_sandbox, own_commands
from interlock.core.gate.shell import analyse
from interlock.core.gate.state import GateRow, Policy
from interlock.core.gate.tool_call import parse_tool_call
from interlock.core.ids import SessionId
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.conversation import ModelMessage, SpokenPart, Usage
from interlock.core.unattended.journal import ModelAnswered, ModelCalled, ToolStarted
from interlock.core.unattended.order import Limits
from interlock.workspace.machine import processes
from tests.cli.conftest import Terminal
from tests.cli.running_command import read_until, start_command
from tests.cli.test_user_only import PATHS
from tests.unattended_scene import (
    MODEL,
    JournalWriter,
    begin_driver,
    make_repository,
    order,
    report,
    spend,
)
from tests.workspace.git.test_state import run

HOSTILE = "Build\n\x1b[2Ja shed\u202e"
START = ("run", "start", "hello", "--goal", "Build a shed", "--driver")


@pytest.fixture
def repository(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert app.home
    made = make_repository(tmp_path / "shed")
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def session(app: App, repository: Path) -> SessionId:
    return order(app, repository)


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], repository: Path) -> Terminal:
    assert repository
    return Terminal(capsys)


def test_an_order_says_its_place_how_to_watch_it_and_what_is_missing(
    app: App, typed: Terminal, repository: Path
) -> None:
    limits = ("--turns", "7", "--minutes", "9", "--tokens", "1000", "--cost", "0.5")

    first = typed(*START, "--model", MODEL, "--read-only", *limits)
    ((session, state),) = list_active(app)
    second = json.loads(typed(*START, "--runner", "claude-code", "--json").out)

    base = run(repository, "rev-parse", "HEAD")
    assert state.limits == Limits(7, 9, 1000, 500_000)
    assert (state.order.model, state.order.base, state.order.is_read_only) == (MODEL, base, True)
    assert first.code == 0
    assert f"Ordered: {session}, number 1 of" in first.out
    assert f"within 7 turns, 9 minutes of work, 1,000 tokens, $0.50, from commit {base[:12]}" in (
        first.out
    )
    assert f"`interlock driver turns {session} --follow`" in first.out
    assert "`interlock up --background` starts one, and a driver with it" in first.err
    assert (second["position"], second["console"]) == (2, None)
    assert second["missing"] == first.err.strip()


def test_an_order_names_the_console_and_says_who_must_start_a_driver(
    app: App, typed: Terminal
) -> None:
    server = become_server(app.home)
    assert isinstance(server, ServerLease)
    server.announce(RunningServer(os.getpid(), "http://127.0.0.1:3100", 1, "1"))
    try:
        ordered = json.loads(typed(*START, "--model", MODEL, "--json").out)
        (app.home / "config.toml").write_text(f'[driver]\nautostart = false\nmodel = "{MODEL}"\n')
        by_hand = json.loads(typed(*START, "--json").out)
        begin_driver(app)
        nothing = json.loads(typed(*START, "--json").out)
    finally:
        server.release()

    assert ordered["console"] == f"http://127.0.0.1:3100/sessions/{ordered['session']}"
    assert ordered["missing"] == "No driver runs yet: the server starts one in a moment."
    assert "`interlock driver run`" in by_hand["missing"]
    assert nothing["missing"] is None


def test_other_repositories_are_named_with_a_commit_of_theirs(
    app: App, typed: Terminal, repository: Path
) -> None:
    web = make_repository(repository.parent / "we@b")
    first = run(web, "rev-parse", "HEAD")
    run(web, "commit", "-q", "--allow-empty", "-m", "two")

    started = typed(
        *(*START, "--model", MODEL),
        *("--repo", "old=../we@b@HEAD~1", "--repo", "lib=../shed/../lib@v1"),
    )
    make_repository(repository.parent / "lib")
    again = typed(*START, "--model", MODEL, "--repo", "old=../we@b@HEAD~1", "--repo", "lib=../lib")

    lib = repository.parent / "lib"
    assert started.code == 1
    assert "The repository `lib` cannot be part of the work" in started.err
    ((_, state),) = list_active(app)
    assert [(one.name, one.path) for one in state.order.repositories] == [
        ("old", str(web)),
        ("lib", str(lib)),
    ]
    assert state.order.repositories[0].base == first
    assert f"also in old: {web}, from commit {first[:12]}" in again.out


MISUSES = {
    "run start hello --goal x --repo web=.": "--repo is for unattended work: add --driver",
    "run start hello --goal x --driver --repo web": "as in web=../web or web=../web@v2",
    "run start hello --goal x --model m": "--model is for unattended work: add --driver",
    "run start hello --goal x --turns 3": "--turns is for unattended work: add --driver",
    "run start hello --goal x --read-only": "--read-only is for unattended work: add --driver",
    "run start hello --goal x --driver --session ses_1": "--session does not go with --driver",
    "run start hello --goal x --driver --on-conflict warn": "--on-conflict does not go with",
    "run start hello --goal x --driver --turns 0": "0 is not in the range",
    "run start hello --goal x --driver --cost nan": "more than 0",
    "run start hello --goal x --driver --cost 0": "more than 0",
    "run start hello --goal x --driver --runner codex": "is not one of",
    "driver limits ses_1": "Say which",
    "driver cancel": "Name a session, or say --all",
    "driver cancel ses_1 --all": "Name a session, or say --all",
    "driver status --watch --json": "--watch is for people",
    "worktrees clean --force": "--force wants the sessions by name",
}


@pytest.mark.parametrize("words", MISUSES)
def test_what_makes_no_sense_is_refused_before_anything_happens(
    app: App, typed: Terminal, words: str
) -> None:
    said = typed(*words.split())

    assert (said.code, MISUSES[words] in said.out + said.err) == (2, True), said
    assert list_active(app) == []
    assert app.reader.position() == 0


def test_what_cannot_be_done_is_refused_with_what_to_do(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = {
        (): "Name one with `--model anthropic:MODEL`",
        ("--model", MODEL, "--base", "nowhere"): "`nowhere` is not a commit of",
        ("--model", MODEL, "--base", "--all"): "`--all` is not a commit of",
    }
    for options, expected in refusals.items():
        said = typed(*START, *options)
        assert (said.code, expected in said.err) == (1, True), said.err
    assert "unknown_workflow" in typed("run", "start", "no", *START[3:], "--json").out
    monkeypatch.chdir(tmp_path)
    assert "is not in a git repository with a commit" in typed(*START, "--model", MODEL).err


@pytest.mark.invariant("agents-keep-their-rules")
def test_an_agent_has_nothing_done_unattended(
    app: App, typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "interlock run start hello --goal x --driver"
    call = parse_tool_call("claude-code", "shell", "Bash", {"command": command}, "/work")
    row = GateRow("ses_1", "coding", is_started=True, task="T-1")

    denied = decide(row, Policy(), call, home="/home/interlock")
    monkeypatch.setattr(processes, "can_open_terminal", lambda: False)
    by_script = typed(*START, "--model", MODEL)

    assert (denied.answer, denied.rule) == ("deny", "user.only")
    assert not any(map(needs_no_sandbox, own_commands(analyse(command))))
    assert "wants a person, and no terminal could be opened" in by_script.err
    assert "or from a script over REST with the user's secret" in by_script.err
    assert list_active(app) == []


def test_work_is_paused_resumed_limited_steered_and_cancelled_by_the_start_of_its_id(
    app: App, typed: Terminal, session: SessionId
) -> None:
    name = session[:10]
    assert f"{session} is paused" in typed("driver", "pause", name).out
    resumed = typed("driver", "resume", name)
    assert f"{session} goes on as soon as it is its turn." in resumed.out
    assert "`interlock up --background`" in resumed.err
    begin_driver(app)
    report(app, session, UnattendedMoved("working", spend(1)))
    assert "pauses after the turn" in typed("driver", "pause", name).out
    assert typed("driver", "resume", name) == (0, f"{session} goes on.\n", "")
    assert "pauses in a moment" in typed("driver", "pause", name, "--now").out
    assert typed("driver", "resume", name).code == 0
    assert "told before its next turn.\n" in typed("driver", "steer", name, "Use wood").out
    report(app, session, UnattendedMoved("parked", spend(200), "limit", "200 turns are reached"))
    raised = typed("driver", "limits", name, "--turns", "300", "--cost", "7")
    assert f"{session} is queued, within 300 turns, 60 minutes of work" in raised.out
    report(app, session, UnattendedMoved("working", spend(201)))
    status: dict[str, Any] = json.loads(typed("driver", "cancel", name, "--json").out)
    state = state_of(app, session)
    assert state is not None
    assert (status["turn"], status["limits"]["costMicros"], state.wish) == (
        201,
        7_000_000,
        "cancel",
    )
    assert [text for _, text in steer_texts(app, session, state.steers)] == ["Use wood"]
    report(app, session, UnattendedMoved("done", spend(201), outcome="cancelled"))
    assert f"{session} is cancelled." in typed("driver", "cancel", name).out
    for words in (("pause", name), ("resume", name), ("steer", name, "x"), ("limits", name)):
        said = typed(
            "driver", *words, *(("--turns", "9") if words[0] == "limits" else ()), "--json"
        )
        assert (said.code, json.loads(said.out)["code"]) == (1, "unattended_over"), words
    assert json.loads(typed("driver", "pause", "ses_no", "--json").out)["code"] == "unknown_session"


def test_everything_is_cancelled_at_once(
    app: App, typed: Terminal, session: SessionId, repository: Path
) -> None:
    other = order(app, repository, "Paint it")
    begin_driver(app)
    report(app, session, UnattendedMoved("working", spend(1)))

    said = typed("driver", "cancel", "--all")

    assert said.out.splitlines() == [
        f"{session} is being cancelled: its driver ends the running tool first."
        " `interlock driver status` shows the progress.",
        f"{other} is cancelled.",
    ]
    report(app, session, UnattendedMoved("done", spend(1), outcome="cancelled"))
    assert typed("driver", "cancel", "--all").out == "No unattended work is open.\n"


def test_the_status_has_what_a_program_needs(
    app: App, typed: Terminal, session: SessionId, repository: Path
) -> None:
    second = order(app, repository, "Paint it")
    nobody: dict[str, Any] = json.loads(typed("driver", "status", "--json").out)
    begin_driver(app, max_sessions=1)
    report(app, session, UnattendedMoved("working", spend(3), level="workspace"))
    writer = JournalWriter(app, session)
    answered = ModelAnswered(ModelMessage((SpokenPart("Hm"),)), "end", Usage(10, 5), 40_000)
    writer.write(*(entry for _ in range(4) for entry in (ModelCalled("d", 1), answered)))
    writer.write(ToolStarted("c1", "Bash"))

    found: dict[str, Any] = json.loads(typed("driver", "status", "--json").out)

    assert (nobody["isAlive"], nobody["version"], nobody["sessions"]) == (False, None, [])
    assert [one["session"] for one in nobody["queue"]] == [session, second]
    assert (found["isAlive"], found["version"], found["pid"]) == (True, __version__, os.getpid())
    assert (found["sandbox"], found["maxSessions"]) == ("workspace", 1)
    assert found["lease"]["leftMs"] > 0
    (working,) = found["sessions"]
    assert (working["session"], working["status"]["word"]) == (session, "running")
    assert (working["activity"]["tool"], working["state"]["spent"]["turns"]) == ("Bash", 4)
    (queued,) = found["queue"]
    assert queued["waitsBecause"] == "the driver works on 1 session, its limit is 1"


STANDSTILLS: dict[str, tuple[UnattendedMoved, str, str]] = {
    "limit": (
        UnattendedMoved("parked", spend(200), "limit", "the limit of 200 turns is reached"),
        "waiting, just now",
        "to continue: interlock driver limits {session} --turns N",
    ),
    "question": (
        UnattendedMoved("parked", spend(2), "question", "“Name” needs something"),
        "waiting, just now",
        "to continue: interlock driver steer {session} 'your answer'",
    ),
    "approval": (
        UnattendedMoved("parked", spend(2), "approval", HOSTILE),
        "waiting, just now",
        "to continue: interlock approvals list",
    ),
    "credentials": (
        UnattendedMoved("parked", spend(2, None), "credentials", "There is no key"),
        "cost unknown",
        "to continue: interlock driver resume {session}",
    ),
    "paused": (
        UnattendedMoved("paused", spend(2)),
        "paused, just now; turn 2 of 200, 1 of 60 min, $0.01 of $5.00",
        "to continue: interlock driver resume {session}",
    ),
}


@pytest.mark.parametrize("name", STANDSTILLS)
def test_the_status_says_how_what_stands_still_goes_on(
    app: App, typed: Terminal, repository: Path, name: str
) -> None:
    moved, *expected = STANDSTILLS[name]
    session = order(app, repository, HOSTILE)
    begin_driver(app)
    report(app, session, UnattendedMoved("working", spend(1)))
    report(app, session, moved)

    said = typed("driver", "status")

    assert said.out.startswith(f"Driver {__version__} runs (process {os.getpid()}, just now)")
    for text in (*expected, moved.detail.split("\n")[0], "hello: Build"):
        assert text.format(session=session) in said.out
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out


def test_the_status_is_watched_until_it_is_interrupted(app: App, session: SessionId) -> None:
    with start_command("driver", "status", "--watch") as watching:
        read_until(watching, f"{session}  queued")
        begin_driver(app)
        report(app, session, UnattendedMoved("working", spend(1)))
        read_until(watching, f"{session}  running, starting")
        watching.send_signal(signal.SIGINT)

        assert watching.wait(60) == 130


def test_the_guide_has_every_setting_and_only_commands_that_there_are() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "unattended.md").read_text()
    settings = re.findall(r"^\| `([a-z_]+)` \|", guide.split("## Settings")[1], re.MULTILINE)
    commands = {tuple(words.split()) for words in re.findall(r"interlock ([a-z]+ ?[a-z]*)", guide)}
    known = {path[:2] for path in PATHS} | {path[:1] for path in PATHS}

    assert set(settings) == {one.encode_name for one in msgspec.structs.fields(DriverSettings)}
    assert {words for words in commands if words not in known} == set()


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (UnattendedMoved("done", spend(1), outcome="success"), 0, "success"),
        (UnattendedMoved("done", spend(1), outcome="unverified", detail="no proof"), 5, "no proof"),
        (
            UnattendedMoved("parked", spend(1), "question", "Which one?"),
            4,
            "(question): Which one?",
        ),
    ],
)
def test_waiting_ends_with_a_code_that_says_how_the_work_ended(
    typed: Terminal,
    app: App,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    end: UnattendedMoved,
    code: int,
    said: str,
) -> None:
    assert repository
    quota = UnattendedMoved("parked", spend(1), "provider", "later", resume_ms=1)
    moves = iter((UnattendedMoved("working", spend(1)), quota, end))

    def let_time_pass(_: float) -> None:
        ((session, _state),) = list_active(app)
        report(app, session, next(moves))

    monkeypatch.setattr(unattended_order, "time", SimpleNamespace(sleep=let_time_pass))
    typed_line = (*START, "--model", MODEL, "--wait")

    waited = typed(*typed_line)

    assert (waited.code, said in waited.out) == (code, True), waited
    assert next(moves, None) is None, "it waited for the end"
