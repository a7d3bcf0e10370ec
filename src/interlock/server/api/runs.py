"""Operations on runs: start and show them, and the decisions that are the user's."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from interlock.app.callers.caller import Caller, Connection
from interlock.app.callers.user_answer import user_answer
from interlock.app.context import App
from interlock.app.refusals import NoSuchRun, NoSuchSession, UnhealthySession
from interlock.app.runs import approvals, user_actions
from interlock.app.runs.approvals import AnswerRefusal, ApprovalAnswer, PendingApproval
from interlock.app.runs.start import GOAL_CHARS_MAX, StartRequest, start
from interlock.app.runs.waiting import WaitingForUser, list_waiting
from interlock.app.sessions import event_pages
from interlock.app.sessions.lookup import find_session, load_run_graph
from interlock.app.sessions.statuses import Observer
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.ids import GapId, RunId, SessionId, WorkflowId
from interlock.core.preferences import Preferences, Wish, loosens
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.core.session.answer import Answer, RenderedAnswer
from interlock.core.session.approve import REASON_CHARS_MAX
from interlock.core.session.events import GapRecorded
from interlock.core.session.run_head import RunHead
from interlock.core.views.graph import RunGraph
from interlock.core.views.status import Status
from interlock.server.api.operation import Body, NoParameters, Parameters, rest_operation
from interlock.server.api.sessions import Session, SessionParameters

SESSIONS_MAX = 100
Workspace = Annotated[
    str, Meta(description="The absolute path of a directory.", pattern="^/", max_length=4_000)
]
Reason = Annotated[str, Meta(min_length=1, max_length=REASON_CHARS_MAX)]
Shown = Annotated[
    str,
    Meta(
        description="The `shown` of the approval as it was listed: answer only that.", max_length=64
    ),
]
BY_REST = "by REST"


class RunParameters(Parameters, frozen=True):
    run: Annotated[
        str, Meta(pattern=r"^run_[0-9a-f]{16}$(?!\n)", description="The whole id of a run.")
    ]


class RunDetail(msgspec.Struct, frozen=True):
    session: SessionId
    status: Status
    head: RunHead
    graph: RunGraph


class RunRequest(Body, frozen=True):
    workflow: Annotated[str, Meta(description="The id of a workflow.", max_length=64)]
    goal: Annotated[
        str,
        Meta(
            description="One sentence: what the work is for.",
            pattern=r"\S",
            max_length=GOAL_CHARS_MAX,
        ),
    ]
    workspace: Annotated[Workspace, Meta(description="Where the agent works.")]
    session: Annotated[
        Session | UnsetType, Meta(description="Do it in this session instead of a new one.")
    ] = UNSET
    context: Annotated[dict[str, Json], Meta(description="What the prompts speak of.")] = (
        msgspec.field(default_factory=dict[str, Json])
    )
    preferences: Wish = Wish()
    request_id: (
        Annotated[
            str,
            Meta(
                description="Names this call: sent twice, it is carried out once.",
                min_length=1,
                max_length=200,
            ),
        ]
        | UnsetType
    ) = UNSET


class GapListParameters(Parameters, frozen=True):
    session: Annotated[
        Session | UnsetType,
        Meta(description="Only of this session; otherwise of the newest hundred."),
    ] = UNSET


class GapParameters(SessionParameters, frozen=True):
    gap: Annotated[
        str, Meta(pattern=r"^gap_[0-9a-f]{10}$(?!\n)", description="The whole id of a gap.")
    ]


class OpenGap(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    run: RunId
    at_ms: int
    gap: GapRecorded


class GapList(msgspec.Struct, frozen=True):
    gaps: tuple[OpenGap, ...]


class GapCloseRequest(Body, frozen=True):
    how: Annotated[Reason, Meta(description="How it was settled.")]


class ClosedGap(msgspec.Struct, frozen=True):
    session: SessionId
    closed: GapId


class UnblockedRun(msgspec.Struct, frozen=True, rename="camel"):
    run: RunId
    goes_on_at: str


class ApprovalList(msgspec.Struct, frozen=True):
    approvals: tuple[PendingApproval, ...]


class ApprovalParameters(Parameters, frozen=True):
    approval: Annotated[
        str, Meta(pattern=r"^apr_[0-9a-f]{10}$(?!\n)", description="The whole id of an approval.")
    ]


class GrantRequest(Body, frozen=True):
    reason: Annotated[
        str, Meta(description="What the agent should know.", max_length=REASON_CHARS_MAX)
    ] = ""
    shown: Shown = ""


class DenialRequest(Body, frozen=True):
    reason: Annotated[Reason, Meta(description="What is wrong; the agent is told.")]
    shown: Shown = ""


def _loosens(wish: Wish) -> bool:
    return loosens(wish.autonomy, wish.risk_policy)


@rest_operation(
    "POST",
    "/runs",
    "Start a workflow and get its first step with a token",
    codes=(
        "unknown_workflow",
        "unknown_session",
        "context_unset",
        "workflow_unusable",
        "request_reused",
        "settings_broken",
    ),
    about="The same call within a minute, or with the same `requestId`, is answered with what"
    " the first one made. The run goes on over MCP, with the token.",
    loosens=lambda body: _loosens(body.preferences),
)
def _start_run(app: App, _: NoParameters, body: RunRequest) -> Answer | Refusal | Explanation:
    request = StartRequest(
        WorkflowId(body.workflow),
        goal=body.goal,
        caller=Caller(
            surface="rest",
            actor="user",
            workspace=Path(body.workspace),
            session=body.session or None,
            connection=Connection("rest"),
        ),
        context=body.context,
        preferences=body.preferences,
        request_id=body.request_id or None,
    )
    outcome = start(app, request)
    return outcome.answer if isinstance(outcome, RenderedAnswer) else outcome


@rest_operation(
    "GET",
    "/runs/{run}",
    "Show the status and the graph of a run",
    codes=("unknown_run", "session_unhealthy"),
)
def _show_run(app: App, at: RunParameters) -> RunDetail | NoSuchRun | UnhealthySession:
    outcome = user_actions.find_run(app.reader, at.run)
    if isinstance(outcome, NoSuchRun):
        return outcome
    head, stream = outcome
    assert stream.head is not None, "a stored stream has a head"
    graph = event_pages.read_if_sound(app, stream.session, lambda: load_run_graph(app, head.run))
    if isinstance(graph, UnhealthySession):
        return graph
    status = Observer(app).run_status(stream.session, stream.head, head)
    return RunDetail(stream.session, status, head, graph)


@rest_operation(
    "POST",
    "/runs/{run}/preferences",
    "Change the preferences of a run, from its next step on",
    codes=("unknown_run",),
    loosens=_loosens,
)
def _set_preferences(app: App, at: RunParameters, body: Wish) -> Preferences | NoSuchRun:
    return user_actions.set_preferences(app, at.run, body)


@rest_operation(
    "POST",
    "/runs/{run}/unblock",
    "Unblock a run that used up its attempts",
    codes=("unknown_run", "nothing_to_unblock"),
    loosens=True,
)
def _unblock_run(app: App, at: RunParameters) -> UnblockedRun | NoSuchRun | PlainRefusal:
    outcome = user_actions.unblock(app, at.run)
    return (
        UnblockedRun(outcome.run, outcome.pending_title or "")
        if isinstance(outcome, RunHead)
        else outcome
    )


@rest_operation(
    "GET",
    "/gaps",
    "List open gaps",
    codes=("unknown_session", "session_unhealthy"),
)
def _list_gaps(app: App, at: GapListParameters) -> GapList | NoSuchSession | UnhealthySession:
    sessions: list[SessionId] = []
    if at.session:
        session = find_session(app.reader, at.session)
        if isinstance(session, NoSuchSession):
            return session
        sessions.append(session)
    else:
        sessions += app.reader.sessions_with_gaps(limit=SESSIONS_MAX)
    open_gaps: list[OpenGap] = []
    for session in sessions:
        gaps = event_pages.read_if_sound(
            app, session, lambda s=session: list(user_actions.open_gaps(app, s))
        )
        if isinstance(gaps, UnhealthySession):
            return gaps
        open_gaps += [OpenGap(row.session, row.run, row.at_ms, row.gap) for row in gaps]
    return GapList(tuple(open_gaps))


@rest_operation(
    "POST",
    "/sessions/{session}/gaps/{gap}/resolve",
    "Close a gap with a reason",
    codes=("unknown_session", "unknown_gap"),
    loosens=True,
)
def _resolve_gap(
    app: App, at: GapParameters, body: GapCloseRequest
) -> ClosedGap | NoSuchSession | PlainRefusal:
    session = find_session(app.reader, at.session)
    if isinstance(session, NoSuchSession):
        return session
    outcome = user_actions.resolve_gap(app, session, GapId(at.gap), body.how)
    return outcome if isinstance(outcome, PlainRefusal) else ClosedGap(session, outcome.gap)


@rest_operation(
    "GET",
    "/waiting",
    "List the inbox, longest wait first",
    about="Approvals, steps at which the agent must ask, runs that were stopped after too many"
    " attempts, critical gaps, messages of agents to the operator, and agents that hold the"
    " same paths. Reading the list decides the approvals whose deadline has passed.",
    is_writing=True,
)
def _list_waiting(app: App, _: NoParameters) -> WaitingForUser:
    return list_waiting(app)


@rest_operation(
    "GET",
    "/approvals",
    "List the open approvals, oldest first",
    about="Reading the list decides the approvals whose deadline has passed.",
    is_writing=True,
)
def _list_approvals(app: App, _: NoParameters) -> ApprovalList:
    return ApprovalList(tuple(approvals.list_pending(app)))


@rest_operation(
    "POST",
    "/approvals/{approval}/grant",
    "Grant an approval",
    codes=("unknown_approval", "approval_answered", "approval_changed"),
    loosens=True,
)
def _grant_approval(
    app: App, at: ApprovalParameters, body: GrantRequest
) -> ApprovalAnswer | AnswerRefusal:
    verdict = user_answer("granted", body.reason, place=BY_REST)
    return approvals.answer(app, at.approval, verdict, shown=body.shown)


@rest_operation(
    "POST",
    "/approvals/{approval}/deny",
    "Deny an approval with a reason",
    codes=("unknown_approval", "approval_answered", "approval_changed"),
    loosens=True,
)
def _deny_approval(
    app: App, at: ApprovalParameters, body: DenialRequest
) -> ApprovalAnswer | AnswerRefusal:
    verdict = user_answer("denied", body.reason, place=BY_REST)
    return approvals.answer(app, at.approval, verdict, shown=body.shown)
