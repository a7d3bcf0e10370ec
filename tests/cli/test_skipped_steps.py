"""Skipped is not done, in everything that is printed or written about a run."""

from pathlib import Path

from interlock.app.callers.session_record import state_of
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol.bootstrap import session_summary
from interlock.core.protocol.gated_session import Conversation
from tests.cli.conftest import Terminal
from tests.core.views.driven_runs import Driven, step
from tests.sessions import begin_recorded


def test_every_output_counts_skipped_steps_apart(app: App, typed: Terminal, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session
    unset = {"runCondition": {"var": "never", "equals": "set"}}
    skipped = (step(f"deep-{number}", **unset) for number in range(2))
    run = Driven(app, tmp_path, step("look"), *skipped, step("build"), step("end"))
    run.hand_in("Looked")
    state = state_of(app, session)
    honest = "1 of 5 done, 2 skipped"

    texts = {
        "run show": typed("run", "show", run.run.run).out,
        "run list": typed("run", "list").out,
        "session list": typed("session", "list").out,
        "session show": typed("session", "show", session).out,
        "hand-off": typed("session", "handoff", session).out,
        "note": Path(typed("session", "publish", session).out.strip()).read_text(),
        "briefing": session_summary(app, state),
    }

    assert {name: honest in text for name, text in texts.items()} == dict.fromkeys(texts, True)
    assert "· skipped: deep-0, deep-1" in texts["run show"]
    run.hand_in("Built").hand_in("Ended")
    assert "completed: 3 steps done, 2 skipped." in typed("run", "show", run.run.run).out
