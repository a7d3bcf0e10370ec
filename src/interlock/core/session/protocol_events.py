"""The events of the session protocol: its end, and the requirements that a person has waived."""

from typing import TypeAlias

from interlock.core.session.event_struct import EventStruct


class ProtocolEndRequested(EventStruct, frozen=True, omit_defaults=True, tag="end_requested"):
    """Somebody wants to end the session. A job does it, on the machine that has the checkout."""

    job: str
    summary: str = ""
    """What the agent or the user says was done."""


class ProtocolEndRefused(EventStruct, frozen=True, tag="end_refused"):
    """The job found that the session cannot end yet."""

    job: str
    blockers: tuple[str, ...]


class ProtocolEnded(EventStruct, frozen=True, tag="protocol_ended"):
    """The evidence of how the session ended. Its logbook is written from it, then committed."""

    job: str
    evidence: dict[str, str]


class SessionCompleted(EventStruct, frozen=True, omit_defaults=True, tag="session_completed"):
    """Nothing is left to do for the session."""

    job: str
    commit: str = ""
    """The commit that was made of the session's own files; empty if none was."""
    commit_fault: str = ""
    """Why none was made, though the project asks for it."""


class RequirementWaived(EventStruct, frozen=True, tag="requirement_waived"):
    """A person waives a requirement of the session's start or end."""

    requirement: str
    reason: str
    who: str
    """The person and the surface, as in `ana, in a terminal`."""


ProtocolEvent: TypeAlias = (
    ProtocolEndRequested | ProtocolEndRefused | ProtocolEnded | SessionCompleted | RequirementWaived
)


def completion_key(job: str) -> str:
    return f"end-complete:{job}"


def refusal_key(job: str) -> str:
    """Of a job that could not end the session. It may be retried, and complete it yet."""
    return f"end-refused:{job}"
