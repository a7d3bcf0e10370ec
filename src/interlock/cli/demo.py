"""`interlock demo`: a scripted agent goes through a workflow while its server is killed."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from interlock.app.context import open_app
from interlock.app.sessions import SessionView, show_session
from interlock.cli.session import print_view
from interlock.cli.terminal import print_json
from interlock.mcp.client import StdioClient

NOTES = (
    "It is a small command-line tool; its tests are in `tests/`.",
    "The README does not say how to run the tests. One line would do. Left out: the logo.",
    "`grep -c 'make test' README.md` says 0 before and 1 after.",
)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print what was recorded as JSON")
def demo(*, as_json: bool) -> None:
    """Play a workflow with a scripted agent, kill -9 included, in a directory of its own"""
    say = _quiet if as_json else print
    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as directory:
        home = Path(directory)
        say(f"A scripted agent plays the workflow `hello` in {home}, removed at the end.\n")
        session = _play(home, say)
        app = open_app(home)
        view = show_session(app, session)
        app.close()
    assert isinstance(view, SessionView), "the demo's session is there"
    assert view.health.state == "healthy", f"the demo's chain is {view.health}"
    if as_json:
        print_json(view)
        return
    print("\nWhat was recorded, each step once:\n")
    print_view(view)
    print(f"\nThe chain of {view.health.valid} events verifies.")
    print("Connect your own agent: interlock mcp --print-config claude-code")


def _quiet(_: str) -> None:
    pass


def _play(home: Path, say: Callable[[str], None]) -> str:
    server = StdioClient(home)
    server.initialize()
    say("agent:  start_workflow hello, goal: find one small improvement")
    first = server.call("start_workflow", workflowId="hello", goal="Find one small improvement")
    say(_shown(first))
    say("agent:  continue_workflow with its notes on step 1")
    second = server.call("continue_workflow", **_hand_in(first, NOTES[0]))
    say(_shown(second))

    say("agent:  continue_workflow with its notes on step 2 ... and the server is killed (kill -9)")
    server.post(
        "tools/call", {"name": "continue_workflow", "arguments": _hand_in(second, NOTES[1])}
    )
    server.kill()

    server = StdioClient(home)
    server.initialize()
    say("agent:  never got an answer. It repeats its call to a new server:")
    third = server.call("continue_workflow", **_hand_in(second, NOTES[1]))
    say(_shown(third))
    again = server.call("continue_workflow", **_hand_in(second, NOTES[1]))
    assert again == third, "a repeated call has the same answer"
    say("agent:  repeats it once more: the same answer, nothing recorded twice.")
    shown = server.call("continue_workflow", continueToken=_token(third))
    assert shown["structuredContent"]["pending"] == third["structuredContent"]["pending"]
    say("agent:  lost its place, asks without output: the same step again, nothing written.")
    say("agent:  continue_workflow with its notes on step 3")
    last = server.call("continue_workflow", **_hand_in(shown, NOTES[2]))
    assert last["structuredContent"]["isComplete"], "three steps make `hello`"
    say(_shown(last))
    server.close()
    return last["structuredContent"]["session"]


def _token(result: dict[str, Any]) -> str:
    return result["structuredContent"]["continueToken"]


def _hand_in(result: dict[str, Any], notes: str) -> dict[str, Any]:
    return {"continueToken": _token(result), "output": {"notesMarkdown": notes}}


def _shown(result: dict[str, Any]) -> str:
    pending = result["structuredContent"]["pending"]
    if pending is None:
        return "server: the workflow is complete"
    return f"server: step {pending['number']} of {pending['of']}: {pending['title']}"
