"""The requirements of a session's start that are open when a tool call would change something."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.agents.hosts.hook_payload import HookPayload
from interlock.agents.hosts.host import Host
from interlock.app.callers.session_record import renew_start, session_of
from interlock.app.context import open_app
from interlock.app.gate.tool_calls import GateVerdict
from interlock.core.gate.decide import GateDecision
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.requirements import CheckedRequirement


class Judge(Protocol):
    def __call__(self, *, is_started: bool) -> GateVerdict: ...


def judge_again(
    home: Path, host: Host, payload: HookPayload, verdict: GateVerdict, judge: Judge
) -> GateVerdict:
    """Judge a call again with fresh requirements: a branch may have been created since.

    A session without records is recorded now, because it is about to change
    something.
    """
    app = open_app(home)
    try:
        session = session_of(app, Conversation(host.name, payload.session_id))
        if session is None:
            return verdict
        still_open = renew_start(app, session)
    finally:
        app.close()
    verdict = judge(is_started=not still_open)
    return msgspec.structs.replace(verdict, decision=_name_open(verdict.decision, still_open))


def _name_open(decision: GateDecision, still_open: Sequence[CheckedRequirement]) -> GateDecision:
    """Return the decision with the open requirements, and how to meet each of them."""
    if decision.rule != "protocol.start":
        return decision
    named = "; ".join(f"`{one.id}`: {one.step} ({one.evidence})" for one in still_open)
    reason = f"The start of the session is not complete. Open: {named}"
    remedies = " ".join(dict.fromkeys(one.remedy for one in still_open))
    waiver = f'`interlock session waive {still_open[0].id} --reason "…"`'
    remedy = f"{remedies} The user can waive it in a terminal: {waiver}."
    if decision.answer == "deny":
        return msgspec.structs.replace(decision, reason=reason, remedy=remedy)
    once = tuple(f"protocol.start:{one.id}" for one in still_open)
    return msgspec.structs.replace(decision, reason=f"{reason}. {remedies}".rstrip("."), once=once)
