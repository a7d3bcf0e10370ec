"""The tool `resume_session`: find the work to go on with."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.app.resume import Candidate, Wanted, find
from interlock.core.canonical import Json
from interlock.core.ids import RunId, SessionId
from interlock.mcp.arguments import Workspace, workspace_of
from interlock.mcp.contract import Tool
from interlock.mcp.results import Call, ToolResult

SNIPPET_CHARS_MAX = 300
LIMIT_MAX = 20


class ResumeArguments(msgspec.Struct, frozen=True, rename="camel"):
    query: Annotated[str | None, Meta(description="What the user calls the work, or an id.")] = None
    workspace_path: Workspace = None
    session_id: Annotated[str | None, Meta(description="A session, or the start of its id.")] = None
    run_id: Annotated[str | None, Meta(description="A run, or the start of its id.")] = None
    git_branch: Annotated[str | None, Meta(description="Default: the branch that is out.")] = None
    git_head_sha: Annotated[str | None, Meta(description="Default: the commit that is out.")] = None
    limit: Annotated[int | None, Meta(description="How many candidates. Default: 5.")] = None


class ResumeCandidate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    session: SessionId
    run: RunId
    title: str
    workflow: str
    status: str
    steps_done: int
    step_count: int
    workspace: str
    confidence: Literal["strong", "medium", "weak"]
    why_matched: tuple[str, ...]
    next_call: Call
    pending_step: str = ""
    snippet: str = ""
    """The start of the newest notes."""
    verify: tuple[str, ...] = ()
    """What is different since, for the first candidate."""


class ResumeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    candidates: tuple[ResumeCandidate, ...]
    hint: str


def _resume(app: App, arguments: ResumeArguments) -> ToolResult:
    wanted = Wanted(
        workspace=workspace_of(arguments.workspace_path),
        query=arguments.query or "",
        session=arguments.session_id,
        run=arguments.run_id,
        git_branch=arguments.git_branch,
        git_head=arguments.git_head_sha,
        limit=min(max(arguments.limit or 5, 1), LIMIT_MAX),
    )
    found = find(app.reader, app.keyring, app.entropy, wanted)
    named = arguments.session_id or arguments.run_id
    answer = ResumeAnswer(tuple(_shown(candidate) for candidate in found), _hint(found, named))
    return ToolResult(answer, _text(answer))


def _shown(candidate: Candidate) -> ResumeCandidate:
    row = candidate.row
    params: dict[str, Json] = {"continueToken": candidate.token, "intent": "rehydrate"}
    return ResumeCandidate(
        row.session,
        RunId(row.run),
        row.title,
        row.workflow,
        row.status,
        row.steps_done,
        row.step_count,
        row.workspace,
        candidate.match.confidence,
        candidate.match.reasons,
        Call("continue_workflow", params),
        row.step,
        row.recap[:SNIPPET_CHARS_MAX],
        candidate.changes,
    )


def _hint(found: list[Candidate], named: str | None) -> str:
    if not found and named:
        return f"There is no `{named}` here. Ask again without it to see what there is."
    if not found:
        return "Nothing was recorded yet. Start something with start_workflow."
    if found[0].match.confidence == "strong":
        return "Make the first nextCall: it shows where the work stands and changes nothing."
    return "If it is not plain which one is meant, ask the user. Then make its nextCall."


def _text(answer: ResumeAnswer) -> str:
    lines = [f"{len(answer.candidates)} candidates. {answer.hint}"]
    for number, found in enumerate(answer.candidates, start=1):
        at = f"at `{found.pending_step}`" if found.pending_step else found.status
        lines += [
            f"\n{number}. {found.title} [{found.session}, {found.run}]",
            f"   {found.workflow}, {found.steps_done} of {found.step_count} steps done, {at}"
            f" ({found.status}), in {found.workspace}",
            f"   {found.confidence}: {'; '.join(found.why_matched)}",
        ]
        lines += [f"   verify: {line}" for line in found.verify]
        lines += [f"   newest notes: {found.snippet}"] if found.snippet else []
        call = found.next_call
        token, intent = call.params["continueToken"], call.params["intent"]
        lines.append(f"   next: {call.tool}, intent {intent}, continueToken: {token}")
    return "\n".join(lines)


RESUME = Tool(
    name="resume_session",
    title="Resume a session",
    purpose=(
        "Find earlier work to go on with: after a new conversation, a lost token, or when the user"
        " says 'where were we'. Gives the likeliest sessions, why each matched, and a call that"
        " shows where it stands."
    ),
    arguments=ResumeArguments,
    answer=ResumeAnswer,
    is_read_only=True,
    call=_resume,
    aliases={"workspace": "workspacePath", "branch": "gitBranch", "session": "sessionId"},
)
