"""Approve a tool call where the gate would ask, in a client in which nobody can be asked."""

from pathlib import Path

import msgspec

from interlock.agents.hosts.hook_payload import HookPayload
from interlock.agents.hosts.host import Host
from interlock.app.callers.session_record import session_of
from interlock.app.context import open_app
from interlock.app.failures import StoreFailure
from interlock.app.sessions.session_approvals import permit_call
from interlock.core.gate.decide import GateDecision
from interlock.core.protocol.gated_session import Conversation
from interlock.core.refusal import PlainRefusal
from interlock.core.session.session_approvals import (
    TITLE_CHARS_MAX,
    tool_call_wish,
)
from interlock.core.strict_json import as_object
from interlock.core.workflow.operators import clip


def decide_by_approval(
    home: Path, host: Host, payload: HookPayload, decision: GateDecision
) -> GateDecision:
    """Allow the call if the user has granted exactly it; else ask for that, and say how.

    Where the store fails the decision stays as it is, and denies.
    """
    title = clip(f"{host.title} calls `{payload.tool_name}`. {decision.reason}", TITLE_CHARS_MAX)
    tool_input = as_object(payload.tool_input) or {"input": payload.tool_input}
    wish = tool_call_wish(payload.tool_name, tool_input, payload.cwd, title=title)
    try:
        app = open_app(home)
        try:
            session = session_of(app, Conversation(host.name, payload.session_id))
            outcome = permit_call(app, session, wish) if session else None
        finally:
            app.close()
    except StoreFailure:
        return decision
    if outcome is None:
        return decision
    if isinstance(outcome, PlainRefusal):
        return _with_hint(decision, f"{outcome.explain().error}.")
    approval, who = outcome
    if who is not None:
        opened = f"{approval}: granted by {who or 'the user'}"
        return msgspec.structs.replace(decision, answer="allow", opened=opened)
    return _with_hint(
        decision,
        f"Or the user approves exactly this call ({approval}): with `/approve {approval}` typed"
        f" here, with `interlock approvals grant {approval}` in a terminal, or in the console."
        " Then make the same call again.",
    )


def _with_hint(decision: GateDecision, hint: str) -> GateDecision:
    return msgspec.structs.replace(decision, remedy=f"{decision.remedy} {hint}")
