"""Inbox: everything that waits for a person in one queue, the answers, and what was answered."""

import msgspec
from starlette.routing import Route

from interlock.app.callers.user_answer import user_answer
from interlock.app.refusals import ApprovalChanged
from interlock.app.runs import approvals as use
from interlock.app.runs.approvals import ApprovalAnswer, PendingApproval
from interlock.app.runs.inbox import list_cards, list_past_answers
from interlock.app.runs.waiting import ParkedWork
from interlock.core.explanation import Explanation
from interlock.core.session.approve import REASON_CHARS_MAX
from interlock.core.views.status import STANDSTILLS
from interlock.server.console import Console, Page, PageRedirect, PageRequest
from interlock.server.pages.session_place import INBOX
from interlock.server.pages.work_view import view_work

ANSWERS_MAX, ALL_ANSWERS_MAX = 20, 200


class AnswerRetry(msgspec.Struct, frozen=True):
    """The reason why a card is shown once more, instead of being answered."""

    approval: str
    why: str
    reason: str
    """The reason that was typed already."""


def routes(console: Console) -> list[Route]:
    return [
        console.page(INBOX, inbox),
        console.action("/approvals/{approval}", answer, loosens=True),
    ]


def inbox(request: PageRequest) -> Page:
    return _inbox_page(request, None)


def answer(request: PageRequest) -> PageRedirect | Page | Explanation:
    approval = use.find_approval(request.app, request.word("session"), request.params["approval"])
    if not isinstance(approval, PendingApproval):
        return approval.explain()
    reason, verdict = request.word("reason").strip(), request.word("verdict")
    if verdict not in ("granted", "denied"):
        why = "Choose one of the buttons. Nothing was answered."
        return _inbox_page(request, AnswerRetry(approval.approval, why, reason), status=400)
    if verdict == "denied" and not reason:
        why = "Say why, so that the agent knows what to do differently. Nothing was answered."
        return _inbox_page(request, AnswerRetry(approval.approval, why, ""), status=400)
    given = user_answer(verdict, reason, place="in the console")
    # The form has a digest; one without any answers something that nobody was shown.
    shown = request.word("shown") or "nothing"
    done = use.answer(request.app, approval.approval, given, shown=shown)
    if isinstance(done, ApprovalChanged):
        why = "This is not what you were shown before. Nothing was answered: look at it again."
        return _inbox_page(request, AnswerRetry(approval.approval, why, reason), status=409)
    return PageRedirect(INBOX, verdict) if isinstance(done, ApprovalAnswer) else done.explain()


def _inbox_page(request: PageRequest, again: AnswerRetry | None, *, status: int = 200) -> Page:
    shows_all = request.query.get("answered") == "all"
    limit = ALL_ANSWERS_MAX if shows_all else ANSWERS_MAX
    cards = list_cards(request.app)
    answers = list_past_answers(request.app, limit=limit + 1)
    facts = {
        "cards": cards,
        "works": {
            one.session: view_work(request.app, one.session, one.work)
            for card in cards
            if isinstance(one := card.content, ParkedWork)
        },
        "answers": answers[:limit],
        "more_answers": len(answers) > limit and not shows_all,
        "advice": STANDSTILLS,
        "again": again,
        "reason_max": REASON_CHARS_MAX,
    }
    # What came of a form is not asked for again by itself: it would be another request.
    return Page("inbox.html", "Inbox", facts, live=None if again else "", status=status)
