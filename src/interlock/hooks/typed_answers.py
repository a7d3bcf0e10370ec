"""Answer an approval because `/approve` or `/deny` was typed into a client."""

from collections.abc import Sequence
from pathlib import Path

from interlock.agents.hosts.hook_payload import HookPayload
from interlock.agents.hosts.host import Host
from interlock.app.callers.agent_detection import evidence_against_typing
from interlock.app.callers.user_answer import user_answer
from interlock.app.context import open_app
from interlock.app.runs import approvals
from interlock.app.runs.approvals import ApprovalAnswer, PendingApproval
from interlock.hooks.typed_commands import TypedAnswer

_NEXT = {
    "tool_call": "Make the same call again.",
    "request": "Go on with what was approved, and with nothing else.",
    "step": "Go on with the token that you hold.",
}


def answer_typed_approval(home: Path, host: Host, payload: HookPayload, typed: TypedAnswer) -> str:
    """Answer the approval that was named, or the only one of this session.

    Returns the message for the model and the user, with all that was approved.
    """
    app = open_app(home)
    try:
        if evidence := evidence_against_typing(host, home, app.environment, app.process):
            return (
                f"Nothing was answered: an approval wants a person, and {evidence}. The user can"
                " run `interlock approvals list` in a terminal, or answer in the console."
            )
        approval = typed.approval
        if not approval:
            session = app.reader.session_of_conversation(host.name, payload.session_id)
            pending = [one for one in approvals.list_pending(app) if one.session == session]
            if len(pending) != 1:
                return _list_pending(pending)
            approval = pending[0].approval
        verdict = user_answer(typed.verdict, typed.reason, place=f"in {host.title}'s chat")
        outcome = approvals.answer(app, approval, verdict)
    finally:
        app.close()
    if not isinstance(outcome, ApprovalAnswer):
        explanation = outcome.explain()
        return f"Nothing was answered. {explanation.error}. {explanation.hint}"
    text = f"The user has {outcome.verdict} approval {outcome.approval}: {outcome.question}"
    content = f"\n{outcome.content}" if outcome.content else ""
    reason = f"\nReason: {typed.reason}" if typed.reason else ""
    following = _NEXT[outcome.subject] if outcome.verdict == "granted" else "Do not go on with it."
    return f"{text}{content}{reason}\n{following}"


def _list_pending(pending: Sequence[PendingApproval]) -> str:
    if not pending:
        return "Nothing of this session waits for an approval."
    lines = "\n".join(f"`/approve {one.approval}`: {one.question}" for one in pending)
    return f"Nothing was answered: several approvals of this session wait.\n{lines}"
