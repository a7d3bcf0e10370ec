"""Commands about sessions, runs, gaps, keys and preferences, as typed."""

import json
import os
import shlex
from pathlib import Path

import click
import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import progress
from interlock.app.protocol.feature_reviews import complete_feature
from interlock.cli import commands
from interlock.core.protocol.feature_completion import FeatureCompletionRequest
from interlock.core.protocol.gated_session import Conversation
from interlock.workspace.machine import clients, processes
from tests.cli.conftest import Terminal
from tests.scenes import handed_in, started
from tests.sessions import begin_recorded, record_progress


def test_without_an_id_the_only_open_session_of_the_directory_is_meant(
    app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "You have no open session here" in typed("session", "show").err
    first = started(app, tmp_path, steps=1)
    assert typed("session", "show").out.startswith(first.session)
    second = started(app, tmp_path)
    refused = typed("session", "show").err
    assert "Several sessions are open here" in refused
    assert f"  interlock session show {second.session}\n" in refused
    handed_in(app, first)
    assert typed("session", "show").out.startswith(second.session)
    monkeypatch.setenv("INTERLOCK_SESSION", first.session)
    assert typed("session", "show").out.startswith(first.session)


def test_plan_tasks_and_subagents_are_shown(app: App, typed: Terminal, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session
    record_progress(app, session)

    said = typed("session", "show", session).out
    shown = json.loads(typed("session", "show", session, "--json").out)["progress"]

    assert "Task list\n  in progress: Build it\n" in said
    assert "Plan that the user approved\n  # Plan\n" in said
    assert "  Explore, asked “Look”: completed. Found it" in said
    assert shown["plan"]["text"] == "# Plan"
    task = {"title": "Build it", "status": "in_progress", "id": "", "conversation": ""}
    assert shown["tasks"] == [task]
    assert [one["outcome"] for one in shown["subagents"]] == ["completed"]


def test_a_long_plan_is_clipped_unless_it_is_asked_for_in_full(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session
    plan = "\n".join(f"- item {number}" for number in range(3_000))
    progress.record_plan(app, session, "claude-code", text=plan, file="")

    shown = typed("session", "show", session).out
    whole = typed("session", "show", session, "--full").out

    assert "  item 39\n" in shown
    assert "  item 40\n" not in shown
    assert f" more lines: `interlock session show {session} --full`\n" in shown
    assert "  item 1000\n" in whole


def test_open_reviews_are_listed_as_json_too(app: App, typed: Terminal, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session
    complete_feature(app, session, FeatureCompletionRequest("Export", ("qa",)))

    listed = json.loads(typed("approvals", "list", "--json").out)

    assert listed["approvals"] == []
    assert [(one["session"], one["awaited"]) for one in listed["reviews"]] == [(session, ["qa"])]


def test_where_several_sessions_may_be_meant_each_has_its_command(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    sessions = [
        begin_recorded(app, tmp_path, Conversation("claude-code", name)).session
        for name in ("one", "two")
    ]

    said = typed("session", "set-state", "--task", "a b", "--json")

    assert said.code == 1
    problem = json.loads(said.out)
    assert problem["code"] == "several_sessions"
    assert sorted(problem["commands"]) == sorted(
        f"interlock session set-state --task 'a b' --json --session {session}"
        for session in sessions
    )
    done = json.loads(typed(*shlex.split(problem["commands"][0])[1:]).out)
    assert (done["sessionId"], done["activeTask"]) == (problem["commands"][0].split()[-1], "a b")
    refused = typed("mode")
    assert refused.err.startswith("error: Several sessions are open here, and nothing says which")
    assert f"\n  interlock mode --session {sessions[0]}\n" in refused.err


def test_a_session_is_started_or_gone_on_with(app: App, typed: Terminal, tmp_path: Path) -> None:
    assert typed("session", "start").err.startswith("error: The project at ")
    opt_in(tmp_path, "standard")

    first = json.loads(typed("session", "start", "--json").out)["sessionId"]
    assert json.loads(typed("session", "start", "--json").out)["sessionId"] == first
    begin_recorded(app, tmp_path, Conversation("claude-code", "one"))
    (ourselves,) = processes.running_processes([os.getpid()])
    clients.remember(app.home, ourselves, "claude-code", "one", now_ms=app.clock.now_ms())
    third = json.loads(typed("session", "start", "--json").out)["sessionId"]
    assert third != first, "where several go on, it is a new one"


def test_a_session_is_exported_checked_and_imported(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    session = handed_in(app, started(app, tmp_path), "password=hunter2hunter2").session

    said = typed("session", "export", session, "-o", "out.json")
    assert said.out.splitlines()[0] == "Wrote 8 events to out.json"
    assert "looks like a secret (variable-password)" in said.out
    assert typed("session", "verify-bundle", "out.json").out == f"Sound: {session}, 8 events\n"
    imported = typed("session", "import", "out.json").out.split()[2].rstrip(".")
    assert imported != session
    shown = typed("session", "show", imported).out.splitlines()
    assert shown[2] == f"imported from {session}, checked for damage, not for forgery"
    titles = {
        line.split()[0]: "  imported: " in line
        for line in typed("session", "list").out.splitlines()[1:]
    }
    assert titles == {session: False, imported: True}
    assert typed("session", "export", imported, "-o", "again.json").code == 0
    again = typed("session", "import", "again.json").out.split()[2].rstrip(".")
    assert f"imported from {imported}" in typed("session", "show", again).out


@pytest.mark.parametrize("verb", ["verify-bundle", "import"])
@pytest.mark.parametrize("kind", ["device", "pipe", "hole"])
def test_a_bundle_is_a_file_of_limited_size(
    typed: Terminal, tmp_path: Path, verb: str, kind: str
) -> None:
    path = tmp_path / "bundle.json"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, 1 << 40)

    refused = typed("session", verb, str(path))

    assert refused.code == 1
    assert ("more than 524288 KB" if kind == "hole" else "it is not a file") in refused.err


def test_an_export_can_go_to_standard_output(
    app: App,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    session = handed_in(app, started(app, tmp_path), "password=hunter2hunter2").session

    assert commands.run_cli(["session", "export", session, "-o", "-"]) == 0

    said = capfdbinary.readouterr()
    assert json.loads(said.out)["content"]["session"] == session
    assert b"looks like a secret (variable-password)" in said.err
    assert not (tmp_path / "-").exists()


def test_the_other_kind_of_id_is_understood_or_named(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    begun = started(app, tmp_path)
    started(app, tmp_path)

    assert typed("session", "show", begun.run).out.startswith(begun.session)
    for group in ("session", "run"):
        unknown = typed(group, "show", "run_none")
        assert (unknown.code, unknown.err.split("\n")[0]) == (1, "error: No run `run_none`")
    said = typed("run", "show", begun.session)
    assert said.err.splitlines()[0] == (
        f"error: `{begun.session}` is the id of a session, and a run is wanted"
    )


def test_an_export_is_private_and_never_written_over_something(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    session = started(app, tmp_path).session
    typed("session", "export", session, "-o", "out.json")

    assert (tmp_path / "out.json").stat().st_mode & 0o777 == 0o600
    again = typed("session", "export", session, "-o", "out.json")
    assert (again.code, again.err.split("\n")[0]) == (
        1,
        "error: `out.json` cannot be written: File exists",
    )
    assert typed("session", "export", session, "-o", "no/such/place.json").code == 1


def test_deleting_asks_first(
    app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = started(app, tmp_path).session

    def no(*_: object, **__: object) -> bool:
        raise click.Abort

    monkeypatch.setattr("interlock.cli.session.click.confirm", no)
    assert typed("session", "delete", session).code == 130
    assert typed("session", "delete", session, "--yes").out == f"Deleted {session}\n"
    assert typed("session", "delete", session, "--yes").code == 1


@pytest.mark.both_stores
def test_keys_are_rotated_and_revoked_and_never_shown(
    app: App, typed: Terminal, home: Path, kept_in: str
) -> None:
    old = app.keyring.current()

    assert typed("keys", "rotate").code == 0
    listed = json.loads(typed("keys", "list", "--json").out)
    assert [key["state"] for key in listed] == ["retired", "current"]
    assert typed("keys", "revoke", str(old.id)).code == 0
    assert typed("keys", "revoke", str(old.id)).code == 1
    assert old.secret.hex() not in typed("keys", "list").out
    assert kept_in == "postgres" or old.secret.hex() in (home / "keyring").read_text()


def test_a_delegation_is_recorded_in_a_session_that_is_there(typed: Terminal) -> None:
    refused = typed("agent", "invoke", "qa", "Test it", "--session", "ses_0000000000000000")

    assert refused.code == 1
    assert "ses_0000000000000000" in refused.err


def test_a_network_goes_with_the_level_workspace(typed: Terminal) -> None:
    refused = typed("sandbox", "run", "--network", "--", "true")

    assert refused.code == 2
    assert "--network goes with --level workspace" in refused.err
