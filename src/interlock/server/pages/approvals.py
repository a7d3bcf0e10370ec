"""Approvals: what runs wait for, and the answer to what was shown."""

import msgspec
from starlette.routing import Route

from interlock.app.explain import explain
from interlock.app.explanation import Explanation
from interlock.app.runs import approvals as use
from interlock.app.runs.approvals import ApprovalAnswer, PendingApproval
from interlock.core.session.approve import REASON_CHARS_MAX, ApprovalVerdict
from interlock.server.console import Console, Page, PageRedirect, PageRequest


class ApprovalCard(msgspec.Struct, frozen=True):
    waiting: PendingApproval
    shown: str
    """Signs all of the card: the answer must be to this."""


class AnswerRetry(msgspec.Struct, frozen=True):
    """Why a card is shown once more, instead of being answered."""

    approval: str
    why: str
    reason: str
    """What was typed already."""


def routes(console: Console) -> list[Route]:
    return [
        console.page("/approvals", approvals),
        console.action("/approvals/{approval}", answer),
    ]


def approvals(asked: PageRequest) -> Page:
    return _approvals_page(asked, None)


def answer(asked: PageRequest) -> PageRedirect | Page | Explanation:
    found = use.find_approval(asked.app, asked.word("session"), asked.params["approval"])
    if not isinstance(found, PendingApproval):
        return explain(found)
    reason, verdict = asked.word("reason").strip(), asked.word("verdict")
    if not asked.secret.is_content_signature(asked.word("shown"), "approval", _content(found)):
        why = "This is not what you were shown before. Nothing was answered: look at it again."
        return _approvals_page(asked, AnswerRetry(found.approval, why, reason), status=409)
    match verdict:
        case "granted":
            done = use.answer(asked.app, found.approval, ApprovalVerdict("granted", "user", reason))
        case "denied" if reason:
            done = use.answer(asked.app, found.approval, ApprovalVerdict("denied", "user", reason))
        case "denied":
            why = "Say why, so that the agent knows what to do differently. Nothing was answered."
            return _approvals_page(asked, AnswerRetry(found.approval, why, ""), status=400)
        case _:
            why = "Choose one of the buttons. Nothing was answered."
            return _approvals_page(asked, AnswerRetry(found.approval, why, reason), status=400)
    return (
        PageRedirect("/approvals", verdict) if isinstance(done, ApprovalAnswer) else explain(done)
    )


def _approvals_page(asked: PageRequest, again: AnswerRetry | None, *, status: int = 200) -> Page:
    waiting = use.list_pending(asked.app)
    cards = [
        ApprovalCard(one, asked.secret.content_signature("approval", _content(one)))
        for one in waiting
    ]
    facts = {"cards": cards, "again": again, "reason_max": REASON_CHARS_MAX}
    # What came of a form is not asked for again by itself: it would be another request.
    return Page("approvals.html", "Approvals", facts, live=None if again else "", status=status)


def _content(one: PendingApproval) -> str:
    """Everything on the card."""
    return msgspec.json.encode(one).decode()
