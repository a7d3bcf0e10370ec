"""Now: every session of every project in its band, with the step, the pass and the last words."""

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.runs import approvals, user_actions
from interlock.app.runs.agent_activity import list_agents_now
from interlock.app.runs.inbox import list_cards
from interlock.app.sessions.session_approvals import permit_call
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.session_approvals import CALL_EXPIRY_MS, tool_call_wish
from interlock.core.views.activity import AgentLine
from interlock.core.views.status import IDLE_AFTER_MS
from interlock.workspace.machine import clients, spool
from interlock.workspace.machine.processes import Process
from interlock.workspace.machine.spool import JournalLine
from tests.core.views.driven_runs import GAP, Driven, step
from tests.scenes import started
from tests.sessions import begin_recorded

LOOP = {
    "id": "rounds",
    "type": "loop",
    "title": "Rounds",
    "loop": {"type": "for", "count": 3, "maxIterations": 5},
    "body": [step("work")],
}


class LaterClock:
    def __init__(self, app: App, later_ms: int) -> None:
        self._clock, self._later_ms = app.clock, later_ms

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._later_ms


def later(app: App, later_ms: int = IDLE_AFTER_MS + 1_000) -> App:
    return msgspec.structs.replace(app, clock=LaterClock(app, later_ms))


def only_running(app: App) -> AgentLine:
    found = list_agents_now(app)
    assert (found.running.count, found.idle.count, found.finished.count) == (1, 0, 0)
    return found.running.lines[0]


def test_a_line_has_the_step_the_pass_and_the_last_words(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("plan"), LOOP)
    first = only_running(app)
    run.hand_in("Read it all. The plan is small.", GAP)
    run.hand_in("Wrote the parser. Tests pass.")
    second = only_running(app)
    run.hand_in("")
    blocked = only_running(app)

    assert (first.step_number, first.pass_text, first.sentence) == (1, "", "")
    assert (second.step_number, second.pass_text) == (2, "pass 2 of 3")
    assert second.sentence == "Tests pass."
    assert second.activity.run is not None
    assert second.activity.run.gaps_open == 1
    assert blocked.activity.status.main.word == "blocked"
    assert blocked.step_since_ms == second.step_since_ms, "it is on this step since it was given"


def test_who_has_not_been_heard_of_is_idle_and_who_is_done_has_finished(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, step("one"))

    idle = list_agents_now(later(app)).idle
    run.hand_in("All done.")
    finished = list_agents_now(later(app)).finished

    assert [line.activity.session for line in idle.lines] == [run.session]
    both = idle.lines[0].activity.status
    assert (both.main.word, both.beside and both.beside.word) == ("running", "idle")
    assert (finished.count, finished.lines[0].sentence) == (1, "All done.")
    assert list_agents_now(later(app)).idle.count == 0


def test_a_line_of_a_hook_is_activity_and_a_client_that_ended_is_a_reason(
    app: App, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "talk")).session
    after = later(app)
    assert list_agents_now(after).idle.count == 1

    spool.append_line(
        app.home, JournalLine("1", after.clock.now_ms(), "claude-code", "pre-tool", "talk")
    )
    heard = list_agents_now(after).running
    clients.remember(
        app.home,
        Process(2**22 + 1, "then", "claude"),
        "claude-code",
        "talk",
        now_ms=app.clock.now_ms(),
    )
    gone = list_agents_now(after).idle

    assert [line.activity.session for line in heard.lines] == [session]
    assert heard.lines[0].activity.client_name == "claude-code"
    assert gone.lines[0].activity.status.main.word == "disconnected"


@pytest.mark.parametrize("verdict", ["granted", "denied"])
def test_what_the_user_or_a_deadline_decides_is_no_activity_of_the_agent(
    app: App, tmp_path: Path, verdict: Literal["granted", "denied"]
) -> None:
    asked = {"kind": "human_approval", "question": "Is the plan good?"}
    run = Driven(app, tmp_path, step("plan", requireConfirmation=asked), step("build"))
    run.hand_in("The plan.", GAP)
    handed_in_ms = app.reader.runs(run.session)[0].updated_ms
    after = later(app)
    (card,) = list_cards(after)
    approvals.answer(after, card.id, ApprovalVerdict(verdict, "user", "So it is"))
    for gap in [*user_actions.open_gaps(after, run.session)]:
        user_actions.resolve_gap(after, run.session, gap.gap.gap, "Not needed")

    (line,) = list_agents_now(after).idle.lines
    assert line.activity.last_ms == handed_in_ms


def test_an_approval_of_a_session_that_ran_out_is_no_activity(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("codex", "talk")).session
    permit_call(app, session, tool_call_wish("Bash", {"command": "make"}, "/p", title="It calls"))
    after = later(app, CALL_EXPIRY_MS + 1_000)

    assert list_cards(after) == (), "whoever looks records that it has run out"

    found = list_agents_now(after)
    assert (found.running.count, found.idle.count) == (0, 1)
    assert after.clock.now_ms() - found.idle.lines[0].activity.last_ms > CALL_EXPIRY_MS


def test_several_runs_of_a_session_are_one_line_with_the_newest(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    begin_recorded(app, tmp_path, Conversation("claude-code", "talk"))
    older = started(app, tmp_path)
    newer = started(app, tmp_path)
    assert older.session == newer.session

    line = only_running(app)

    assert line.activity.run is not None
    assert (line.activity.run.run, line.activity.head.run_count) == (newer.run, 2)


def test_what_was_put_away_is_in_no_band(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"))
    user_actions.set_archived(app, run.session, is_archived=True)

    found = list_agents_now(app)

    assert (found.running.count, found.idle.count, found.finished.count) == (0, 0, 0)
