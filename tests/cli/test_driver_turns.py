"""Turns of unattended work on the command line: within bounds, without tokens, as they come."""

import json
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.core.ids import SessionId
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.conversation import (
    ModelMessage,
    SpokenPart,
    ThinkingPart,
    ToolReply,
    ToolRequest,
    Usage,
)
from interlock.core.unattended.journal import (
    AdvanceAnswered,
    AdvanceIntended,
    Entry,
    JournalNote,
    MessageAdded,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    StepBegun,
    ToolEnded,
    ToolStarted,
)
from tests.cli.conftest import Terminal
from tests.cli.running_command import read_until, start_command
from tests.unattended_scene import (
    MODEL,
    JournalWriter,
    encode,
    make_repository,
    order,
    report,
    spend,
)

HOSTILE = "Build\n\x1b[2Ja shed\u202e"
TOKEN = "st1secret"


@pytest.fixture
def session(app: App, tmp_path: Path) -> SessionId:
    return order(app, make_repository(tmp_path / "shed"))


def entries() -> list[Entry]:
    call = ToolRequest("c1", "Bash", encode({"command": "make test", "note": HOSTILE}))
    message = ModelMessage((ThinkingPart("Secretly"), SpokenPart(f"I try.\n{HOSTILE}"), call))
    return [
        StepBegun("run_1", "s", "Build it", 1, TOKEN, "sys", "msg", MODEL, ("Bash",), "workspace"),
        ModelCalled("digest", 10),
        ModelFailed("overloaded", "busy", wait_ms=3_000),
        ModelAnswered(message, "tools", Usage(1_200, 34, cost_micros=20_000), 2_300),
        ToolStarted("c1", "Bash"),
        ToolEnded(ToolReply("c1", "Bash", "x" * 90_000 + "THE END"), ms=12, exit_code=2),
        MessageAdded("Use wood", "steer"),
        AdvanceIntended("c2", TOKEN, "{}"),
        AdvanceAnswered("blocked", "The notes are missing", TOKEN),
        JournalNote("limit", "80% of 200 turns", f"question:{TOKEN}"),
    ]


def test_turns_show_what_the_model_said_and_did_within_bounds(
    app: App, typed: Terminal, session: SessionId
) -> None:
    nothing = typed("driver", "turns", session)
    JournalWriter(app, session).write(*entries())

    said = typed("driver", "turns", session[:12])
    as_json = typed("driver", "turns", session, "--json").out

    assert (nothing.out, nothing.err) == ("", "Nothing was written down yet.\n")
    for line in (
        f"Step 1: Build it ({MODEL}, workspace)",
        "The model did not answer (overloaded); asked again in 3 s",
        "The model, 2.3 s, 1,200 tokens in, 34 out, $0.02:",
        "  | I try.",
        "  calls Bash",
        "  | command: make test",
        "  Bash: done, exit code 2, 12 ms",
        "  (88007 characters left out)",
        "Told by you:",
        "  | Use wood",
        "  The step was submitted: blocked",
        "  | The notes are missing",
        "Note: limit",
    ):
        assert line in said.out.splitlines(), line
    assert "THE END" in said.out
    assert len(said.out) < 5_000
    for hidden in (TOKEN, "\x1b", "\u202e", "Secretly"):
        assert hidden not in said.out
    assert len(json.loads(as_json)) == len(entries())
    assert TOKEN not in as_json


def test_only_the_newest_turns_are_shown_unless_all_are_wanted(
    app: App, typed: Terminal, session: SessionId
) -> None:
    JournalWriter(app, session).write(*(JournalNote("issue", f"number {n}.") for n in range(100)))

    newest, everything = (
        typed("driver", "turns", session),
        typed("driver", "turns", session, "--all"),
    )

    assert "number 39." not in newest.out
    assert "number 40." in newest.out
    assert "What came before is left out: `--all`" in newest.err
    assert (everything.out.count("number"), everything.err) == (100, "")


def test_turns_are_followed_until_the_work_is_over(app: App, session: SessionId) -> None:
    writer = JournalWriter(app, session)
    report(app, session, UnattendedMoved("working", spend(1)))
    writer.write(JournalNote("issue", "the first."))
    with start_command("driver", "turns", session, "--follow") as following:
        read_until(following, "the first.")
        writer.write(JournalNote("issue", "the second."))
        read_until(following, "the second.")
        writer.write(JournalNote("issue", "the last."))
        report(app, session, UnattendedMoved("done", spend(1), outcome="success"))

        rest, _ = following.communicate(timeout=60)

    assert "the last." in rest
    assert following.returncode == 0
