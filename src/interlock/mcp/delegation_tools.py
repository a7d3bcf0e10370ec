"""The tools by which an orchestrator hands work on, takes results, and records decisions."""

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import Caller, refuse_elsewhere, session_meant
from interlock.app.context import App
from interlock.app.protocol import delegations
from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation import (
    CANDIDATES_MAX,
    CompletionRequest,
    DecisionRequest,
    DelegationRequest,
)
from interlock.core.protocol.delegation_refusals import DelegationUnclear, RequestIdReused
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.protocol.specialists import normalise_agent, unknown_agent_warning
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.core.session.delegation_events import (
    AgentStatus,
    DecisionType,
    VerdictGiven,
)
from interlock.core.session.orchestration import (
    AgentOutput,
    Handoff,
    Orchestration,
    outcome_of,
)
from interlock.core.session.verdict_outcomes import VerdictDecision
from interlock.core.views.delegated_work import (
    OWN_DECISIONS,
    by_agent,
    delegation_lines,
    handoff_lines,
    output_lines,
)
from interlock.core.workflow.blanks import choice
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.session_tool import ReviewAnswer, given_arguments, review_answer
from interlock.mcp.tool import Tool
from interlock.mcp.unknown_caller import call_to_begin, refuse_unknown_caller

Names = tuple[str, ...]
DECISION_TYPES: tuple[DecisionType, ...] = get_args(DecisionType)


class DelegateArguments(msgspec.Struct, frozen=True, rename="camel"):
    agent: Annotated[
        str, Meta(description="analyst, architect, qa, …", examples=["<agent, like “analyst”>"])
    ]
    prompt: Annotated[str, Meta(description="What to do.", examples=["<what to do>"])]
    context: dict[str, Any] | None = None
    artifacts: Names | None = None
    reason: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    workspace_path: str | None = None


class VerdictArguments(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    decision: Annotated[str, Meta(extra_json_schema={"enum": get_args(VerdictDecision)})]
    """Other forms of the words are understood, too."""
    reasoning: str
    confidence: Annotated[float, Meta(ge=0, le=100, description="Percent.")] | None = None
    """Up to 1 it is understood as a share."""
    conditions: Names = ()


class CompleteArguments(msgspec.Struct, frozen=True, rename="camel"):
    delegation: Annotated[
        str, Meta(description="Id from delegate, or the agent.", examples=["<id or agent>"])
    ]
    summary: Annotated[
        str, Meta(description="What the agent did and found.", examples=["<what came of it>"])
    ]
    status: Annotated[AgentStatus | None, Meta(description="Default: completed.")] = None
    artifacts: Names | None = None
    recommendations: Names | None = None
    blockers: Annotated[Names | None, Meta(description="What must be fixed first.")] = None
    handoff_to: Annotated[str | None, Meta(description="Agent that takes over.")] = None
    handoff_reason: str | None = None
    preserved_context: Annotated[dict[str, Any] | None, Meta(description="For that agent.")] = None
    verdict: Annotated[VerdictArguments | None, Meta(description="Of a review.")] = None
    session_id: str | None = None
    workspace_path: str | None = None


class DecisionArguments(msgspec.Struct, frozen=True, rename="camel"):
    description: Annotated[str | None, Meta(description="What you decided.")] = None
    rationale: str | None = None
    type: Annotated[str | None, Meta(extra_json_schema={"enum": DECISION_TYPES})] = None
    """Another type is kept as technical."""
    decided_by: Annotated[str | None, Meta(description="An agent. Default: you.")] = None
    id: Annotated[str | None, Meta(description="Of the decision to judge.")] = None
    judgement: Literal["approve", "reject"] | None = None
    request_id: str | None = None
    session_id: str | None = None
    workspace_path: str | None = None


class DelegationAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    session: str
    id: str
    agent: str
    status: str
    taken_over: tuple[Handoff, ...] = ()
    earlier_context: AgentOutput | None = None
    feature_review: ReviewAnswer | None = None
    """The review that this verdict was for."""
    next_call: SuggestedCall | None = None


class DecisionAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    session: str
    id: str
    approved_by: Names = ()
    rejected_by: Names = ()
    similar_to: str = ""
    """An earlier decision of the session that says nearly the same."""
    warnings: Names = ()


def _call_delegate(app: App, caller: Caller, arguments: DelegateArguments) -> ToolResult:
    session = _session_of(app, caller, DELEGATE, arguments)
    if isinstance(session, ToolResult):
        return session
    agent = normalise_agent(arguments.agent)
    request = DelegationRequest(
        agent,
        arguments.prompt,
        arguments.context or {},
        arguments.artifacts or (),
        arguments.reason or "",
        arguments.request_id,
    )
    outcome = delegations.delegate(app, session, request)
    if not isinstance(outcome, delegations.StartedDelegation):
        return _refusal_with_call(outcome, DELEGATE, arguments)
    invocation = outcome.invocation
    call = SuggestedCall(
        COMPLETE_DELEGATION.name, {"delegation": invocation.id, "summary": "<what came of it>"}
    )
    state = "is open" if invocation.status == "in_progress" else f"is {invocation.status}"
    lines = [f"Delegation {invocation.id} to {agent} {state}."]
    for handoff in outcome.taken_over:
        lines += handoff_lines(handoff)
    if outcome.earlier:
        lines += [f"What {agent} found before:", *output_lines(outcome.earlier)]
    lines.append(f"When it is done: {call.tool} {msgspec.json.encode(call.params).decode()}")
    lines.append(f"status: {invocation.status}, session: {session}")
    answer = DelegationAnswer(
        *(session, invocation.id, agent, invocation.status),
        outcome.taken_over,
        outcome.earlier,
        next_call=call,
    )
    return ToolResult(answer, "\n".join(filter(None, (*lines, unknown_agent_warning(agent)))))


def _call_complete(app: App, caller: Caller, arguments: CompleteArguments) -> ToolResult:
    session = _session_of(app, caller, COMPLETE_DELEGATION, arguments)
    if isinstance(session, ToolResult):
        return session
    blockers = arguments.blockers or ()
    verdict = _verdict(arguments, arguments.verdict, blockers) if arguments.verdict else None
    if isinstance(verdict, ToolResult):
        return verdict
    request = CompletionRequest(
        arguments.delegation.strip(),
        arguments.summary,
        arguments.status or "completed",
        arguments.artifacts or (),
        arguments.recommendations or (),
        blockers,
        normalise_agent(arguments.handoff_to or ""),
        arguments.handoff_reason or "",
        arguments.preserved_context or {},
        verdict,
    )
    done = delegations.complete(app, session, request)
    if not isinstance(done, delegations.CompletedDelegation):
        return _refusal_with_call(done, COMPLETE_DELEGATION, arguments)
    lines = [f"{done.agent} {done.status} ({done.id}).", *delegation_lines(done.work)]
    reviews = done.work.feature_reviews
    own_review = (r for r in reviews if any(one.delegation == done.id for one in r.reviewers))
    review = next(own_review, None)
    answer = DelegationAnswer(
        *(session, done.id, done.agent, done.status),
        feature_review=review_answer(review) if review else None,
    )
    return ToolResult(answer, "\n".join((*lines, f"session: {session}")))


def _verdict(
    arguments: CompleteArguments, given: VerdictArguments, blockers: Names
) -> VerdictGiven | ToolResult:
    outcome = outcome_of(given.decision, has_blockers=bool(blockers))
    if outcome is None:
        words = get_args(VerdictDecision)
        sent = given_arguments(arguments)
        verdict = {**given_arguments(given), "decision": choice(words)}
        return refusal_result(
            Explanation(
                "invalid_arguments",
                f"`{given.decision}` is no verdict",
                "Say approve, conditional, needs_revision or reject.",
            ),
            COMPLETE_DELEGATION.corrected_call({**sent, "verdict": verdict}),
            allowed=words,
        )
    confidence = given.confidence
    if confidence is not None:
        confidence = round(confidence * 100 if confidence <= 1 else confidence)
    return VerdictGiven(outcome, confidence, given.reasoning, given.conditions, blockers)


def _call_decision(app: App, caller: Caller, arguments: DecisionArguments) -> ToolResult:
    session = _session_of(app, caller, RECORD_DECISION, arguments)
    if isinstance(session, ToolResult):
        return session
    agent = normalise_agent(arguments.decided_by or OWN_DECISIONS)
    if problem := _decision_problem(arguments):
        hint = (
            "Send `description` and `rationale`; or `id` of an earlier decision with `judgement`."
        )
        explanation = Explanation("invalid_arguments", problem, hint)
        return refusal_result(explanation, _DECISION_EXAMPLE)
    if arguments.id:
        is_approved = arguments.judgement == "approve"
        work = delegations.judge_decision(
            app, session, arguments.id, agent, is_approved=is_approved
        )
        if not isinstance(work, Orchestration):
            return _refusal_with_call(work, RECORD_DECISION, arguments)
        judged = next(one for one in work.decisions if one.id == arguments.id)
        answer = DecisionAnswer(session, judged.id, judged.approved_by, judged.rejected_by)
        verb = "approves of" if is_approved else "rejects"
        by = ", ".join((*judged.approved_by, *judged.rejected_by))
        text = f"{agent} {verb} {judged.id}. Judged by: {by}.\nsession: {session}"
        return ToolResult(answer, text)
    types: dict[str, DecisionType] = {one: one for one in DECISION_TYPES}
    kept_type: DecisionType = types.get(arguments.type or "", "technical")
    request = DecisionRequest(
        kept_type,
        arguments.description or "",
        arguments.rationale or "",
        agent,
        arguments.request_id,
    )
    decision = delegations.record_decision(app, session, request)
    if isinstance(decision, Refusal):
        return _refusal_with_call(decision, RECORD_DECISION, arguments)
    similar = delegations.similar_decision(app, session, decision)
    alike = f" {similar} says nearly the same: reject the one that is wrong." if similar else ""
    warnings: Names = ()
    if arguments.type not in (None, kept_type):
        known = ", ".join(types)
        warnings = (f"`{arguments.type}` is none of {known}, so the type is technical.",)
    answer = DecisionAnswer(session, decision.id, similar_to=similar, warnings=warnings)
    text = f"Decision {decision.id}{by_agent(decision)} is recorded.{alike}\nsession: {session}"
    return ToolResult(answer, "".join((text, *(f"\nwarning: {one}" for one in warnings))))


def _decision_problem(arguments: DecisionArguments) -> str:
    if arguments.id and not arguments.judgement:
        return "An earlier decision is named, and no judgement of it is given"
    if arguments.id and (arguments.description or arguments.rationale):
        return "A decision is judged, not changed: the new one would be another"
    if arguments.judgement and not arguments.id:
        return "A judgement needs the `id` of the decision"
    if not arguments.id and not (arguments.description and arguments.rationale):
        return "A decision needs a description and a rationale"
    return ""


def _session_of(
    app: App,
    caller: Caller,
    tool: Tool[Any],
    arguments: DelegateArguments | CompleteArguments | DecisionArguments,
) -> SessionId | ToolResult:
    """The session that the call is about, or a refusal."""
    session = session_meant(app, caller)
    if not isinstance(session, str):
        return refuse_unknown_caller(app, caller, session, tool, given_arguments(arguments))
    if refusal := refuse_elsewhere(caller, session, app.reader.head(session).workspace):
        return refusal_result(refusal.explain(), None)
    return session


def _refusal_with_call(refusal: Refusal, tool: Tool[Any], arguments: msgspec.Struct) -> ToolResult:
    sent = given_arguments(arguments)
    call, calls = None, ()
    match refusal:
        case DelegationUnclear(open_delegations=(_, *_) as names):
            # None is more likely than the others: a result must not be that of another's work.
            known = names[-CANDIDATES_MAX:]
            calls = tuple(tool.corrected_call({**sent, "delegation": name}) for name in known)
        case PlainRefusal(code="unknown_decision", candidates=(_, *_) as names):
            calls = tuple(tool.corrected_call({**sent, "id": name}) for name in names)
        case RequestIdReused():
            call = tool.corrected_call({**sent, "requestId": "<another name>"})
        case DelegationUnclear(named=named):
            who = {} if named.startswith("dlg_") else {"agent": named}
            call = DELEGATE.corrected_call({**DELEGATE.example_call().params, **who})
        case SessionEnded():
            call = call_to_begin()
        case _:
            call = tool.example_call() if tool is not RECORD_DECISION else _DECISION_EXAMPLE
    return refusal_result(refusal.explain(), call, next_calls=calls)


DELEGATE: Tool[DelegateArguments] = Tool(
    name="delegate",
    purpose=(
        "Record work before you give it to another agent. Returns the id for complete_delegation,"
        " and what that agent found before."
    ),
    arguments=DelegateArguments,
    cue="{agent, prompt}: record it before another agent starts",
    call=_call_delegate,
    aliases={"targetAgent": "agent", "handoffReason": "reason", "task": "prompt"},
)
COMPLETE_DELEGATION: Tool[CompleteArguments] = Tool(
    name="complete_delegation",
    purpose=(
        "Record the result of delegated work when the agent is done: summary and status, what"
        " blocks it, and for a review its verdict. Name in handoffTo the agent that takes over."
    ),
    arguments=CompleteArguments,
    cue="{delegation, summary}: record its result or verdict",
    is_idempotent=True,
    call=_call_complete,
    aliases={"id": "delegation", "agent": "delegation"},
)
RECORD_DECISION: Tool[DecisionArguments] = Tool(
    name="record_decision",
    purpose=(
        "Record a decision of this session and why, or approve or reject an earlier one by id."
        " Decisions are shown to you again after a compaction. If later sessions must find it,"
        " write a note of type decision too."
    ),
    arguments=DecisionArguments,
    cue="{description?, rationale?}: keep a decision and its reason",
    call=_call_decision,
    aliases={"decision": "description"},
)
_DECISION_EXAMPLE = SuggestedCall(
    RECORD_DECISION.name, {"description": "<what was decided>", "rationale": "<why>"}
)
