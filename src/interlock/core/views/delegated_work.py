"""Delegated work in words: what is open, with the call that goes on, and what was decided."""

from collections.abc import Iterator

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import DelegationId
from interlock.core.notes.fts_query import one_line
from interlock.core.session.feature_review import FeatureReview
from interlock.core.session.orchestration import (
    AgentInvocation,
    AgentOutput,
    Decision,
    Handoff,
    Orchestration,
)
from interlock.core.session.verdict_outcomes import DECISIONS
from interlock.core.workflow.operators import clip

SHOWN_MAX = 5
LINE_CHARS_MAX = 300
OWN_DECISIONS = "orchestrator"
"""The name under which the decisions of a session's own agent are recorded."""


def delegation_lines(work: Orchestration) -> Iterator[str]:
    """Yield what an agent must know of it after a break, what must be done now first."""
    if work.active_agent:
        yield f"Active agent: {work.active_agent}."
    for invocation in work.open_invocations:
        yield _open_line(work, invocation)
    for review in work.feature_reviews:
        if review.is_open or review is work.feature_reviews[-1]:
            yield review_line(review)
    for handoff in work.pending_handoffs:
        yield handoff_line(handoff)
    for verdict in work.verdicts[-SHOWN_MAX:]:
        sure = "" if verdict.confidence is None else f" ({verdict.confidence} %)"
        text = f"Verdict of {verdict.agent}: {verdict.decision}{sure}."
        said = _line(f"{text} {_sentence(verdict.reasoning)}")
        conditions = _list_text("Conditions", verdict.conditions)
        yield f"{said}{conditions}{_list_text('Blockers', verdict.blockers)}"
    for invocation in work.agent_history[-SHOWN_MAX:]:
        if invocation.output:
            output = invocation.output
            done = _line(f"{invocation.agent} {invocation.status}: {_sentence(output.summary)}")
            yield f"{done}{_list_text('Recommends', output.recommendations)}"
    for compaction in work.compaction_history[-1:]:
        yield f"Earlier: {compaction.agents_summary}; all of it in [[{compaction.note_path}]]."


def decision_lines(work: Orchestration) -> Iterator[str]:
    """Yield the newest decisions of a session, each with the reason for it."""
    for decision in work.decisions[-SHOWN_MAX:]:
        rejected = (
            f" Rejected by {', '.join(decision.rejected_by)}." if decision.rejected_by else ""
        )
        text = f"{decision.id}{by_agent(decision)} ({decision.type}):"
        reasons = f"Because: {_sentence(decision.rationale)}{rejected}"
        yield _line(f"{text} {_sentence(decision.description)} {reasons}")


def left_open_lines(work: Orchestration) -> Iterator[str]:
    """Yield what somebody else should know who goes on: what was not finished, what was decided."""
    # The line of an open review names its reviewers.
    reviews = [one for review in work.feature_reviews if review.is_open for one in review.reviewers]
    named = {one.delegation for one in reviews}
    for invocation in work.open_invocations:
        if invocation.id not in named:
            prompt = one_line(invocation.input.prompt)
            yield _line(f"not finished: {invocation.agent}, “{prompt}”.")
    for decision in work.decisions[-SHOWN_MAX:]:
        yield _line(f"decided{by_agent(decision)}: {decision.description}")


def by_agent(decision: Decision) -> str:
    """Return ` by AGENT`; nothing for a decision of the session's own agent."""
    return "" if decision.decided_by == OWN_DECISIONS else f" by {decision.decided_by}"


def _list_text(name: str, texts: tuple[str, ...]) -> str:
    text = "; ".join(texts)
    return f" {_sentence(_line(f'{name}: {text}'))}" if text else ""


def output_lines(output: AgentOutput) -> Iterator[str]:
    """Yield all that an agent submitted."""
    yield output.summary
    for name, texts in (
        ("Recommends", output.recommendations),
        ("Blocked by", output.blockers),
        ("Files", output.artifacts),
    ):
        yield from (f"- {name}: {text}" for text in texts)


def review_line(review: FeatureReview) -> str:
    """Say which verdicts a review waits for; or what came of it, and what to do then."""
    subject = f"Review {review.id}: feature “{one_line(review.feature)}”"
    if review.is_open:
        awaited = ", ".join(one.agent for one in review.awaited_reviewers)
        given = ", ".join(
            f"{one.agent} {DECISIONS[one.outcome]}" for one in review.reviewers if one.outcome
        )
        text = f"{subject} is under review until {review.deadline}."
        return f"{text} Verdicts are awaited from: {awaited}; given: {given or 'none'}."
    verdict = f"{DECISIONS[review.outcome]} ({review.reason})" if review.outcome else ""
    if review.is_blocking:
        call = _call(action="complete_feature", feature=review.feature)
        text = f"{subject} is not complete: {verdict}."
        return f"{text} When that is put right: session {call}"
    text = f"{subject} is complete: {verdict}."
    return f"{text} If nothing else is to be done: session {_call(action='end')}"


def completion_arguments(work: Orchestration, delegation: DelegationId) -> dict[str, Json]:
    """Return the arguments of the call that ends a delegation; a reviewer owes a verdict."""
    arguments: dict[str, Json] = {"delegation": delegation, "summary": "<what came of it>"}
    reviewers = (one for review in work.feature_reviews for one in review.reviewers)
    if any(one.delegation == delegation for one in reviewers):
        verdict = "<approve, conditional, needs_revision or reject>"
        arguments["verdict"] = {"decision": verdict, "reasoning": "<why>"}
    return arguments


def _open_line(work: Orchestration, invocation: AgentInvocation) -> str:
    call = _call(**completion_arguments(work, invocation.id))
    prompt = one_line(invocation.input.prompt)
    return (
        _line(f"Open: {invocation.agent}, “{prompt}”.") + f" When done: complete_delegation {call}"
    )


def handoff_lines(handoff: Handoff) -> Iterator[str]:
    """Yield all that an agent gets who takes over."""
    reason = f" ({handoff.reason})" if handoff.reason else ""
    yield f"{handoff.to_agent} takes over from {handoff.from_agent}{reason}, {handoff.created_at}:"
    yield handoff.context
    yield from (f"- File: {name}" for name in handoff.artifacts)
    if handoff.preserved_context:
        yield f"- Kept: {msgspec.json.encode(handoff.preserved_context).decode()}"


def handoff_line(handoff: Handoff) -> str:
    call = _call(agent=handoff.to_agent, prompt="<what to do>")
    reason = f" ({one_line(handoff.reason)})" if handoff.reason else ""
    text = f"Hand-off from {handoff.from_agent} to {handoff.to_agent}{reason}: "
    return f"{_sentence(_line(text + one_line(handoff.context)))} To go on: delegate {call}"


def _call(**arguments: Json) -> str:
    return msgspec.json.encode(arguments).decode()


def _sentence(text: str) -> str:
    """Return the agent's words with one full stop, whether or not they had one."""
    return f"{text.rstrip('. ')}."


def _line(text: str) -> str:
    return clip(one_line(text), LINE_CHARS_MAX)
