"""`interlock run list | abandon | notes`, as typed."""

import json
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.handoff.export import session_handoff
from interlock.app.runs.advance import advance
from interlock.app.runs.approvals import count_pending, list_pending
from interlock.app.runs.resume import ResumeQuery, find_resumable_runs
from interlock.app.runs.start import StartRequest, start
from interlock.app.runs.user_actions import open_gaps
from interlock.core.handoff.page import handoff_page
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.refusals import RunGivenUp
from tests.cli.conftest import Terminal
from tests.core.views.driven_runs import AGAIN, STOP, Driven, step
from tests.scenes import handed_in, install, linear, output, started


def listed(typed: Terminal, *options: str) -> list[str]:
    return [row["run"] for row in json.loads(typed("run", "list", "--json", *options).out)]


def offered(app: App, workspace: Path) -> list[str]:
    """The runs that an agent may resume."""
    query = ResumeQuery(workspace)
    found = find_resumable_runs(app.reader, app.keyring, query)
    return [each.row.run for each in found]


def test_the_open_runs_of_the_project_are_listed(
    app: App,
    typed: Terminal,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert typed("run", "list").out.startswith("No run is open here.")
    opt_in(tmp_path, "standard")
    pending = handed_in(app, started(app, tmp_path))
    finished = handed_in(app, started(app, tmp_path, steps=1))
    elsewhere = started(app, tmp_path_factory.mktemp("elsewhere"))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")

    header, line = typed("run", "list").out.splitlines()

    cells = [cell.strip() for cell in line.split("  ") if cell]
    row = dict(zip(header.split(), cells, strict=True))
    assert row.pop("goal").startswith("Try it")
    assert row == {
        "run": pending.run,
        "changed": "just now",
        "workflow": "line",
        "progress": "1 of 3 done",
        "status": "running",
        "at": "Step 2",
        "project": str(tmp_path),
    }
    assert set(listed(typed, "--all")) == {pending.run, finished.run, elsewhere.run}


def test_an_abandoned_run_is_offered_to_nobody_and_still_listed(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    kept, first = started(app, tmp_path), started(app, tmp_path)
    gap = {"kind": "gap", "severity": "critical", "summary": "No tests yet"}
    second = advance(app, first.answer.continue_token, output("Half of it.", gap))
    assert isinstance(second, RenderedAnswer)
    run, session = second.run, second.session
    assert set(offered(app, tmp_path)) == {run, kept.run}
    assert [each.run for each in open_gaps(app, session)] == [run]

    said = typed("run", "abandon", run[:12], "--reason", "another way")

    assert said.out.startswith(f"Abandoned {run} at `Step 2`.")
    assert offered(app, tmp_path) == listed(typed) == [kept.run]
    assert list(open_gaps(app, session)) == []
    assert "Half of it" not in handoff_page(session_handoff(app, session))
    assert run in listed(typed, "--all")
    refusal = advance(app, second.answer.continue_token, output("done"))
    assert refusal == RunGivenUp(run)
    again = typed("run", "abandon", run)
    assert (again.code, again.err.splitlines()[0]) == (
        1,
        f"error: Run `{run}` is abandoned already",
    )


def test_what_an_abandoned_run_waited_for_waits_no_longer(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    line = linear(2)
    ask = {"kind": "human_approval", "timeoutMinutes": 1}
    asks = msgspec.structs.replace(line.steps[0], require_confirmation=ask)
    install(app, tmp_path, msgspec.structs.replace(line, steps=(asks, line.steps[1])))
    begun = start(
        app, StartRequest(WorkflowId("line"), goal="Ask me", caller=local_caller(app, tmp_path))
    )
    assert isinstance(begun, RenderedAnswer)
    answered = handed_in(app, begun)
    waiting = answered.answer
    assert (waiting.kind, count_pending(app)) == ("approval", 1)
    *_, deny = typed("approvals", "list").out.splitlines()
    assert waiting.approval is not None
    assert deny == f"  interlock approvals deny {waiting.approval.id} --reason 'what is wrong'"

    typed("run", "abandon", answered.run)

    assert (count_pending(app), list_pending(app)) == (0, [])
    assert typed("approvals", "grant", waiting.approval.id).code == 1
    (row,) = json.loads(typed("run", "list", "--all", "--json").out)
    assert (row["status"]["word"], row["step"]) == ("abandoned", "")


def test_a_finished_run_is_not_abandoned(app: App, typed: Terminal, tmp_path: Path) -> None:
    run = handed_in(app, started(app, tmp_path, steps=1)).run

    said = typed("run", "abandon", run, "--json")

    assert (said.code, json.loads(said.out)["code"]) == (1, "nothing_to_abandon")


def test_the_whole_notes_of_a_step_are_printed_pass_by_pass(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    loop = {"id": "rounds", "title": "Rounds", "type": "loop", "body": [step("try")]}
    rounds = {**loop, "loop": {"type": "while", "maxIterations": 3}}
    run = Driven(app, tmp_path, step("look"), rounds, step("end"))
    first = run.token
    run.hand_in("One way", token=first).hand_in("").hand_in("Looked\n\n" + "x" * 300, token=first)
    run.hand_in("Round one", AGAIN).hand_in("Round two", STOP)
    run_id = run.run.run

    said = typed("run", "notes", run_id)

    assert said.out == (
        f"Look (look)\n  | Looked\n  |\n  | {'x' * 300}\n"
        "Try (try, with loop_control)\n  | Round one\n"
        "Try (try, pass 2, with loop_control)\n  | Round two\n"
    )
    assert said.err.startswith("Left out: 2 texts from which the run did not go on")
    assert typed("run", "notes", run_id, "try").out.count("| Round") == 2
    everything = json.loads(typed("run", "notes", run_id, "--all", "--json").out)
    assert [(each["stepId"], each["result"], each["isLeft"]) for each in everything] == [
        ("look", "accepted", True),
        ("try", "not_accepted", True),
        ("look", "accepted", False),
        ("try", "accepted", False),
        ("try", "accepted", False),
    ]
    missing = typed("run", "notes", run_id, "nowhere")
    assert (missing.code, missing.err.splitlines()[-1]) == (
        1,
        "hint: There are notes of: `look`, `try`.",
    )
