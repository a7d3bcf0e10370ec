"""The command line, as typed."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from interlock import __version__
from interlock.app.context import App
from interlock.app.runs import user_actions
from interlock.app.sessions.lookup import list_sessions
from tests.cli.conftest import Said, Terminal
from tests.scenes import handed_in, started
from tests.stores import place_of


def test_an_unknown_command_is_misuse(typed: Terminal) -> None:
    assert typed("sesssions") == snapshot(
        Said(
            code=2,
            out="",
            err="""\
error: No such command 'sesssions'. Did you mean 'session'?

hint: `interlock --help` shows how it is called.
""",
        )
    )


def test_workflows_are_listed_and_shown_step_by_step(typed: Terminal) -> None:
    lines = [line.split() for line in typed("workflow", "list").out.splitlines()]

    assert ["hello", "1.0.0", "workflow", "3", "steps", "bundled", "Hello"] in lines
    assert "1. Look around [look-around]" in typed("workflow", "show", "hello").out
    assert json.loads(typed("workflow", "show", "hello", "--json").out)["id"] == "hello"


def test_a_misspelt_workflow_is_answered_with_the_likely_one(typed: Terminal) -> None:
    said = typed("workflow", "show", "helo")

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("error: No workflow `helo`\n\nhint: Did you mean `hello`? ")


def test_a_broken_workflow_is_listed_with_its_problem(typed: Terminal, tmp_path: Path) -> None:
    directory = tmp_path / ".interlock" / "workflows"
    directory.mkdir(parents=True)
    (directory / "oops.json").write_text("{}")

    assert f"not valid: {directory / 'oops.json'}" in typed("workflow", "list").out
    listed = json.loads(typed("workflow", "list", "--json").out)
    missing = [problem["message"] for problem in listed["broken"][0]["problems"]]
    assert missing == [
        f"`{name}` is missing" for name in ("id", "name", "description", "version", "steps")
    ]


def test_an_empty_store_says_what_to_do(typed: Terminal) -> None:
    said = typed("session", "list")

    assert said.code == 0
    assert "interlock demo" in said.out
    assert json.loads(typed("session", "list", "--json").out) == []


def test_a_session_is_listed_and_shown(app: App, typed: Terminal, tmp_path: Path) -> None:
    second = handed_in(app, started(app, tmp_path), "Looked at it.\nAnd more.")
    session = second.session
    second_goal = list_sessions(app, limit=1)[0].title

    header, listed = typed("session", "list").out.splitlines()
    cells = [cell.strip() for cell in listed.split("  ") if cell]
    assert dict(zip(header.split(), cells, strict=True)) == {
        "session": session,
        "changed": "just now",
        "workflow": "line",
        "progress": "1 of 3 done",
        "at": "Step 2",
        "project": str(tmp_path),
        "goal": second_goal,
    }
    shown = typed("session", "show", session[:10]).out
    assert "1 of 3 done, open at `Step 2`" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["1", "Step", "1", "done", *["Looked", "at", "it.", "And", "more."]] in lines
    assert ["2", "Step", "2", "pending"] in lines
    assert json.loads(typed("session", "show", session, "--json").out)["session"] == session


def test_a_list_is_narrowed_to_sessions_with_words(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    wanted = handed_in(app, started(app, tmp_path), "A needle, long ago").session
    user_actions.set_archived(
        app, handed_in(app, started(app, tmp_path), "A needle too").session, is_archived=True
    )
    started(app, tmp_path)

    (row,) = json.loads(typed("session", "list", "--search", "NEEDLE", "--json").out)
    assert row["session"] == wanted
    both = typed("session", "list", "--search", "needle", "--all", "--json").out
    assert len(json.loads(both)) == 2
    assert typed("session", "list", "--search", "absent").out == "No session has these words.\n"


def test_a_session_that_is_not_there_is_refused(typed: Terminal) -> None:
    assert typed("session", "show", "ses_nope") == snapshot(
        Said(
            code=1,
            out="",
            err="""\
error: No session `ses_nope`

hint: `interlock session list` shows them all.
""",
        )
    )
    refused = typed("session", "show", "ses_nope", "--json")
    assert (refused.code, json.loads(refused.out)["code"]) == (1, "unknown_session")


def test_the_start_of_an_id_must_name_one_session(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    sessions = {started(app, tmp_path).session for _ in range(2)}

    said = typed("session", "show", "ses_")

    assert said.code == 1
    assert all(session in said.err for session in sessions)


def test_a_damaged_session_is_named_and_the_exit_code_says_so(
    app: App, typed: Terminal, tmp_path: Path, home: Path
) -> None:
    session = started(app, tmp_path).session
    sound = typed("store", "verify")
    assert sound == Said(0, "1 sessions with 5 sound events, 0 damaged\n", "")
    place_of(home).run("DELETE FROM event WHERE seq = 1")

    said = typed("store", "verify")

    assert said.code == 1
    assert f"{session}: corrupt_tail: event 1 is missing (1 events sound)" in said.out
    unsound = json.loads(typed("store", "verify", "--json").out)["unsound"]
    assert [found["session"] for found in unsound] == [session]


def test_the_store_says_what_it_holds_and_where(
    app: App, typed: Terminal, tmp_path: Path, home: Path
) -> None:
    started(app, tmp_path)

    assert f"home      {home}" in typed("store", "stats").out
    stats = json.loads(typed("store", "stats", "--json").out)["stats"]
    assert (stats["sessions"], stats["events"], stats["blobs"]) == (1, 5, 4)


def test_a_bug_is_reported_without_a_traceback(
    typed: Terminal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Path:
        raise KeyError("agent")

    monkeypatch.setattr("interlock.cli.workflow.data_home", broken)

    said = typed("workflow", "list")

    assert said.code == 3
    assert said.err.startswith("error: Unexpected KeyError: 'agent'")
    (report,) = (home / "logs").glob("crash-*.txt")
    assert "Traceback" in report.read_text()
    assert str(report) in said.err
    (failure,) = re.findall(r"\((err_\w+)\)", said.err.splitlines()[0])
    assert report.read_text().startswith(f"{failure}: "), "the same name in both"


def test_a_reader_that_has_seen_enough_is_no_error(app: App, tmp_path: Path) -> None:
    for _ in range(30):
        started(app, tmp_path)
    command = f"{sys.executable} -m interlock session list --limit 30 | head -n 1"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("session ")


@pytest.mark.slow
def test_the_demo_plays_through_a_kill_and_records_each_step_once(typed: Terminal) -> None:
    said = typed("demo")
    assert said.code == 0
    assert "(kill -9)" in said.out
    assert "server: the workflow is complete" in said.out

    recorded = json.loads(typed("demo", "--json").out)
    kinds = Counter(node["kind"] for node in recorded["graph"]["nodes"])
    assert kinds == {"step": 5, "blocked": 1}
    assert recorded["session"]["health"]["state"] == "healthy"


def test_the_module_is_the_command(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "--version"], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"interlock {__version__}\n"
    assert not home.exists()
