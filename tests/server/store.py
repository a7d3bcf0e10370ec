"""A store with a session of each kind, made through the use cases that agents and users reach."""

from pathlib import Path
from typing import NamedTuple

from interlock.app.context import open_app
from interlock.app.gate import opt_in
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from tests.app.runs.test_approvals import at_approval
from tests.scenes import advance, handed_in, output, started
from tests.sessions import begin_recorded


class Filled(NamedTuple):
    project: Path
    ids: dict[str, str]
    """Of each kind of thing one that is there."""
    attended: str
    waiting_run: str


def filled(home: Path, project: Path) -> Filled:
    """A run with a gap, one that waits for the user, one at an approval; an attended session."""
    app = open_app(home)
    first = started(app, project)
    gap = {"kind": "gap", "severity": "critical", "summary": "No tests"}
    advance(app, first.answer.continue_token, output("looked", gap, context={"size": "small"}))
    blocked = started(app, project)
    for _ in range(BLOCKED_IN_ROW_MAX):
        blocked = handed_in(app, blocked, "")
    approval = at_approval(app, project)
    assert approval.answer.approval is not None
    # Elsewhere: what is started where one is active goes into it.
    gated = project / "gated"
    gated.mkdir()
    opt_in.opt_in(gated, "standard")
    attended = begin_recorded(app, gated, Conversation("claude-code", "conversation-1"))
    run = app.reader.runs(first.session)[0]
    tip = run.tip
    assert tip is not None
    assert run.gaps_open == 1
    app.close()
    return Filled(
        project,
        {
            "session": first.session,
            "run": first.run,
            "node": tip,
            "approval": approval.answer.approval.id,
            "workflow": "hello",
        },
        attended.session,
        blocked.run,
    )
