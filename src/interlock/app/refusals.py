"""Why a use case says no. Refusals are answers: shown, counted, compared."""

from typing import TypeAlias

import msgspec

from interlock.core.ids import ApprovalId, RunId, SessionId, WorkflowId
from interlock.core.protocol import gated_session
from interlock.core.session import decide
from interlock.core.session.chain import Health
from interlock.core.tokens import TokenFault
from interlock.workspace.projects.catalogue import BrokenEntry


class NoSuchWorkflow(msgspec.Struct, frozen=True):
    workflow: WorkflowId
    available: tuple[WorkflowId, ...]
    broken: tuple[BrokenEntry, ...]
    """Files that do not validate: the one asked for may be among them."""


class BadToken(msgspec.Struct, frozen=True):
    fault: TokenFault


class NodeGone(msgspec.Struct, frozen=True):
    """The token is ours, but its session is no longer in the store."""


class NoSuchNode(msgspec.Struct, frozen=True):
    requested: str
    """Empty where no node could be asked for, since there is no run."""
    session: SessionId


class UnhealthySession(msgspec.Struct, frozen=True):
    session: SessionId
    health: Health


class NoSuchSession(msgspec.Struct, frozen=True):
    requested: str
    candidates: tuple[SessionId, ...]
    """Several sessions begin like that."""
    variable: str = ""
    """Of the environment, if that named the session and not the call."""


class OpenSession(msgspec.Struct, frozen=True):
    """A session that may be meant, with what tells it from others."""

    session: SessionId
    mode: str = ""
    task: str = ""
    title: str = ""
    hosts: tuple[str, ...] = ()


class SeveralSessions(msgspec.Struct, frozen=True):
    """Nothing says which of them is the caller's."""

    candidates: tuple[OpenSession, ...]


class GoalMissing(msgspec.Struct, frozen=True):
    """A run without a goal could not be found again."""


class NotesRequired(msgspec.Struct, frozen=True):
    """A checkpoint without a token is found again by its notes, so it needs some."""


class RequestReused(msgspec.Struct, frozen=True):
    """The request id was used before, for another call."""


class NoSuchRun(msgspec.Struct, frozen=True):
    requested: str
    candidates: tuple[RunId, ...]


class BundleBroken(msgspec.Struct, frozen=True):
    """The document is not what was exported."""

    part: str
    reason: str


class NoSuchGap(msgspec.Struct, frozen=True):
    """No such gap is open."""

    requested: str


class NothingToUnblock(msgspec.Struct, frozen=True):
    run: RunId


class NoSuchApproval(msgspec.Struct, frozen=True):
    """No approval waits under that id."""

    requested: str
    candidates: tuple[ApprovalId, ...]


class ApprovalAnswered(msgspec.Struct, frozen=True):
    """Somebody else was faster, or the deadline passed."""

    approval: ApprovalId
    verdict: str
    by: str


class ProjectNotOptedIn(msgspec.Struct, frozen=True):
    """No gate watches over this project."""

    path: str


class NoSuchDirectory(msgspec.Struct, frozen=True):
    path: str


Refusal: TypeAlias = (
    NoSuchWorkflow
    | BadToken
    | NodeGone
    | UnhealthySession
    | NoSuchSession
    | SeveralSessions
    | GoalMissing
    | NoSuchDirectory
    | NotesRequired
    | RequestReused
    | NoSuchRun
    | NoSuchGap
    | BundleBroken
    | NothingToUnblock
    | NoSuchApproval
    | ApprovalAnswered
    | ProjectNotOptedIn
    | NoSuchNode
    | decide.RunRefusal
    | gated_session.AttendanceRefusal
)
