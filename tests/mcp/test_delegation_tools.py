"""Work that an agent hands to others, through the tools: recorded, told again, never lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import claude_code
from interlock.app.callers import session_record
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.ids import SessionId
from interlock.core.session.orchestration import Orchestration
from interlock.hooks import context_messages
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent
from interlock.store.failures import StoreUnusable
from tests.mcp.agent import Agent
from tests.mcp.dry_run import suggested_calls

EMPTY = ("active_agent", "compaction_history", "handoff_from", "feature_reviews", "passed_handoffs")
"""The fields that other tests fill."""


@pytest.fixture
def attended(agent: Agent, tmp_path: Path) -> Agent:
    opt_in(tmp_path, "standard")
    agent.ok("session", action="start")
    return agent


def work_of(app: App, session: str) -> Orchestration:
    state = session_record.state_of(app, SessionId(session))
    assert state.orchestrator_workflow is not None
    return state.orchestrator_workflow


@pytest.mark.parametrize("stop", ["", "."])
def test_the_words_of_agents_end_with_one_full_stop(attended: Agent, stop: str) -> None:
    attended.ok("record_decision", description=f"Keep it{stop}", rationale=f"It works{stop}")
    attended.ok("delegate", agent="qa", prompt="Test it")
    verdict = {"decision": "approve", "reasoning": f"All green{stop}"}
    words = {"summary": f"Fine{stop}", "handoffTo": "analyst", "verdict": verdict}
    attended.ok("complete_delegation", delegation="qa", **words)

    told = attended.ok("session")["summary"]

    assert ": Keep it. Because: It works.\n" in f"{told}\n"
    assert "Verdict of qa: approve. All green.\n" in told
    assert ": Fine. To go on: delegate" in told


def test_a_record_is_shown_in_the_words_in_which_it_was_asked_for(attended: Agent) -> None:
    def text(tool: str, **arguments: Any) -> str:
        return attended.plain(tool, arguments)["content"][0]["text"]

    own = text("record_decision", description="Keep it", rationale="It works")
    attended.ok("record_decision", description="Cut", rationale="Slow", decidedBy="architect")
    attended.ok("delegate", agent="qa", prompt="Test it")
    given = {"decision": "WARN", "reasoning": "Slow", "conditions": ["measure", "document"]}
    words = {"summary": "Fine", "recommendations": ["Cache less"], "verdict": given}
    done = text("complete_delegation", delegation="qa", **words)
    answer = attended.ok("session", phase="validation")

    assert "orchestrator" not in own
    for part in (
        "Verdict of qa: conditional. Slow. Conditions: measure; document.",
        "qa completed: Fine. Recommends: Cache less.",
    ):
        assert part in done, done
        assert part in answer["summary"]
    decisions = answer["summary"].partition("## Decisions")[2]
    assert " by architect (technical): Cut." in decisions
    assert answer["phase"] == "validation"
    assert "- Phase: validation." in answer["summary"]
    assert "hase" not in text("session", phase="planning")
    assert "orchestrator" not in answer["summary"]


@pytest.mark.parametrize(("sent", "kept"), [(0.9, 90), (1, 100), (87.5, 88), (40, 40), (0, 0)])
def test_confidence_is_a_percentage_or_a_share(
    app: App, attended: Agent, sent: float, kept: int
) -> None:
    attended.ok("delegate", agent="qa", prompt="Test it")
    verdict = {"decision": "approved", "reasoning": "Green", "confidence": sent}
    done = attended.ok("complete_delegation", delegation="qa", summary="Fine", verdict=verdict)

    work = work_of(app, done["session"])
    given = work.verdicts[-1]
    assert (given.outcome, given.confidence) == ("PASS", kept)


def test_a_corrected_verdict_keeps_what_was_sent_and_adds_nothing(attended: Agent) -> None:
    attended.ok("delegate", agent="qa", prompt="Test it")

    def corrected(**verdict: Any) -> Any:
        sent = {"delegation": "qa", "summary": "Fine", "verdict": verdict}
        refusal = attended.refused("complete_delegation", sent)
        return refusal["details"]["correctCall"]["params"]["verdict"]

    unknown = corrected(decision="perhaps", reasoning="Green")
    unsure = corrected(decision="approve", reasoning="Green", confidence="high")
    bare = corrected(decision="approve")

    assert sorted(unknown) == ["decision", "reasoning"]
    assert unsure == {"decision": "approve", "reasoning": "Green"}
    assert bare == {"decision": "approve", "reasoning": "<reasoning>"}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("architecture", "architectural"), ("Scope", "scope"), ("product", "technical")],
)
def test_a_decision_of_another_type_is_recorded(
    app: App, attended: Agent, sent: str, kept: str
) -> None:
    answer = attended.ok("record_decision", description="Keep", rationale="Works", type=sent)

    assert work_of(app, answer["session"]).decisions[-1].type == kept
    assert bool(answer.get("warnings")) == (sent == "product")


def test_the_call_for_each_reviewer_names_the_reviewer(attended: Agent) -> None:
    review = {"action": "complete_feature", "feature": "F", "reviewers": ["qa", "architect"]}

    text = attended.plain("session", review)["content"][0]["text"]

    assert "\nqa: complete_delegation {" in text
    assert "\narchitect: complete_delegation {" in text


def test_every_field_of_the_state_is_reached_through_the_tools(app: App, attended: Agent) -> None:
    attended.ok("session", phase="implementation", feature="Export")
    started = attended.ok(
        "delegate",
        agent="Analyst",
        prompt="Find the cause",
        context={"area": "cache"},
        artifacts=["plan.md"],
        reason="nobody knows",
        requestId="r-1",
    )
    assert started["nextCall"]["tool"] == "complete_delegation"
    assert "earlierContext" not in started
    attended.ok(
        "complete_delegation",
        delegation=started["id"],
        summary="It is the cache",
        artifacts=["report.md"],
        recommendations=["Cache less"],
        blockers=["no profile"],
        handoffTo="architect",
        handoffReason="needs a design",
        preservedContext={"seen": 3},
        verdict={
            "decision": "reject",
            "confidence": 90,
            "reasoning": "too slow",
            "conditions": ["measure"],
        },
    )
    decision = attended.ok(
        "record_decision",
        type="architectural",
        description="No cache",
        rationale="it is the cause",
        decidedBy="architect",
    )
    for agent, judgement in (("qa", "approve"), ("critic", "reject")):
        attended.ok("record_decision", id=decision["id"], decidedBy=agent, judgement=judgement)

    work = work_of(app, started["session"])
    assert work.workflow_phase == "implementation"
    (invocation,), (handoff,) = work.agent_history, work.pending_handoffs
    (verdict,), (decided,) = work.verdicts, work.decisions
    for part in (work, invocation, handoff, verdict, decided):
        for name in part.__struct_fields__:
            is_empty = name in EMPTY
            assert bool(getattr(part, name)) != is_empty, name
    taken = attended.ok("delegate", agent="architect", prompt="Design it")
    (over,) = taken["takenOver"]
    assert (over["context"], over["preservedContext"]) == ("It is the cache", {"seen": 3})
    work = work_of(app, started["session"])
    assert (work.active_agent, work.agent_history[-1].handoff_from) == ("architect", "analyst")
    again = attended.ok("delegate", agent="analyst", prompt="Look again")
    assert again["earlierContext"]["summary"] == "It is the cache"


def test_a_delegation_that_was_never_opened_is_suggested_for_the_agent_that_was_named(
    attended: Agent,
) -> None:
    problem = attended.refused("complete_delegation", {"delegation": "qa", "summary": "x"})

    (call,) = suggested_calls(problem)
    assert (call["tool"], call["params"]["agent"]) == ("delegate", "qa")


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("complete_delegation", {"delegation": "qa", "summary": "x"}, "unknown_delegation"),
        ("record_decision", {"id": "dec_1", "judgement": "approve"}, "unknown_decision"),
        ("record_decision", {"description": "Do it"}, "invalid_arguments"),
        ("record_decision", {"id": "dec_1"}, "invalid_arguments"),
        (
            "record_decision",
            {"id": "dec_1", "judgement": "reject", "description": "x"},
            "invalid_arguments",
        ),
        ("record_decision", {"judgement": "reject"}, "invalid_arguments"),
        ("delegate", {"agent": "__", "prompt": "x"}, "invalid_arguments"),
        ("delegate", {"agent": "qa", "prompt": "x" * 60_000}, "invalid_arguments"),
    ],
)
def test_what_cannot_be_recorded_is_refused_with_a_call_that_leads_on(
    attended: Agent, tool: str, arguments: dict[str, Any], code: str
) -> None:
    attended.ok("delegate", agent="analyst", prompt="Look")

    problem = attended.refused(tool, arguments)

    assert problem["code"] == code
    assert {call["tool"] for call in suggested_calls(problem)} == {tool}


def test_a_decision_that_nearly_repeats_an_earlier_one_names_it(attended: Agent) -> None:
    said = {"description": "Use SQLite for the store", "rationale": "One file"}
    first = attended.ok("record_decision", **said)
    other = attended.ok("record_decision", description="No cache for exports", rationale="x")
    again = attended.ok("record_decision", **{**said, "description": "use SQLite for the store."})

    assert "similarTo" not in first | other
    assert again["similarTo"] == first["id"]


def test_a_verdict_in_no_known_word_is_refused_with_those_there_are(attended: Agent) -> None:
    attended.ok("delegate", agent="qa", prompt="Test")

    problem = attended.refused(
        "complete_delegation",
        {"delegation": "qa", "summary": "x", "verdict": {"decision": "fine", "reasoning": "r"}},
    )

    assert "conditional" in problem["details"]["allowed"]


def test_names_are_found_however_they_are_written_and_sentences_stay_whole(
    app: App, attended: Agent
) -> None:
    started = attended.ok("delegate", agent="Task_Generator", prompt="Cut it up")
    result = "Open it once, then close it when all is written"
    attended.ok(
        "complete_delegation",
        delegation="task generator",
        summary="Done",
        recommendations=result,
        artifacts="a.md, b.md",
    )

    (invocation,) = work_of(app, started["session"]).agent_history

    assert (invocation.agent, invocation.status) == ("task-generator", "completed")
    assert invocation.output is not None
    assert invocation.output.recommendations == (result,)
    assert invocation.output.artifacts == ("a.md", "b.md")


def hook(app: App, project: Path, event: HookEvent, **fields: object) -> str:
    payload = {"session_id": "talk", "cwd": str(project), **fields}
    result = run_hook(claude_code.HOST, event, app.home, json.dumps(payload).encode())
    assert result.code == 0, result.err
    told: dict[str, Any] = json.loads(result.out) if result.out else {}
    return told.get("hookSpecificOutput", {}).get("additionalContext", "")


def test_the_next_session_is_told_what_the_one_before_did_not_finish(
    app: App, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt_in(tmp_path, "standard")
    hook(app, tmp_path, "session-start", source="startup")
    session = next(iter(session_record.announced_conversations(app)))
    monkeypatch.setenv("INTERLOCK_SESSION", session)
    agent.ok("delegate", agent="qa", prompt="Prove it")
    gated_sessions.change_status(app, session, "ended", "for today")
    monkeypatch.delenv("INTERLOCK_SESSION")

    told = hook(app, tmp_path, "session-start", source="startup", session_id="next day")

    assert f"{session}: not finished: qa, “Prove it”." in told


def test_subagents_of_a_host_are_delegations_without_anybody_typing_it(
    app: App, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    hook(app, tmp_path, "session-start", source="startup")
    subagent = {"agent_id": "a126", "agent_type": "analyst"}
    told = hook(app, tmp_path, "subagent-start", **subagent)
    assert "found earlier" not in told
    hook(app, tmp_path, "subagent-start", agent_id="b1", agent_type="general-purpose")
    hook(app, tmp_path, "subagent-stop", **subagent, last_assistant_message="It is the cache")
    hook(app, tmp_path, "subagent-stop", agent_id="b1", agent_type="general-purpose")
    (attended,) = app.reader.attended_sessions_in(str(tmp_path))

    (invocation,) = work_of(app, attended.session).agent_history

    assert (invocation.id, invocation.agent, invocation.status) == ("a126", "analyst", "completed")
    assert invocation.output is not None
    assert invocation.output.summary == "It is the cache"
    told = hook(app, tmp_path, "subagent-start", agent_id="a127", agent_type="analyst")
    assert "Earlier results of analyst in this session:\nIt is the cache" in told
    for event in ("subagent-start", "subagent-stop"):  # the same once more, beside another
        hook(app, tmp_path, event, **subagent, last_assistant_message=None)
    history = work_of(app, attended.session).agent_history
    assert [(one.id, one.status) for one in history] == [
        ("a126", "completed"),
        ("a127", "in_progress"),
        ("a126#2", "completed"),
    ]


def test_a_subagent_is_told_its_mode_even_if_the_store_is_away(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt_in(tmp_path, "standard")
    hook(app, tmp_path, "session-start", source="startup")

    def fail(_home: Path) -> App:
        raise StoreUnusable("It is away", "Wait.")

    monkeypatch.setattr(context_messages, "open_app", fail)

    told = hook(app, tmp_path, "subagent-start", agent_id="a1", agent_type="analyst")

    assert "Its mode is analysis" in told


def test_a_subagent_that_was_delegated_to_is_one_delegation(
    app: App, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt_in(tmp_path, "standard")
    hook(app, tmp_path, "session-start", source="startup")
    session = next(iter(session_record.announced_conversations(app)))
    monkeypatch.setenv("INTERLOCK_SESSION", session)
    agent.ok("delegate", agent="qa", prompt="Test it")
    hook(app, tmp_path, "subagent-start", agent_id="c1", agent_type="qa")
    hook(app, tmp_path, "subagent-stop", agent_id="c1", agent_type="qa")
    agent.ok("complete_delegation", delegation="qa", summary="Tested")

    (invocation,) = work_of(app, session).agent_history
    assert (invocation.input.prompt, invocation.status) == ("Test it", "completed")
