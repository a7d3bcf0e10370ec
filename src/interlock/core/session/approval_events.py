"""The events of approvals that belong to a session and not to one of its runs.

Such an approval is about a tool call that the gate would ask about, or about something that the
agent has put to the user. The head of a session has those that are open (`OpenApproval`).
"""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.ids import ApprovalId
from interlock.core.session.event_struct import EventStruct

Subject = Literal["tool_call", "request"]


class SessionApprovalRequested(
    EventStruct, frozen=True, omit_defaults=True, tag="session_approval_requested"
):
    approval: ApprovalId
    subject: Subject
    title: str
    content: str
    """Everything that is to be approved, as the user is shown it."""
    digest: str
    """Of a tool call: of all that makes another call the same one."""
    deadline_ms: int | None = None


class SessionApprovalResolved(
    EventStruct, frozen=True, omit_defaults=True, tag="session_approval_resolved"
):
    approval: ApprovalId
    verdict: Literal["granted", "denied"]
    by: Literal["user", "timeout"]
    reason: str = ""
    who: str = ""
    """The person and the place of the answer, as in `ana, in a terminal`."""


class SessionApprovalUsed(EventStruct, frozen=True, tag="session_approval_used"):
    """A tool call has passed by a grant, which is worth nothing from then on."""

    approval: ApprovalId
    call: str
    """A name of the call, by which it is known which of two at the same moment has passed."""


SessionApprovalEvent: TypeAlias = (
    SessionApprovalRequested | SessionApprovalResolved | SessionApprovalUsed
)


class OpenApproval(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One that waits for an answer, or a granted tool call that was not made yet."""

    approval: ApprovalId
    subject: Subject
    digest: str
    deadline_ms: int | None = None
    is_granted: bool = False

    def is_overdue(self, at_ms: int) -> bool:
        return self.deadline_ms is not None and at_ms >= self.deadline_ms


def approval_used_key(approval: ApprovalId) -> str:
    return f"approval-used:{approval}"


def open_approvals_after(
    approvals: tuple[OpenApproval, ...], event: SessionApprovalEvent, at_ms: int
) -> tuple[OpenApproval, ...]:
    """Return the open ones after one more event; grants that nobody has used in time are gone."""
    others = tuple(
        one
        for one in approvals
        if one.approval != event.approval and not (one.is_granted and one.is_overdue(at_ms))
    )
    match event:
        case SessionApprovalRequested():
            added = OpenApproval(event.approval, event.subject, event.digest, event.deadline_ms)
            return (*others, added)
        case SessionApprovalResolved(verdict="granted"):
            granted = (
                msgspec.structs.replace(one, is_granted=True)
                for one in approvals
                if one.approval == event.approval and one.subject == "tool_call"
            )
            return (*others, *granted)
        case _:
            return others
