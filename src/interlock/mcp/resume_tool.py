"""The tool `resume_session`: find earlier work and how to continue it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.app.callers import session_record
from interlock.app.callers.caller import Caller, own_conversation, session_of_connection
from interlock.app.context import App
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.bootstrap import progress_briefing
from interlock.app.protocol.presence import sessions_in_use
from interlock.app.runs.resume import ResumableRun, ResumeQuery, find_resumable_runs
from interlock.core.canonical import Json
from interlock.core.counting import pluralise
from interlock.core.ids import RunId, SessionId
from interlock.core.views.counting import progress_text
from interlock.core.views.status import Status
from interlock.mcp.arguments import Workspace
from interlock.mcp.results import SuggestedCall, ToolResult
from interlock.mcp.tool import Tool

SNIPPET_CHARS_MAX = 300
LIMIT_MAX = 20


class ResumeArguments(msgspec.Struct, frozen=True, rename="camel"):
    query: Annotated[str | None, Meta(description="How the user names the work.")] = None
    workspace_path: Workspace = None
    session_id: Annotated[str | None, Meta(description="Id, or its beginning.")] = None
    run_id: Annotated[str | None, Meta(description="Id, or its beginning.")] = None
    git_branch: Annotated[str | None, Meta(description="Default: the current one.")] = None
    git_head_sha: Annotated[str | None, Meta(description="Default: the current one.")] = None
    limit: Annotated[int | None, Meta(description="Default: 5.")] = None


class ResumeCandidate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    session: SessionId
    run: RunId
    title: str
    workflow: str
    status: Status
    steps_done: int
    steps_skipped: int
    step_count: int
    workspace: str
    confidence: Literal["strong", "medium", "weak"]
    why_matched: tuple[str, ...]
    next_call: SuggestedCall
    is_own: bool = False
    in_use_by: str = ""
    """The other conversation that works in it now, if any."""
    pending_step: str = ""
    snippet: str = ""
    """The start of the newest notes."""
    verify: tuple[str, ...] = ()
    """What changed since, for the first candidate."""


class ResumeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    candidates: tuple[ResumeCandidate, ...]
    hint: str


def _resume_session(app: App, caller: Caller, arguments: ResumeArguments) -> ToolResult:
    in_use = sessions_in_use(app, own_conversation(app, caller))
    own_session = in_use.own or session_of_connection(app, caller)  # without hooks
    query = ResumeQuery(
        workspace=caller.workspace,
        query=arguments.query or "",
        session=arguments.session_id,
        run=arguments.run_id,
        git_branch=arguments.git_branch,
        git_head=arguments.git_head_sha,
        limit=min(max(arguments.limit or 5, 1), LIMIT_MAX),
        own_session=own_session,
        is_only_here=arguments.workspace_path is not None,
        holders=in_use.holders,
    )
    candidates = find_resumable_runs(app.reader, app.keyring, query)
    sessions = {candidate.row.session: candidate.row.workspace for candidate in candidates}
    named_id = arguments.session_id or arguments.run_id
    sessions_to_join = gated_sessions.sessions_to_move_to(app, caller, sessions, own_session)
    join_message = ""
    if named_id:
        if len(sessions) == len(sessions_to_join) == 1:
            session = sessions_to_join.pop()
            join_message = f"This conversation does not join {session}, which is in use."
            if session not in in_use.holders:
                join_message = _join_session(app, caller, session)
        sessions_to_join.clear()
    answer = ResumeAnswer(
        tuple(_resume_candidate(candidate, sessions_to_join) for candidate in candidates),
        " ".join(filter(None, (join_message, _hint(candidates, named_id)))),
    )
    return ToolResult(answer, _answer_text(answer))


def _join_session(app: App, caller: Caller, session: SessionId) -> str:
    """Move the conversation to the named session if that is allowed; return a message about it."""
    outcome = gated_sessions.move_conversation(app, caller, session)
    if isinstance(outcome, session_record.StartedSession):
        text = f"This conversation is now part of {session} (mode {outcome.state.current_mode})."
        progress = progress_briefing(outcome.state).text
        return f"{text}\n\n{progress}\n\n" if progress else text
    explanation = outcome.explain()
    return f"{explanation.error}; this conversation stays in its session. {explanation.hint}"


def _resume_candidate(candidate: ResumableRun, sessions_to_join: set[SessionId]) -> ResumeCandidate:
    row = candidate.row
    params: dict[str, Json] = {"continueToken": candidate.token, "intent": "rehydrate"}
    call = SuggestedCall("continue_workflow", params)
    if row.session in sessions_to_join:
        call = SuggestedCall("resume_session", {"runId": row.run})
    return ResumeCandidate(
        row.session,
        RunId(row.run),
        row.title,
        row.workflow,
        row.status,
        row.steps_done,
        row.steps_skipped,
        row.step_count,
        row.workspace,
        candidate.match.confidence,
        candidate.match.reasons,
        call,
        is_own=candidate.match.candidate.is_own,
        in_use_by=candidate.match.candidate.holder,
        pending_step=row.step,
        snippet=row.recap[:SNIPPET_CHARS_MAX],
        verify=candidate.changes,
    )


def _hint(candidates: list[ResumableRun], named_id: str | None) -> str:
    if not candidates and named_id:
        return (
            f"`{named_id}` cannot be resumed: it is unknown, abandoned or unattended"
            " (`interlock driver status` shows unattended work). To list the work that can be"
            " resumed, repeat the call without the id."
        )
    if not candidates:
        return "There is nothing to resume here. To start work, call start_workflow."
    if holder := candidates[0].match.candidate.holder:
        return f"{holder} works on the first candidate: ask the user before you continue it."
    own_count = sum(candidate.match.candidate.is_own for candidate in candidates)
    is_own = candidates[0].match.candidate.is_own and own_count == 1
    if is_own or candidates[0].match.confidence == "strong":
        return "Make the first nextCall: it returns the pending step."
    if len(candidates) == 1:
        return "Ask the user whether they mean this work. If so, make its nextCall."
    return "If it is not clear which candidate the user means, ask. Then make its nextCall."


def _answer_text(answer: ResumeAnswer) -> str:
    lines = [f"{pluralise(len(answer.candidates), 'candidate')}. {answer.hint}"]
    for number, candidate in enumerate(answer.candidates, start=1):
        at = f", at `{candidate.pending_step}`" if candidate.pending_step else ""
        lines += [
            f"\n{number}. {candidate.title} [{candidate.session}, {candidate.run}]",
            f"   {candidate.workflow}, {_progress(candidate)}{at}, in {candidate.workspace}",
            f"   {candidate.status.word}{_need_text(candidate)}: {candidate.status.reason}",
            f"   {candidate.confidence}: {'; '.join(candidate.why_matched)}",
        ]
        if candidate.is_own:
            lines.append("   yours: it belongs to this conversation's session")
        if candidate.in_use_by:
            lines.append(f"   in use by {candidate.in_use_by}")
        lines += [f"   verify: {line}" for line in candidate.verify]
        lines += [f"   newest notes: {candidate.snippet}"] if candidate.snippet else []
        params = msgspec.json.encode(candidate.next_call.params).decode()
        lines.append(f"   nextCall: {candidate.next_call.tool} {params}")
    return "\n".join(lines)


def _need_text(candidate: ResumeCandidate) -> str:
    return f" ({candidate.status.waits_for})" if candidate.status.waits_for else ""


def _progress(candidate: ResumeCandidate) -> str:
    return progress_text(candidate.steps_done, candidate.steps_skipped, candidate.step_count)


RESUME_SESSION = Tool(
    name="resume_session",
    purpose=(
        "Resume earlier work: find started workflows and the call that continues each at its next"
        ' step. Use it when the user says "continue", "resume" or "where were we", in a new'
        " conversation, or without a continueToken. The best match comes first. With sessionId or"
        " runId, this conversation joins that session, unless it is in use. To start new"
        " work, use start_workflow."
    ),
    arguments=ResumeArguments,
    cue="{query?}: find and continue earlier work",
    is_read_only=False,  # naming a session moves the conversation
    is_idempotent=True,
    call=_resume_session,
    aliases={"workspace": "workspacePath", "branch": "gitBranch", "session": "sessionId"},
)
