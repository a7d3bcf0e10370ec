"""The tool `session`: show and change what the agent may do, and what the work is about."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.app.callers import session_record
from interlock.app.callers.agent_detection import evidence_against_elicitation
from interlock.app.callers.caller import (
    NO_SESSION,
    Caller,
    refuse_acting_as,
    refuse_elsewhere,
    session_meant,
)
from interlock.app.context import App
from interlock.app.gate.integrity import governed_root
from interlock.app.gate.policy import policy_remarks
from interlock.app.protocol import feature_reviews, gated_sessions
from interlock.app.protocol.bootstrap import assemble_bootstrap, session_summary
from interlock.app.refusals import NoSuchDirectory, ProjectNotOptedIn
from interlock.app.sessions.session_approvals import requests_in
from interlock.app.sessions.statuses import own_status
from interlock.core.canonical import Json
from interlock.core.coordination.identities import normalise_track
from interlock.core.gate.state import CODING_CONSENT, CODING_QUESTION, Mode
from interlock.core.ids import SessionId
from interlock.core.protocol.feature_completion import (
    FeatureCompletionRequest,
    FeatureHasOpenWork,
    FeatureRefusal,
)
from interlock.core.protocol.gated_session import (
    AttendanceRefusal,
    ChangeNotAllowed,
    SessionEnded,
    WorkUpdate,
)
from interlock.core.session.events import Phase
from interlock.core.session.feature_review import FeatureReview
from interlock.core.session.state import SessionState
from interlock.core.session.verdict_outcomes import DECISIONS
from interlock.core.views.delegated_work import completion_arguments, review_line
from interlock.core.views.status import Status
from interlock.core.visible_text import make_visible
from interlock.core.workflow.blanks import is_blank
from interlock.core.workflow.operators import clip
from interlock.mcp.arguments import TOKEN_ALIASES, Workspace
from interlock.mcp.results import SuggestedCall, ToolResult, UserQuestion, refusal_result
from interlock.mcp.tool import Tool
from interlock.mcp.unknown_caller import call_to_begin, refuse_unknown_caller


class ReviewAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    review: str
    feature: str
    awaited: tuple[str, ...] = ()
    """The reviewers whose verdicts are missing."""
    deadline: str = ""
    outcome: str = ""
    is_blocking: bool = False
    reason: str = ""


def review_answer(review: FeatureReview) -> ReviewAnswer:
    if review.is_open:
        awaited = tuple(one.agent for one in review.awaited_reviewers)
        return ReviewAnswer(review.id, review.feature, awaited, review.deadline)
    return ReviewAnswer(
        review.id,
        review.feature,
        outcome=DECISIONS[review.outcome] if review.outcome else "",
        is_blocking=review.is_blocking,
        reason=review.reason,
    )


TITLE_CHARS_MAX = 100


class SessionArguments(msgspec.Struct, frozen=True, rename="camel"):
    action: Annotated[
        Literal["get", "start", "set", "complete_feature", "end"] | None,
        Meta(
            description="Default: get, or set with a change. complete_feature: request its reviews."
        ),
    ] = None
    mode: Annotated[
        Mode | None,
        Meta(description="Edits need coding. Only the user sets disabled."),
    ] = None
    task: Annotated[str | None, Meta(description="What you work on now.")] = None
    feature: Annotated[str | None, Meta(description="What the task is part of.")] = None
    track: Annotated[str | None, Meta(description="Line of work, shown to other agents.")] = None
    phase: Annotated[Phase | None, Meta(description="Of the work.")] = None
    reviewers: Annotated[
        tuple[str, ...] | None, Meta(description="Default: qa, analyst, architect.")
    ] = None
    summary: Annotated[
        str | None, Meta(description="With end: what was done and what is open.")
    ] = None
    request_id: Annotated[str | None, Meta(description="Any name; not repeated.")] = None
    session_id: Annotated[str | None, Meta(description="Default: yours.")] = None
    continue_token: Annotated[str | None, Meta(description="Of a run of the session.")] = None
    workspace_path: Workspace = None


class SessionAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    session: str
    mode: Mode | None
    summary: str
    status: Status | None = None
    """None without a session."""
    feature: str = ""
    task: str = ""
    phase: str = ""
    feature_review: ReviewAnswer | None = None
    """Of `complete_feature`."""
    next_calls: tuple[SuggestedCall, ...] = ()


def _call_session(app: App, caller: Caller, arguments: SessionArguments) -> ToolResult:
    workspace = caller.workspace
    sent_arguments = given_arguments(arguments)
    if not os.path.isdir(workspace):
        sent_arguments.pop("workspacePath", None)
        return refusal_result(
            NoSuchDirectory(str(workspace)).explain(), SESSION_TOOL.corrected_call(sent_arguments)
        )
    if arguments.action == "start":
        return _start_session(app, caller, arguments)
    session = session_meant(app, caller)
    action = arguments.action or ("set" if _names_change(arguments) else "get")
    if session == NO_SESSION and action == "get":
        is_governed = governed_root(app.home, workspace) is not None
        return _no_session_result() if is_governed else _ungated_result()
    if not isinstance(session, str):
        return refuse_unknown_caller(app, caller, session, SESSION_TOOL, sent_arguments)
    state = feature_reviews.settled_state(app, session)
    if action == "get":
        remarks = (*_remarks(app, state), *_waiting_lines(app, session))
        return _session_result(app, state, assemble_bootstrap(app, state, remarks).text)
    if refusal := refuse_elsewhere(caller, session, state.worktree):
        return refusal_result(refusal.explain(), None)
    if action == "complete_feature":
        return _complete_feature(app, state, arguments)
    if action == "end":
        return _end_session(app, caller, state, arguments)
    return _change_result(app, state, arguments)


def _names_change(arguments: SessionArguments) -> bool:
    work = (arguments.task, arguments.feature, arguments.phase, arguments.track)
    return any(value is not None for value in (arguments.mode, *work))


def _change_result(
    app: App, state: SessionState, arguments: SessionArguments, *, is_agreed: bool = False
) -> ToolResult:
    outcome = _change_session(app, state, arguments, is_agreed=is_agreed)
    if isinstance(outcome, SessionState):
        return _session_result(app, outcome, session_summary(app, outcome, _remarks(app, outcome)))
    if not isinstance(outcome, ChangeNotAllowed):
        return refusal_result(outcome.explain(), call_to_begin())
    if outcome.needs_task:
        asked = {**given_arguments(arguments), "task": "<what the coding is for>"}
        call = SESSION_TOOL.corrected_call(asked)
        return refusal_result(outcome.explain(), call)
    # Without the user the same call would be refused again, and no other one leads there.
    result = refusal_result(outcome.explain(), None)
    if not outcome.is_askable or evidence_against_elicitation(
        app.home, app.environment, app.process
    ):
        return result
    task = arguments.task or state.active_task
    about = f" Task: {task}." if task else ""
    message = f"{CODING_QUESTION}.{about} {CODING_CONSENT}"

    def record(is_granted: bool, reason: str, _client: str) -> ToolResult:  # noqa: FBT001
        if is_granted:
            return _change_result(app, state, arguments, is_agreed=True)
        denial = f"the user said no{f': {reason}' if reason else ''}"
        return refusal_result(msgspec.structs.replace(outcome, reason=denial).explain(), None)

    question = UserQuestion(make_visible(message), record)
    return msgspec.structs.replace(result, question=question)


def _change_session(
    app: App, state: SessionState, arguments: SessionArguments, *, is_agreed: bool
) -> SessionState | AttendanceRefusal:
    """Change the mode, then the work; if the mode is refused, nothing is changed."""
    session = SessionId(state.session_id)
    outcome: SessionState | AttendanceRefusal = state
    if arguments.mode:
        outcome = gated_sessions.change_mode_as_asked(
            app, session, arguments.mode, arguments.task, is_agreed=is_agreed
        )
    if isinstance(outcome, SessionState):
        work = WorkUpdate(arguments.feature, arguments.task, arguments.phase)
        outcome = gated_sessions.change_work(app, session, work)
    if isinstance(outcome, SessionState) and arguments.track is not None:
        _set_track(app, outcome, arguments.track)
    return outcome


def _set_track(app: App, state: SessionState, track: str) -> None:
    """Let the others who work on the project know."""
    from interlock.app.coordination.participants import Participant, register  # noqa: PLC0415 (rare)
    from interlock.app.coordination.project_desk import open_desk  # noqa: PLC0415

    desk = open_desk(app, Path(state.worktree))
    register(app, desk, Participant(state.session_id, track=normalise_track(track)))


def _end_session(
    app: App, caller: Caller, state: SessionState, arguments: SessionArguments
) -> ToolResult:
    from interlock.app.protocol.end_request import SessionEnding, end_session  # noqa: PLC0415

    session = SessionId(state.session_id)
    if refusal := refuse_acting_as(app, caller, session):
        return refusal_result(refusal.explain(), SESSION_TOOL.corrected_call({"action": "get"}))
    summary = arguments.summary or ""
    # The blank of the example, sent back as it was, says nothing.
    ending = end_session(app, session, "" if is_blank(summary) else summary)
    if not isinstance(ending, SessionEnding):
        is_over = isinstance(ending, SessionEnded)
        again = SuggestedCall("session", {"action": "end", "summary": "<what was done>"})
        call = call_to_begin() if is_over else again
        return refusal_result(ending.explain(), call)
    caller.connection.ended_sessions.add(session)
    if ending.is_complete:
        text = " ".join(("The session has ended.", *(f"Note: {one}." for one in ending.remarks)))
    else:
        text = f"{ending.job} is ending the session. Make the same call again for its progress."
    ended = session_record.state_of(app, session)
    result = _session_result(app, ended, text)
    told = {
        "feature": ended.active_feature,
        "task": ended.active_task,
        "phase": ended.work.known_phase,
    }
    work = "".join(f", {name}: {value}" for name, value in told.items() if value)
    return ToolResult(
        result.structured,
        f"{result.text}\nsession: {session}, mode: {ended.current_mode}{work}",
    )


def _complete_feature(app: App, state: SessionState, arguments: SessionArguments) -> ToolResult:
    session = SessionId(state.session_id)
    request = FeatureCompletionRequest(
        arguments.feature, arguments.reviewers or (), request_id=arguments.request_id
    )
    outcome = feature_reviews.complete_feature(app, session, request)
    if not isinstance(outcome, feature_reviews.RequestedReview):
        call = _call_before_review(state, arguments, outcome)
        return refusal_result(outcome.explain(), call)
    review, work = outcome.review, outcome.state.orchestrator_workflow
    assert work is not None, "the review is part of it"
    reviewers = review.awaited_reviewers if review.is_open else ()
    calls = tuple(
        SuggestedCall("complete_delegation", completion_arguments(work, reviewer.delegation))
        for reviewer in reviewers
    )
    lines = [review_line(review)]
    if calls:
        lines.append("Hand the review to each of these agents, and record its verdict:")
    lines += [
        f"{reviewer.agent}: {call.tool} {msgspec.json.encode(call.params).decode()}"
        for reviewer, call in zip(reviewers, calls, strict=True)
    ]
    result = _session_result(app, outcome.state, "\n".join(lines))
    answer = msgspec.structs.replace(
        result.structured,
        feature=review.feature,
        feature_review=review_answer(review),
        next_calls=calls,
    )
    return ToolResult(answer, f"{result.text}, session: {session}, mode: {state.current_mode}")


def _call_before_review(
    state: SessionState, arguments: SessionArguments, refusal: FeatureRefusal
) -> SuggestedCall | None:
    """Return the call to make instead; None if only the user or other work can help."""
    if isinstance(refusal, FeatureHasOpenWork):
        work = state.orchestrator_workflow
        if work is None or refusal.open_delegation is None:
            return None
        completion = completion_arguments(work, refusal.open_delegation)
        named = {"sessionId": arguments.session_id} if arguments.session_id else {}
        return SuggestedCall("complete_delegation", {**completion, **named})
    if isinstance(refusal, SessionEnded):
        return call_to_begin()
    return SESSION_TOOL.corrected_call(given_arguments(arguments))


def _start_session(app: App, caller: Caller, arguments: SessionArguments) -> ToolResult:
    outcome = gated_sessions.start(app, caller)
    if isinstance(outcome, session_record.StartedSession):
        caller.connection.remember_work(outcome.session)
        if _names_change(arguments):
            return _change_result(app, outcome.state, arguments)
        remarks = _remarks(app, outcome.state)
        return _session_result(
            app, outcome.state, assemble_bootstrap(app, outcome.state, remarks).text
        )
    if isinstance(outcome, ChangeNotAllowed):
        return refusal_result(outcome.explain(), SESSION_TOOL.corrected_call({"action": "start"}))
    if isinstance(outcome, ProjectNotOptedIn):
        return refusal_result(outcome.explain(), None)
    return refuse_unknown_caller(app, caller, outcome, SESSION_TOOL, given_arguments(arguments))


def _no_session_result() -> ToolResult:
    text = 'You have no open session here. To open one: session {"action":"start"}'
    call = SuggestedCall("session", {"action": "start"})
    return ToolResult(SessionAnswer("", None, text, next_calls=(call,)), text)


def _ungated_result() -> ToolResult:
    """Return the answer for a directory outside of opted-in projects."""
    text = (
        "No mode applies here: Interlock restricts nothing. Workflows still work;"
        " resume_session lists earlier work."
    )
    return ToolResult(
        SessionAnswer("", "disabled", text),
        f"{text}\nmode: disabled",
    )


def given_arguments(arguments: msgspec.Struct) -> dict[str, Json]:
    sent: dict[str, Json] = msgspec.to_builtins(arguments)
    return {name: value for name, value in sent.items() if value is not None}


def _remarks(app: App, state: SessionState) -> tuple[str, ...]:
    worktree = Path(state.worktree)
    if governed_root(app.home, worktree) is None:
        return ()
    return tuple(policy_remarks(app.home, worktree, at_ms=app.clock.now_ms()))


def _waiting_lines(app: App, session: SessionId) -> Iterator[str]:
    """The session's own approvals that wait for the user."""
    stream = app.reader.stream(session)
    if stream and stream.head:
        for waiting in requests_in(app.reader, session, stream.head):
            request = waiting.request
            yield f"Waits for the user: {request.approval}, {clip(request.title, TITLE_CHARS_MAX)}"


def _session_result(app: App, state: SessionState, summary_text: str) -> ToolResult:
    status = own_status(app, SessionId(state.session_id))
    answer = SessionAnswer(
        session=state.session_id,
        mode=state.current_mode,
        status=status,
        summary=summary_text,
        feature=state.active_feature or "",
        task=state.active_task or "",
        phase=state.work.known_phase,
    )
    is_told = f"Phase: {answer.phase}." in summary_text  # as a briefing does
    phase = f"\nphase: {answer.phase}" if answer.phase and not is_told else ""
    return ToolResult(answer, f"{summary_text}{phase}\nstatus: {status.word}. {status.reason}")


SESSION_TOOL = Tool(
    name="session",
    purpose=(
        "Show the session (mode, task, open runs) or change it. To edit files, set mode coding;"
        " the user may have to agree. To finish, use action end with a summary; the answer lists"
        " what is still required."
    ),
    arguments=SessionArguments,
    cue="{mode?, action?}: mode coding to edit, action end to finish",
    call=_call_session,
    aliases={**TOKEN_ALIASES, "workspace": "workspacePath"},
)
