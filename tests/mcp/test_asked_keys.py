"""What a run asks for: keys that no step sets, capabilities, forms that are shown once."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.runs.user_actions import open_gaps, resolve_gap
from interlock.core.ids import GapId, SessionId
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.core.workflow.workflow_samples import Doc, loop, step, workflow
from tests.mcp.agent import Agent, prefer


@pytest.fixture
def agent(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.chdir(tmp_path)
    prefer({"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "balanced"})
    return Agent(McpProtocol(app, TOOLS))


def begin(agent: Agent, document: Doc, **more: object) -> dict[str, Any]:
    directory = Path(".interlock/workflows")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "made-up.json").write_text(json.dumps(document))
    result = agent.call("start_workflow", {"workflowId": document["id"], "goal": "g", **more})
    return result["structuredContent"]


def submit(agent: Agent, answer: dict[str, Any], **more: object) -> dict[str, Any]:
    token = answer["continueToken"]
    output = {"notesMarkdown": "done"}
    return agent.ok("continue_workflow", continueToken=token, output=output, **more)


DEPENDS = {"var": "size", "equals": "large"}
PLAIN = workflow(step("a"), step("b", runCondition=DEPENDS))
FOREIGN = {**PLAIN, "id": "wr.made-up"}


@pytest.mark.parametrize("document", [PLAIN, FOREIGN], ids=["own", "foreign"])
def test_the_first_step_asks_for_a_key_that_no_step_sets(agent: Agent, document: Doc) -> None:
    first = begin(agent, document)

    assert first["pending"]["expects"]["context"] == ["size"]
    assert first["nextCall"]["params"]["context"] == {"size": "<text, like “large”>"}
    assert '"size"' in first["pending"]["prompt"]
    done = submit(agent, first, context={"size": "large"})
    assert done["pending"]["stepId"] == "b"
    assert not done["pending"]["expects"].get("context"), "it is set"


def test_a_key_that_stays_unset_is_a_gap(agent: Agent) -> None:
    end = submit(agent, begin(agent, FOREIGN))

    assert end["isComplete"]
    assert [gap["summary"] for gap in end["gaps"]] == [
        "`size` was never set, so this was skipped: Step b"
    ]


def test_a_blank_of_the_first_step_is_refused_like_any_other(agent: Agent) -> None:
    first = begin(agent, PLAIN)

    params = {**first["nextCall"]["params"], "output": {"notesMarkdown": "n"}}
    problem = agent.refused("continue_workflow", params)

    assert "still says" in problem["message"]


@pytest.mark.parametrize(
    "document",
    [
        workflow(step("b", runCondition=DEPENDS), step("c", runCondition=DEPENDS)),
        workflow(step("b", runCondition=DEPENDS), step("c", sets=["size"], runCondition=DEPENDS)),
        workflow(loop("l", {"type": "while", "condition": DEPENDS}, step("b"))),
    ],
    ids=["not set", "set too late", "loop"],
)
def test_a_run_never_begins_at_its_end_for_a_key_that_nobody_was_asked_for(
    agent: Agent, document: Doc
) -> None:
    refused = begin(agent, document)

    assert refused["code"] == "context_unset"
    assert refused["details"]["correctCall"]["params"]["context"] == {
        "size": "<text, like “large”>"
    }
    left_out = begin(agent, document, context={"size": None})
    assert left_out["isComplete"], "null says that there is no such value"
    assert left_out["gaps"]
    assert begin(agent, document, context={"size": "large"})["pending"]["stepId"] == "b"


def test_an_approval_that_an_unset_key_avoids_is_a_gap(agent: Agent) -> None:
    ask = {"kind": "human_approval", "question": "Shall we?", "condition": DEPENDS}
    first = begin(agent, workflow(step("a", requireConfirmation=ask), step("b")))

    second = submit(agent, first)

    assert [gap["summary"] for gap in second["gaps"]] == [
        "`size` was never set, so this was skipped: approval: Shall we?"
    ]


def test_progress_is_right_while_an_approval_waits(agent: Agent) -> None:
    ask = {"kind": "human_approval", "question": "Shall we?"}
    first = begin(agent, workflow(step("a", requireConfirmation=ask), step("b"), step("c")))
    waiting = submit(agent, first)

    again = agent.ok("continue_workflow", continueToken=waiting["continueToken"])

    assert again["approval"]
    assert again["progress"] == {"done": 1, "skipped": 0, "of": 3}


def test_a_capability_that_is_missing_is_asked_for_again(agent: Agent) -> None:
    document = workflow(step("a"), step("b"), capabilities={"delegation": "required"})
    answer = begin(agent, document)
    observed = {"kind": "capability_observation", "capability": "delegation", "evidence": "none"}

    for _ in range(2):
        output = {"notesMarkdown": "n", "artifacts": [{**observed, "status": "unavailable"}]}
        answer = agent.ok("continue_workflow", continueToken=answer["continueToken"], output=output)
        assert answer["blocked"]["blockers"][0]["code"] == "capability_unavailable"
        [artifact] = answer["nextCall"]["params"]["output"]["artifacts"]
        assert artifact["capability"] == "delegation"


def test_a_verdict_that_its_own_findings_contradict_is_refused(agent: Agent) -> None:
    document = workflow(step("a", outputContract={"contractRef": "review_verdict"}), step("b"))
    first = begin(agent, document)

    def submitted(token: str, verdict: str, **finding: object) -> dict[str, Any]:
        artifact = {
            "kind": "review_verdict",
            "verdict": verdict,
            "confidence": "high",
            "findings": [{"summary": "It loses data", **finding}],
            "summary": "s",
        }
        output = {"notesMarkdown": "n", "artifacts": [artifact]}
        return agent.ok("continue_workflow", continueToken=token, output=output)

    rule = "With a finding that is critical or must be fixed, `verdict` is `blocking`."
    assert rule in first["pending"]["prompt"]
    token = first["continueToken"]
    for verdict, finding in (
        ("clean", {"severity": "critical"}),
        ("clean", {"severity": "nit", "mustFix": True}),
        ("minor", {"severity": "major", "mustFix": True}),
    ):
        answer = submitted(token, verdict, **finding)
        [blocker] = answer["blocked"]["blockers"]
        assert blocker["suggestion"] == rule
        token = answer["continueToken"]
    assert submitted(token, "minor", severity="major", mustFix=False)["kind"] == "ok"
    assert submitted(token, "blocking", severity="critical")["kind"] == "ok"


def test_a_blocked_answer_shows_the_form_once_and_not_the_step_again(agent: Agent) -> None:
    document = workflow(
        step("a", prompt="UNIQUE-PROMPT", outputContract={"contractRef": "coding_handoff"})
    )
    first = begin(agent, document)

    result = agent.call(
        "continue_workflow",
        {"continueToken": first["continueToken"], "output": {"notesMarkdown": "n"}},
    )

    text, structure = result["content"][0]["text"], json.dumps(result["structuredContent"])
    for shown in (text, structure):
        assert shown.count("knownLimitations") == 1
        assert "UNIQUE-PROMPT" not in shown
    token = result["structuredContent"]["continueToken"]
    again = agent.ok("continue_workflow", continueToken=token)
    assert "UNIQUE-PROMPT" in again["pending"]["prompt"]


def test_a_run_without_attempts_names_the_command_of_the_user(agent: Agent) -> None:
    answer = begin(agent, PLAIN)
    run = answer["introduction"]["run"]
    for _ in range(10):
        answer = agent.ok("continue_workflow", continueToken=answer["continueToken"], output={})

    assert answer["blocked"]["attemptsLeft"] == 0
    assert answer["blocked"]["unblock"] == f"interlock run unblock {run}"


@pytest.mark.parametrize(
    ("wanted", "suggested"),
    [
        ("helo", 'start_workflow {"workflowId":"hello","goal":"g"}'),
        ("zzz", "list_workflows {}"),
    ],
)
def test_an_unknown_workflow_suggests_what_was_meant_or_the_list(
    agent: Agent, wanted: str, suggested: str
) -> None:
    call = {"workflowId": wanted, "goal": "g"}
    problem = agent.refused("start_workflow", call)

    better = problem["details"]["correctCall"]
    assert f"{better['tool']} {json.dumps(better['params'], separators=(',', ':'))}" == suggested


def test_routines_of_workrail_are_listed_as_routines(agent: Agent) -> None:
    begin(agent, {**PLAIN, "id": "wr.routine-made-up"})

    listed = {one["id"]: one.get("kind") for one in agent.ok("list_workflows")["workflows"]}

    assert listed["wr.routine-made-up"] == "routine"


def test_the_list_names_the_context_that_a_start_needs(agent: Agent) -> None:
    """A model starts from the list; a value that it cannot know of costs it a refused call."""
    for arguments in ({}, {"query": "verify at the end"}):
        listed = {one["id"]: one for one in agent.ok("list_workflows", **arguments)["workflows"]}

        assert listed["final-verification"]["requiredContext"] == ["command"]
        text = agent.plain("list_workflows", arguments)["content"][0]["text"]
        assert "Verify at the end (routine, start needs context: command)" in text
    assert "requiredContext" not in {**agent.ok("list_workflows")["workflows"][0]}


def test_gaps_belong_to_the_branch_on_which_they_were_recorded(app: App, agent: Agent) -> None:
    """Each end names its own gaps, and what counts is the branch where the run stands."""
    first = begin(agent, workflow(step("a"), step("b", runCondition=DEPENDS), step("c")))
    session, token = first["introduction"]["session"], first["continueToken"]

    def done(at: str, severity: str, **more: object) -> dict[str, Any]:
        gap = {"kind": "gap", "severity": severity, "summary": f"Left: {severity}"}
        output = {"notesMarkdown": severity, "artifacts": [gap]}
        return agent.ok("continue_workflow", continueToken=at, output=output, **more)

    unset = done(token, "critical")
    end = submit(agent, unset)
    assert end["guidance"].endswith("Tell the user about the gaps that are open.")
    found = agent.plain("resume_session", {})["content"][0]["text"]
    assert "1 skipped, in /" in found
    assert "\n   completed with gaps: " in found
    summaries = {gap["summary"]: gap["id"] for gap in end["gaps"]}
    assert set(summaries) == {
        "Left: critical",
        "`size` was never set, so this was skipped: Step b",
    }
    assert app.reader.runs(SessionId(session))[0].status == "complete_with_gaps"

    other = done(token, "info", context={"size": "large"})
    end = submit(agent, submit(agent, other))

    assert [gap["summary"] for gap in end["gaps"]] == ["Left: info"]
    [run] = app.reader.runs(SessionId(session))
    assert (run.status, run.gaps_open, run.gaps_critical) == ("complete", 1, 0)
    listed = [found.gap.summary for found in open_gaps(app, SessionId(session))]
    assert listed == ["Left: info"]
    shown = agent.ok("continue_workflow", continueToken=unset["continueToken"])
    assert {gap["summary"] for gap in shown["gaps"]} == set(summaries)

    again = done(token, "warning")
    assert "`size` was never set, so this was skipped: Step b" in [
        gap["summary"] for gap in again["gaps"]
    ], "what another branch has recorded says nothing about this one"
    resolve_gap(app, SessionId(session), GapId(summaries["Left: critical"]), "Done by hand")
    shown = agent.ok("continue_workflow", continueToken=unset["continueToken"])
    assert "Left: critical" not in {gap["summary"] for gap in shown["gaps"]}, "it is closed for all"


def test_gaps_stay_in_the_order_in_which_they_were_recorded(app: App, agent: Agent) -> None:
    """Their ids are drawn, so an order by id would be another one in each run."""
    first = begin(agent, workflow(step("a"), step("b"), step("c")))
    told = [f"Left {number}" for number in range(8)]
    gaps = [{"kind": "gap", "severity": "warning", "summary": one} for one in told]
    output = {"notesMarkdown": "x", "artifacts": gaps}

    second = agent.ok("continue_workflow", continueToken=first["continueToken"], output=output)
    third = submit(agent, second)

    shown = agent.ok("continue_workflow", continueToken=third["continueToken"])
    assert [gap["summary"] for gap in shown["gaps"]] == told
    [run] = app.reader.runs(SessionId(first["introduction"]["session"]))
    assert run.open_gaps == tuple(gap["id"] for gap in shown["gaps"])
    assert [gap["summary"] for gap in submit(agent, third)["gaps"]] == told


TYPES: Doc = {
    "type": "object",
    "properties": {
        "areas": {"type": "array", "items": {"type": "integer"}},
        "place": {"type": "object", "properties": {"line": {"type": "integer"}}},
        "isDone": {"type": "boolean"},
        "count": {"type": "integer"},
        "words": {"type": "string"},
    },
}
SENT = {
    "areas": '["1", 2]',
    "place": {"line": "7"},
    "isDone": "True",
    "count": " 139 ",
    "words": "12",
}
MEANT = {"areas": [1, 2], "place": {"line": 7}, "isDone": True, "count": 139, "words": "12"}


def test_values_sent_as_text_are_taken_in_their_declared_types(agent: Agent) -> None:
    contract = {
        "schema": {"type": "object", "properties": TYPES["properties"], "required": ["count"]},
        "example": {"count": 1},
    }
    first = begin(
        agent,
        workflow(
            step("a", outputContract={"contractRef": "report"}),
            step("b", runCondition={"var": "size", "gt": 3}),
            contextSchema={**TYPES, "properties": {**TYPES["properties"], "size": {}}},
            contracts={"report": contract},
        ),
        context=SENT,
    )
    artifact = json.dumps({"kind": "report", **SENT})
    call = {
        "continueToken": first["continueToken"],
        "output": {"notesMarkdown": "n", "artifacts": [artifact]},
        "context": {"size": "4"},
    }

    second = agent.ok("continue_workflow", **call)

    assert second["pending"]["stepId"] == "b", "four is more than three"
    past = agent.ok("continue_workflow", continueToken=second["continueToken"], step="all")
    assert {key: past["values"][key] for key in MEANT} == MEANT
    assert past["values"]["size"] == 4
    assert json.loads(past["outputs"][0]["artifacts"][0]) == {"kind": "report", **MEANT}
    assert agent.ok("continue_workflow", **call) == second, "the same call is the same attempt"


def test_text_that_is_no_value_of_the_declared_type_is_refused_as_it_was_sent(
    agent: Agent,
) -> None:
    first = begin(agent, workflow(step("a"), contextSchema=TYPES))
    token = first["continueToken"]

    for wrong in ({"count": "many"}, {"isDone": "1"}, {"areas": "{}"}):
        problem = agent.refused(
            "continue_workflow",
            {"continueToken": token, "output": {"notesMarkdown": "n"}, "context": wrong},
        )
        assert str(*wrong.values()) in problem["message"]


def test_the_first_step_does_not_ask_for_what_the_start_was_given(agent: Agent) -> None:
    def first(**context: str) -> dict[str, Any]:
        asked = {"workflowId": "bug-investigation", "goal": "Find it", "context": context}
        return agent.ok("start_workflow", **asked)

    assert {"depth", "reproduction"} <= set(first()["pending"]["expects"]["context"])
    given = first(depth="quick", reproduction="make test")
    assert "context" not in given["pending"]["expects"]
    assert "Include this `context`" not in given["pending"]["prompt"]
