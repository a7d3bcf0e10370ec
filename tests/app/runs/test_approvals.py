"""Approvals: a run waits until somebody answers, and whoever answers first has answered."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.refusals import ApprovalAnswered, ApprovalChanged
from interlock.app.runs import approvals
from interlock.app.runs.advance import advance
from interlock.app.runs.approvals import ApprovalAnswer as Answer
from interlock.app.runs.start import StartRequest, start
from interlock.app.sessions.bundle import SessionExport, export, import_as_new
from interlock.app.sessions.lookup import SessionView, check_stream, show_session
from interlock.core.ids import WorkflowId
from interlock.core.refusal import PlainRefusal
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.events import ApprovalResolved
from interlock.core.session.timestamps import minute_text, timestamp
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.app.races import at_once
from tests.mcp.agent import Agent
from tests.scenes import handed_in, output, shown

GRANT, DENY = (
    ApprovalVerdict("granted", "user", who="ana, in a terminal"),
    ApprovalVerdict("denied", "user", "The plan has no tests", "ana, in the console"),
)


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def waiting_app(app: App, clock: Hands) -> App:
    return msgspec.structs.replace(app, clock=clock)


def planned(workspace: Path, **approval: Any) -> None:
    """A workflow with a plan that must be approved, and a build after it."""
    wanted = {"kind": "human_approval", "question": "Is the plan good?", **approval}
    plan = {"id": "plan", "title": "Plan", "prompt": "Plan it.", "requireConfirmation": wanted}
    build = {"id": "build", "title": "Build", "prompt": "Build {{what}}."}
    document = {
        "id": "planned",
        "name": "Planned",
        "description": "Plan, then build",
        "version": "1.0.0",
        "inputs": {"what": {"description": "What is built", "default": "the shed"}},
        "steps": [plan, build],
    }
    directory = workspace / ".interlock" / "workflows"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "planned.json").write_text(json.dumps(document))


def begun(app: App, workspace: Path) -> RenderedAnswer:
    answered = start(
        app, StartRequest(WorkflowId("planned"), "Build it", local_caller(app, workspace))
    )
    assert isinstance(answered, RenderedAnswer)
    return answered


def at_approval(app: App, workspace: Path, **approval: Any) -> RenderedAnswer:
    planned(workspace, **approval)
    answered = handed_in(app, begun(app, workspace), "The plan: three slices")
    assert answered.answer.kind == "approval"
    return answered


@pytest.mark.invariant("approval-holds")
def test_the_run_waits_and_says_how_it_is_answered(app: App, tmp_path: Path) -> None:
    answered = at_approval(app, tmp_path)
    answer = answered.answer

    assert answer.pending is None
    assert "Build the shed" not in answered.text, "the next step is not shown yet"
    assert not answer.is_complete
    assert answer.next_intent == "await_user_confirmation"
    assert answer.approval is not None
    assert answer.approval.question == "Is the plan good?"
    assert f"interlock approvals grant {answer.approval.id}" in answered.text
    assert answer.next_call is not None
    assert answer.next_call.params["intent"] == "rehydrate"
    (listed,) = approvals.list_pending(app)
    assert (listed.approval, listed.step) == (answer.approval.id, "plan")
    assert listed.notes == "The plan: three slices"


@pytest.mark.invariant("approval-holds")
def test_nothing_can_be_handed_in_while_it_waits(app: App, tmp_path: Path) -> None:
    answer = at_approval(app, tmp_path).answer
    assert answer.approval is not None

    refusal = advance(app, answer.continue_token, output("done anyway"))

    assert isinstance(refusal, PlainRefusal)
    assert (refusal.code, answer.approval.id in refusal.error) == ("approval_pending", True)
    assert shown(app, answer.continue_token).answer.approval == answer.approval


def test_a_granted_run_goes_on_with_the_token_that_was_held(app: App, tmp_path: Path) -> None:
    waiting = at_approval(app, tmp_path)
    answer = waiting.answer
    assert answer.approval is not None

    done = approvals.answer(app, answer.approval.id[:7], GRANT)

    assert done == Answer(answer.approval.id, "granted", waiting.run, "Build", "Is the plan good?")
    following = shown(app, answer.continue_token)
    assert following.answer.pending is not None
    assert following.answer.pending.step_id == "build"
    assert "Build the shed." in following.text
    assert "The plan: three slices" in following.answer.recap
    last = handed_in(app, following)
    assert last.answer.is_complete
    assert approvals.list_pending(app) == []
    assert check_stream(app.reader, waiting.session).state == "healthy"


def test_a_denied_step_is_done_again_and_the_reason_is_told(app: App, tmp_path: Path) -> None:
    answer = at_approval(app, tmp_path).answer
    assert answer.approval is not None

    approvals.answer(app, answer.approval.id, DENY)

    again = shown(app, answer.continue_token)
    assert again.answer.kind == "blocked"
    assert again.answer.pending is not None
    assert again.answer.pending.step_id == "plan"
    assert "was denied by ana, in the console: The plan has no tests" in again.text
    second = handed_in(app, again, "The plan: three slices, each with a test")
    assert second.answer.kind == "approval"
    assert second.answer.approval is not None
    assert second.answer.approval.id != answer.approval.id


def test_whoever_answers_first_has_answered(waiting_app: App, clock: Hands, tmp_path: Path) -> None:
    answer = at_approval(waiting_app, tmp_path).answer
    assert answer.approval is not None
    name, at_ms = answer.approval.id, clock.ms
    approvals.answer(waiting_app, name, GRANT)
    clock.ms += 60_000

    refusals = [approvals.answer(waiting_app, name, verdict) for verdict in (DENY, GRANT)]

    recorded = ApprovalAnswered(name, "granted", "user", "ana, in a terminal", at_ms)
    assert refusals == [recorded, recorded]
    assert "by ana, in a terminal, at 1970-01-01T00:16:40.000Z" in recorded.explain().error
    assert shown(waiting_app, answer.continue_token).answer.kind == "ok"


def test_an_answer_is_to_what_was_shown(app: App, tmp_path: Path) -> None:
    planned(tmp_path)
    first = begun(app, tmp_path)
    answer = handed_in(app, first, "The plan: three slices").answer
    assert answer.approval is not None
    (before,) = approvals.list_pending(app)
    handed_in(app, first, "Another plan")
    (after, _) = approvals.list_pending(app)

    refusal = approvals.answer(app, answer.approval.id, GRANT, shown=before.shown)
    done = approvals.answer(app, answer.approval.id, GRANT, shown=after.shown)

    assert isinstance(refusal, ApprovalChanged), "the run has gone on elsewhere meanwhile"
    assert after.shown in refusal.explain().hint
    assert isinstance(done, Answer)


@pytest.mark.parametrize(
    ("config", "days"), [("", 7), ("[approvals]\nexpire_days = 2", 2), ("expire_days = 0", None)]
)
def test_what_has_no_deadline_expires_when_the_user_says(
    waiting_app: App, clock: Hands, tmp_path: Path, config: str, days: int | None
) -> None:
    text = config if days else f"[approvals]\n{config}"
    (waiting_app.home / "config.toml").write_text(text)
    answer = at_approval(waiting_app, tmp_path, onTimeout="grant").answer
    assert answer.approval is not None

    (listed,) = approvals.list_pending(waiting_app)

    assert listed.on_timeout == "deny", "the author has set no time after which it is granted"
    assert listed.deadline_ms == (clock.ms + days * 24 * 3_600_000 if days else None)


@pytest.mark.both_stores
@pytest.mark.invariant("approval-answered-once")
def test_of_several_answers_at_the_same_moment_one_counts(
    app: App, home: Path, tmp_path: Path
) -> None:
    waiting = at_approval(app, tmp_path)
    assert waiting.answer.approval is not None
    name, outcomes = waiting.answer.approval.id, list[object]()

    def act(own: App, number: int) -> None:
        outcomes.append(approvals.answer(own, name, DENY if number % 2 else GRANT))

    at_once(home, act)

    view = show_session(app, waiting.session)
    assert isinstance(view, SessionView)
    resolved = [e.event for e in view.events if isinstance(e.event, ApprovalResolved)]
    assert len(resolved) == 1
    won = [found for found in outcomes if isinstance(found, Answer)]
    assert {found.verdict for found in won} == {resolved[0].verdict}
    lost = [found for found in outcomes if not isinstance(found, Answer)]
    assert all(isinstance(found, ApprovalAnswered) for found in lost)
    assert len(won) + len(lost) == 6


def test_the_answer_that_asked_is_replayed_as_it_was(app: App, tmp_path: Path) -> None:
    planned(tmp_path)
    first = begun(app, tmp_path)
    asked = handed_in(app, first, "The plan")
    assert asked.answer.approval is not None
    approvals.answer(app, asked.answer.approval.id, GRANT)

    assert handed_in(app, first, "The plan") == asked


@pytest.mark.parametrize(("on_timeout", "step"), [("deny", "plan"), ("grant", "build")])
def test_a_deadline_is_decided_by_whoever_looks_first(
    waiting_app: App, clock: Hands, tmp_path: Path, on_timeout: str, step: str
) -> None:
    answer = at_approval(waiting_app, tmp_path, timeoutMinutes=5, onTimeout=on_timeout).answer
    assert answer.approval is not None
    verdict = {"deny": "denied", "grant": "granted"}[on_timeout]
    deadline = minute_text(timestamp(clock.ms + 5 * 60_000))
    assert answer.approval.on_timeout == f"Without an answer by {deadline}, it counts as {verdict}."
    assert f"`/deny {answer.approval.id} REASON`" in answer.approval.how
    agent = Agent(McpProtocol(waiting_app, TOOLS))
    clock.ms += 4 * 60_000
    assert agent.ok("continue_workflow", continueToken=answer.continue_token)["kind"] == "approval"
    clock.ms += 2 * 60_000

    seen = agent.ok("continue_workflow", continueToken=answer.continue_token)

    assert seen["pending"]["stepId"] == step
    assert approvals.list_pending(waiting_app) == []
    if on_timeout == "deny":
        [blocker] = seen["blocked"]["blockers"]
        assert "Nobody answered" in blocker["message"]
        assert "Ask the user" in blocker["suggestion"], "nobody has said what is wrong with it"


@pytest.mark.parametrize("is_listed_first", [True, False])
def test_an_answer_that_comes_too_late_says_so(
    waiting_app: App, clock: Hands, tmp_path: Path, *, is_listed_first: bool
) -> None:
    answer = at_approval(waiting_app, tmp_path, timeoutMinutes=1).answer
    assert answer.approval is not None
    clock.ms += 61_000
    if is_listed_first:
        assert approvals.list_pending(waiting_app) == []

    refusal = approvals.answer(waiting_app, answer.approval.id, GRANT)

    assert refusal == ApprovalAnswered(answer.approval.id, "denied", "timeout", at_ms=clock.ms)
    assert shown(waiting_app, answer.continue_token).answer.kind == "blocked"


def test_a_condition_decides_whether_anybody_is_asked(app: App, tmp_path: Path) -> None:
    planned(tmp_path, condition={"var": "risk", "equals": "high"})
    first = begun(app, tmp_path).answer.continue_token

    low = advance(app, first, output("a plan", context={"risk": "low"}))
    high = advance(app, first, output("another plan", context={"risk": "HIGH"}))

    assert isinstance(low, RenderedAnswer)
    assert isinstance(high, RenderedAnswer)
    assert (low.answer.kind, high.answer.kind) == ("ok", "approval")


def test_an_approval_goes_along_with_a_bundle(app: App, tmp_path: Path) -> None:
    waiting = at_approval(app, tmp_path)
    assert waiting.answer.approval is not None
    exported = export(app, waiting.session)
    assert isinstance(exported, SessionExport)
    imported = import_as_new(app, exported.document)
    assert isinstance(imported, str)

    names = [one.approval for one in approvals.list_pending(app) if one.session == imported]

    assert len(names) == 1
    assert names[0] != waiting.answer.approval.id
    assert isinstance(approvals.answer(app, names[0], GRANT), Answer)
    assert len(approvals.list_pending(app)) == 1
