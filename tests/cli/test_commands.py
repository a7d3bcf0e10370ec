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


def test_a_misspelt_workflow_is_answered_with_the_likely_one(typed: Terminal) -> None:
    said = typed("workflow", "show", "helo")

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("error: No workflow `helo`\n\nhint: Did you mean `hello`? ")


def test_an_empty_store_says_what_to_do(typed: Terminal) -> None:
    said = typed("session", "list")

    assert said.code == 0
    assert "interlock demo" in said.out
    assert json.loads(typed("session", "list", "--json").out) == []


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
    assert sound == Said(0, "1 session with 5 sound events, 0 damaged\n", "")
    place_of(home).run("DELETE FROM event WHERE seq = 1")

    said = typed("store", "verify")

    assert said.code == 1
    assert f"{session}: corrupt_tail: event 1 is missing (1 sound event)" in said.out
    unsound = json.loads(typed("store", "verify", "--json").out)["unsound"]
    assert [found["session"] for found in unsound] == [session]


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
