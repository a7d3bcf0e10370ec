"""The events of an agent that has others work for it."""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import BlobRef, DelegationId
from interlock.core.session.event_struct import EventStruct
from interlock.core.session.verdict_outcomes import VerdictOutcome

AgentStatus = Literal["completed", "blocked", "failed"]
DecisionType = Literal["architectural", "technical", "process", "scope"]


class AgentInvoked(EventStruct, frozen=True, omit_defaults=True, tag="agent_invoked"):
    """Work was handed to a specialist agent. A hand-off that waited for it is taken up."""

    delegation: DelegationId
    agent: str
    prompt: str
    context: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    artifacts: tuple[str, ...] = ()
    reason: str = ""
    by: Literal["agent", "hook", "review"] = "agent"
    """A reviewer judges the whole: it takes up no hand-off."""


class VerdictGiven(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    outcome: VerdictOutcome
    confidence: int | None
    """In percent; None if the agent gave none."""
    reasoning: str
    conditions: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()


class AgentCompleted(EventStruct, frozen=True, omit_defaults=True, tag="agent_completed"):
    """A specialist agent is done. Naming another one makes a hand-off that waits for it."""

    delegation: DelegationId
    status: AgentStatus
    summary: str
    artifacts: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    handoff_to: str = ""
    handoff_reason: str = ""
    preserved_context: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    verdict: VerdictGiven | None = None


class DecisionRecorded(EventStruct, frozen=True, tag="decision_recorded"):
    decision: str
    type: DecisionType
    description: str
    rationale: str
    decided_by: str


class DecisionJudged(EventStruct, frozen=True, tag="decision_judged"):
    """An agent approves of a decision, or rejects it."""

    decision: str
    agent: str
    is_approved: bool


class HistoryCompacted(EventStruct, frozen=True, tag="history_compacted"):
    """Older delegations leave the state; they can still be read."""

    delegations: tuple[DelegationId, ...]
    history: BlobRef
    """All about these delegations."""
    note: str
    """The name of the note that shows them."""
    agents_summary: str


class HandoffReceived(EventStruct, frozen=True, omit_defaults=True, tag="handoff_received"):
    """A hand-off that an earlier session has left, or a file, waits in this one now."""

    source: str
    """The session that has left it, or the name of the file."""
    from_agent: str
    to_agent: str
    reason: str
    context: str
    created_at: str
    artifacts: tuple[str, ...] = ()
    preserved_context: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])


class HandoffPassedOn(EventStruct, frozen=True, tag="handoff_passed_on"):
    """Another session takes up a hand-off that waited in this one."""

    handoff: str
    """The digest of the hand-off."""
    to_agent: str
    session: str


DelegationEvent: TypeAlias = (
    AgentInvoked
    | AgentCompleted
    | DecisionRecorded
    | DecisionJudged
    | HistoryCompacted
    | HandoffReceived
    | HandoffPassedOn
)
