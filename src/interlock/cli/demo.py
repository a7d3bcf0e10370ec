"""`interlock demo`: a scripted agent plays a workflow, and much goes wrong on the way."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from interlock.app.context import open_app
from interlock.app.sessions.lookup import SessionView, load_run_graph, show_session
from interlock.cli.terminal import print_json, print_lines
from interlock.core.ids import RunId
from interlock.core.views.text_tree import draw_tree
from interlock.mcp.client import StdioClient

STEP_1_NOTES = "It is a small command-line tool; its tests are in `tests/`."
HASTY_NOTES = "The README does not say how to run the tests."
STEP_2_NOTES = (
    "The README does not say how to run the tests. One line would do. Left out: the logo."
)
OTHER_IDEA_NOTES = "The error for a missing file is a traceback. Left out: the README."
STEP_3_NOTES = "`grep -c 'make test' README.md` says 0 before and 1 after."

Say = Callable[[str], None]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print what was recorded as JSON")
@click.option("--driver", "is_unattended", is_flag=True, help="An unattended run, killed once")
@click.option("--review", "is_review", is_flag=True, help="A merge request, reviewed unattended")
def demo(*, as_json: bool, is_unattended: bool, is_review: bool) -> None:
    """Play a workflow with a scripted agent: kill -9, a rewind, a blocked attempt, a resume"""
    say: Say = _print_nothing if as_json else print_lines
    # The demo's store is in its own directory, wherever the user's store is.
    os.environ.pop("INTERLOCK_STORE", None)
    if is_unattended or is_review:
        _play_unattended(is_review=is_review)
        return
    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as directory:
        home = Path(directory)
        say(f"A scripted agent plays the workflow `hello` in {home}, removed at the end.")
        say("")
        introduction = _play_workflow(home, say)
        app = open_app(home)
        view = show_session(app, introduction["session"])
        graph = load_run_graph(app, RunId(introduction["run"]))
        app.close()
    assert isinstance(view, SessionView), "the demo's session is there"
    assert view.health.state == "healthy", f"the demo's chain is {view.health}"
    if as_json:
        print_json({"session": view, "graph": graph})
        return
    print_lines(
        "",
        "What was recorded (● a step with its notes, ✗ an attempt that was not accepted,",
        "○ the step once more, submitted on another branch):",
        "",
        *draw_tree(graph),
        "",
        f"The chain of {view.health.valid} events verifies.",
    )
    print_lines("Connect your own agent: interlock install claude-code")


def _play_unattended(*, is_review: bool) -> None:
    from interlock.cli.demo_driver import play_unattended  # noqa: PLC0415 (only for these)
    from interlock.cli.demo_review import play_review  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as directory:
        (play_review if is_review else play_unattended)(Path(directory))


def _print_nothing(_: str) -> None:
    pass


def _play_workflow(home: Path, say: Say) -> dict[str, Any]:
    """Return the introduction of the run that was played."""
    server = _start_server(home)
    say("agent:  start_workflow hello, goal: find one small improvement")
    first = _structured_answer(
        server.call("start_workflow", workflowId="hello", goal="Find one small improvement")
    )
    say(_step_line(first))
    say("agent:  continue_workflow with its notes on step 1")
    second = _hand_in(server, first, STEP_1_NOTES)
    say(_step_line(second))

    say("agent:  submits step 2 in haste")
    blocked = _hand_in(server, second, HASTY_NOTES)
    say(f"server: not accepted: {blocked['blocked']['blockers'][0]['message']}")
    say("agent:  fixes its notes and sends them ... and the server is killed (kill -9)")
    server.post(
        "tools/call",
        {"name": "continue_workflow", "arguments": _continue_arguments(blocked, STEP_2_NOTES)},
    )
    server.kill()

    server = _start_server(home)
    say("agent:  never got an answer. It repeats its call to a new server:")
    third = _hand_in(server, blocked, STEP_2_NOTES)
    say(_step_line(third))
    assert _hand_in(server, blocked, STEP_2_NOTES) == third, "a repeated call has the same answer"
    say("agent:  repeats it once more: the same answer, nothing recorded twice.")

    say("user:   rewinds the conversation; the agent submits step 2 again, with another idea")
    branch = _hand_in(server, second, OTHER_IDEA_NOTES)
    say(f"{_step_line(branch)}, on a new branch; the first one is kept")
    say("user:   starts a new conversation: where were we? The agent calls resume_session")
    candidate = _structured_answer(server.call("resume_session", query="small improvement"))[
        "candidates"
    ][0]
    progress = f"{candidate['stepsDone']} of {candidate['stepCount']} steps done"
    say(f"server: {candidate['title']}: {progress}")
    call = candidate["nextCall"]
    resumed = _structured_answer(server.call(call["tool"], **call["params"]))
    assert resumed["pending"] == branch["pending"], "the run goes on where it was left"
    assert OTHER_IDEA_NOTES in resumed["recap"], "the newest notes are in the recap"
    say(f"{_step_line(resumed)}, with a recap of the notes so far")
    say("agent:  continue_workflow with its notes on step 3")
    end = _hand_in(server, resumed, STEP_3_NOTES)
    say(_step_line(end))
    server.close()
    return first["introduction"]


def _start_server(home: Path) -> StdioClient:
    server = StdioClient(home)
    server.initialize()
    return server


def _structured_answer(result: dict[str, Any]) -> dict[str, Any]:
    assert not result["isError"], result["content"][0]["text"]
    return result["structuredContent"]


def _continue_arguments(previous_answer: dict[str, Any], notes: str) -> dict[str, Any]:
    return {"continueToken": previous_answer["continueToken"], "output": {"notesMarkdown": notes}}


def _hand_in(server: StdioClient, previous_answer: dict[str, Any], notes: str) -> dict[str, Any]:
    return _structured_answer(
        server.call("continue_workflow", **_continue_arguments(previous_answer, notes))
    )


def _step_line(answer: dict[str, Any]) -> str:
    pending = answer["pending"]
    if pending is None:
        return "server: the workflow is complete"
    return f"server: step {pending['number']} of {pending['of']}: {pending['title']}"
