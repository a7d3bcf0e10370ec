"""The tool `request_approval`: ask the user to approve a plan, command or diff.

A client that can ask its user (`elicitation`) is asked at once, and its answer counts as the
user's: the protocol offers no better evidence. So only an attended client is asked, and never by a
server that a command of an agent has started.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.callers.agent_detection import evidence_against_elicitation
from interlock.app.callers.caller import Caller, session_meant
from interlock.app.callers.user_answer import user_answer
from interlock.app.context import App
from interlock.app.sessions import session_approvals
from interlock.app.sessions.session_approvals import RequestStatus
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.refusal import PlainRefusal
from interlock.core.session.nodes import how_to_answer
from interlock.core.session.session_approvals import request_wish
from interlock.core.visible_text import make_visible
from interlock.mcp.results import ToolResult, UserQuestion, refusal_result
from interlock.mcp.session_tool import given_arguments
from interlock.mcp.tool import Tool
from interlock.mcp.unknown_caller import call_to_begin, refuse_unknown_caller


class ApprovalArguments(msgspec.Struct, frozen=True, rename="camel"):
    title: Annotated[str, Meta(description="One line.", pattern=r"\S", examples=["<what for>"])]
    content: Annotated[
        str,
        Meta(
            description="The whole plan, command or diff.", pattern=r"\S", examples=["<all of it>"]
        ),
    ]
    request_id: str | None = None
    session_id: str | None = None
    workspace_path: str | None = None


class RequestAnswer(RequestStatus, frozen=True):
    guidance: str = ""
    """What the answer means for the agent: the whole text."""


def _call_request_approval(app: App, caller: Caller, arguments: ApprovalArguments) -> ToolResult:
    session = session_meant(app, caller)
    if not isinstance(session, str):
        sent = given_arguments(arguments)
        return refuse_unknown_caller(app, caller, session, REQUEST_APPROVAL, sent)
    if app.reader.head(session).is_over:  # whose approvals nobody is shown
        return refusal_result(SessionEnded(session).explain(), call_to_begin())
    wish = request_wish(arguments.title, arguments.content, arguments.request_id or "")
    outcome = session_approvals.request_approval(app, session, wish)
    if isinstance(outcome, PlainRefusal):
        return refusal_result(outcome.explain(), None)
    if outcome.status != "waiting":
        return _status_result(outcome)
    if evidence_against_elicitation(app.home, app.environment, app.process):
        return _status_result(outcome)
    question = UserQuestion(
        make_visible(f"{arguments.title}\n\n{arguments.content}"),
        lambda is_granted, reason, client: _record_answer(
            app, session, outcome, (is_granted, reason, client)
        ),
    )
    return msgspec.structs.replace(_status_result(outcome), question=question)


def _record_answer(
    app: App, session: SessionId, asked: RequestStatus, given: tuple[bool, str, str]
) -> ToolResult:
    is_granted, reason, client = given
    verdict = user_answer("granted" if is_granted else "denied", reason, place=f"as {client} says")
    session_approvals.record_answer(app, session, asked.approval, verdict)
    return _status_result(session_approvals.request_status(app, session, asked.approval))


def _status_result(outcome: RequestStatus) -> ToolResult:
    name, reason = outcome.approval, outcome.reason or "no reason was given"
    match outcome.status:
        case "waiting":
            text = (
                f"Approval {name} is waiting. Tell the user. {how_to_answer(name)}"
                " Until then, do nothing that needs it. To read the answer, repeat the call."
            )
        case "granted":
            text = (
                f"Approval {name} was granted by {outcome.who}: {reason}. Do exactly what was"
                " approved."
            )
        case "denied":
            text = f"Approval {name} was denied by {outcome.who}: {reason}. Do not do it."
        case "expired":
            text = (
                f"Approval {name} expired: {reason}. It counts as denied. If you still need it,"
                " repeat the call with another requestId."
            )
    answer = RequestAnswer(name, outcome.status, outcome.who, outcome.reason, guidance=text)
    return ToolResult(answer, text)


REQUEST_APPROVAL = Tool(
    name="request_approval",
    purpose=(
        "Ask the user to approve a plan, command or diff before you act on it. Repeat the call to"
        " read the answer."
    ),
    arguments=ApprovalArguments,
    cue="{title, content}: ask the user",
    is_idempotent=True,
    call=_call_request_approval,
    aliases={"workspace": "workspacePath", "plan": "content", "question": "title"},
)
