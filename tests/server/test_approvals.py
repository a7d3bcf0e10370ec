"""Approvals in the console: an answer is to what was shown, and is given once."""

import json
import re
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.clock import SystemClock
from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.runs import approvals
from interlock.app.sessions.session_approvals import RequestStatus, permit_call, request_approval
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.session_approvals import request_wish, tool_call_wish
from interlock.workspace.machine.identity import user_name
from tests.server.conftest import Staged
from tests.server.forms import Form, SignedIn, assert_harmless, call
from tests.server.process import typed
from tests.server.server_process import Answer
from tests.server.stage import HOSTILE, Stage, project_at
from tests.sessions import begin_recorded

HOUR_MS = 3_600_000
NUMBERS = count(1)


class Earlier:
    """A clock that is behind the server's."""

    def __init__(self, app: App, behind_ms: int) -> None:
        self._app, self._behind_ms = app, behind_ms

    def now_ms(self) -> int:
        return self._app.clock.now_ms() - self._behind_ms


def asking(home: Path, project: Path, goal: str, behind_ms: int = 0, **asked: Any) -> Any:
    """A run that waits for an approval: the answer before the plan was submitted, and after."""
    wanted = {"kind": "human_approval", "question": "Is the plan good?", **asked}
    document = {
        "id": "planned",
        "name": "Planned",
        "description": "Plan, then build",
        "version": "1.0.0",
        "steps": [
            {"id": "plan", "title": "Plan", "prompt": "Plan.", "requireConfirmation": wanted},
            {"id": "build", "title": "Build", "prompt": "Build."},
        ],
    }
    (project / ".interlock" / "workflows" / "planned.json").write_text(json.dumps(document))
    app = open_app(home)
    stage = Stage(msgspec.structs.replace(app, clock=Earlier(app, behind_ms)), project)
    first = stage.start("planned", goal)
    waits = stage.go_on(first, f"The plan: **three** slices for {goal}")
    app.close()
    return first, waits


def form_for(page: Answer, approval: str, signed_in: SignedIn) -> Form:
    return signed_in.form(page, f"/approvals/{approval}")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_at(tmp_path_factory.mktemp("project") / "shed")


@pytest.fixture
def asked(stage: Staged, project: Path) -> dict[str, Any]:
    """An approval of the test's own, which is the only one."""
    app = open_app(stage.home)
    for one in approvals.list_pending(app):
        approvals.answer(app, one.approval, ApprovalVerdict("granted", "user"))
    app.close()
    first, waits = asking(stage.home, project, f"Build shed {next(NUMBERS)}")
    return {"first": first, "waits": waits, "approval": waits["approval"]["id"]}


def test_a_card_has_the_goal_the_question_what_was_handed_in_and_where_it_is_from(
    signed_in: SignedIn, asked: dict[str, Any]
) -> None:
    page = signed_in.get("/inbox")

    session, text = asked["first"]["introduction"]["session"], page.text
    assert page.status == 200
    assert "Is the plan good?" in text
    assert "The plan: <strong>three</strong> slices" in text
    run = asked["first"]["introduction"]["run"]
    assert f'href="/sessions/{session}?run={run}"' in text
    assert f'href="/sessions/{session}?run={run}&amp;node=node_' in text
    assert text.index("Build shed") < text.index("Is the plan good?"), "the goal is the headline"
    assert ", then it counts as <strong>denied</strong>" in text


def test_a_grant_lets_the_run_go_on_and_a_second_answer_is_told_of_it(
    signed_in: SignedIn, asked: dict[str, Any]
) -> None:
    form = form_for(signed_in.get("/inbox"), asked["approval"], signed_in)
    done = signed_in.send(form, verdict="granted")
    page = signed_in.get(done.headers["location"])
    again = signed_in.send(form, verdict="denied", reason="On second thoughts")
    seen = call(
        signed_in.server, "continue_workflow", continueToken=asked["waits"]["continueToken"]
    )

    assert (done.status, done.headers["location"]) == (303, "/inbox")
    assert "Nothing waits for you" in page.text
    assert again.status == 409
    assert (
        f"Approval `{asked['approval']}` was granted already, by {user_name()}, in the console"
        in again.text
    )
    assert seen["structuredContent"]["pending"]["stepId"] == "build"


def test_a_denial_needs_a_reason_which_the_agent_is_told(
    signed_in: SignedIn, asked: dict[str, Any]
) -> None:
    form = form_for(signed_in.get("/inbox"), asked["approval"], signed_in)
    mute = signed_in.send(form, verdict="denied", reason="  ")
    done = signed_in.send(form, verdict="denied", reason="The plan has no tests")
    seen = call(
        signed_in.server, "continue_workflow", continueToken=asked["waits"]["continueToken"]
    )

    assert mute.status == 400
    assert "Say why" in mute.text
    assert done.headers["location"] == "/inbox"
    assert seen["structuredContent"]["kind"] == "blocked"
    assert "The plan has no tests" in seen["content"][0]["text"]


def test_what_changed_since_it_was_shown_is_not_answered_but_shown_again(
    signed_in: SignedIn, asked: dict[str, Any]
) -> None:
    form = form_for(signed_in.get("/inbox"), asked["approval"], signed_in)
    token = asked["first"]["continueToken"]
    other = {"notesMarkdown": "Another plan altogether"}
    call(signed_in.server, "continue_workflow", continueToken=token, output=other)

    refused = signed_in.send(form, verdict="granted", reason="Because it is small")
    card = form_for(refused, asked["approval"], signed_in)
    forged = signed_in.send(form, verdict="granted", shown="0" * 32)
    granted = signed_in.send(card, verdict="granted")

    assert refused.status == 409
    assert "not what you were shown" in refused.text
    assert "The run has gone on elsewhere" in refused.text
    assert card.fields["reason"] == "Because it is small"
    assert forged.status == 409
    assert granted.status == 303


def test_an_answer_without_a_known_verdict_changes_nothing(
    signed_in: SignedIn, asked: dict[str, Any]
) -> None:
    form = form_for(signed_in.get("/inbox"), asked["approval"], signed_in)
    refused = signed_in.send(form, verdict="maybe", reason="why")
    elsewhere = signed_in.post("/approvals/apr_0000000000", form.fields)
    left = signed_in.get("/inbox").text

    assert refused.status == 400
    assert elsewhere.status == 404
    assert asked["approval"] in left


def test_a_deadline_is_shown_with_what_happens_then_and_kept(
    signed_in: SignedIn, project: Path
) -> None:
    home = signed_in.server.home
    _, soon = asking(home, project, "Soon", timeoutMinutes=90, onTimeout="grant")
    first, late = asking(home, project, "Late", behind_ms=2 * HOUR_MS, timeoutMinutes=1)
    late_name = late["approval"]["id"]
    page = signed_in.get("/inbox")
    form = form_for(page, soon["approval"]["id"], signed_in)
    stale = signed_in.post(
        f"/approvals/{late_name}", {**form.fields, "session": first["introduction"]["session"]}
    )

    (card,) = re.findall(rf'<article id="{soon["approval"]["id"]}".*?</article>', page.text, re.S)
    (deadline_ms,) = re.findall(r'data-until="(\d+)"', card)
    assert 89 * 60_000 < int(deadline_ms) - SystemClock().now_ms() <= 90 * 60_000
    assert ", then it counts as <strong>granted</strong>" in card
    assert late_name not in page.text
    assert stale.status == 409
    assert f"Approval `{late_name}` was denied already, by timeout" in stale.text


def test_hostile_words_are_shown_as_words(signed_in: SignedIn, project: Path) -> None:
    asking(signed_in.server.home, project, f"Goal {HOSTILE}", question=f"Question {HOSTILE}")
    page = signed_in.get("/inbox")

    assert "Question &lt;script&gt;" in page.text
    assert_harmless(page)


def test_what_only_the_agent_says_has_passed_is_marked_wherever_it_is_approved(
    stage: Staged, project: Path, signed_in: SignedIn
) -> None:
    proven = {"id": "prove", "title": "Prove", "prompt": "Do it."}
    proven |= {"verification": {"command": "make <b>test</b>"}}
    asks: dict[str, Any] = {
        "id": "ask",
        "title": "Ask",
        "prompt": "Ask.",
        "requireConfirmation": {"kind": "human_approval"},
    }
    document = {"id": "attested", "name": "Attested", "description": "Prove, then ask"}
    document |= {"version": "1.0.0", "steps": [proven, asks, {**asks, "id": "end"}]}
    (project / ".interlock" / "workflows" / "attested.json").write_text(json.dumps(document))
    report = {"kind": "verification", "command": "make <b>test</b>", "exitCode": 0}
    app = open_app(stage.home)
    agent = Stage(app, project)
    first = agent.start("attested", "Attest it")
    answer = agent.go_on(first, "Done")
    answer = agent.go_on(answer, "Passed", artifacts=[{**report, "summary": "It ran"}])
    agent.go_on(answer, "Please approve")
    app.close()
    session = first["introduction"]["session"]

    for words in (("approvals", "list"), ("session", "show", session)):
        told = typed(stage.home, *words).stdout
        assert "only the agent says that this passed: `make <b>test</b>`" in told
    for path in ("/inbox", f"/sessions/{session}"):
        page = signed_in.get(path).text
        assert "only the agent says that this passed: `make &lt;b&gt;test&lt;/b&gt;`" in page


def test_what_an_agent_asks_for_outside_of_a_run_is_shown_and_granted_too(
    signed_in: SignedIn, project: Path
) -> None:
    app = open_app(signed_in.server.home)
    opt_in(project, "standard")
    session = begin_recorded(app, project, Conversation("codex", "talk-1")).session
    call_wish = tool_call_wish("Bash", {"command": f"make {HOSTILE}"}, "/p", title="Codex calls it")
    outcome = permit_call(app, session, call_wish)
    plan = request_approval(app, session, request_wish("The plan", "**Three** slices", ""))
    assert isinstance(outcome, tuple)
    assert isinstance(plan, RequestStatus)

    page = signed_in.get("/inbox")
    granted = [
        signed_in.send(form_for(page, name, signed_in), verdict="granted").status
        for name in (outcome[0], plan.approval)
    ]

    assert "command: make &lt;script&gt;" in page.text
    assert "<strong>Three</strong> slices" in page.text
    assert granted == [303, 303]
    assert permit_call(app, session, call_wish) == (outcome[0], f"{user_name()}, in the console")
    assert plan.approval not in signed_in.get("/inbox").text
    app.close()
