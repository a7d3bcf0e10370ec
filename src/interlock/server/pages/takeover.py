"""Taking over from an agent: first what that means, then it is done, and what has come of it."""

import msgspec
from starlette.routing import Route

from interlock.app.coordination.boards import ProjectBoard, find_board
from interlock.app.coordination.takeovers import TakenOverIdentity, TakeoverWish, take_over
from interlock.app.runs.board_agents import BoardAgent, list_agents
from interlock.core.coordination.refusals import (
    AlreadyOver,
    SnapshotFailed,
    StillThere,
    UnknownIdentity,
    UnknownProject,
)
from interlock.core.coordination.registration import similar_identities
from interlock.core.explanation import Explanation
from interlock.server.console import Console, Page, PageRequest
from interlock.server.pages.board import BOARD

TAKEOVER = f"{BOARD}/takeover"
WHY_CHARS_MAX = 500


class TakeoverRetry(msgspec.Struct, frozen=True):
    """The reason why it was not done yet."""

    error: str = ""
    why: str = ""
    """The reason that was typed already."""
    can_go_without: bool = False
    """Whether it could be done without saving the agent's work."""


def routes(console: Console) -> list[Route]:
    # Saving the work of somebody else may take long; agents do not wait for it.
    return [
        console.page(TAKEOVER, confirm),
        console.background_action(
            TAKEOVER, take, loosens=lambda request: request.word("force") == "yes"
        ),
    ]


def confirm(request: PageRequest) -> Page | Explanation:
    return _confirm_page(request, TakeoverRetry())


def take(request: PageRequest) -> Page | Explanation:
    found = find_board(request.app, request.word("project"))
    if isinstance(found, UnknownProject):
        return found.explain()
    why = request.word("why").strip()[:WHY_CHARS_MAX]
    wish = TakeoverWish(
        request.word("identity"),
        why,
        is_forced=request.word("force") == "yes",
        needs_snapshot=request.word("without_snapshot") != "yes",
    )
    outcome = take_over(request.app, found.desk, None, wish)
    if isinstance(outcome, TakenOverIdentity):
        facts = {"outcome": outcome, "at": found, "agent": None}
        return Page("takeover.html", f"Taken over from {outcome.display}", facts)
    if isinstance(outcome, StillThere | SnapshotFailed):
        error = f"{outcome.explain().error}. Nothing was changed."
        retry = TakeoverRetry(error, why, isinstance(outcome, SnapshotFailed))
        return _confirm_page(request, retry, status=409)
    return outcome.explain()


def _confirm_page(
    request: PageRequest, retry: TakeoverRetry, *, status: int = 200
) -> Page | Explanation:
    found = find_board(request.app, request.word("project"))
    if isinstance(found, UnknownProject):
        return found.explain()
    agent = _find_agent(request, found)
    if isinstance(agent, Explanation):
        return agent
    facts = {"agent": agent, "at": found, "retry": retry, "outcome": None, "why_max": WHY_CHARS_MAX}
    return Page("takeover.html", f"Take over from {agent.display}?", facts, status=status)


def _find_agent(request: PageRequest, at: ProjectBoard) -> BoardAgent | Explanation:
    name = request.word("identity")
    for agent in list_agents(request.app, at.board):
        if agent.identity.id == name and agent.work:
            return StillThere(name, agent.display, None, 0, agent.session, agent.work).explain()
        if agent.identity.id == name:
            return agent
    ended = at.board.ended.get(name)
    if ended and ended.value.end:
        end = ended.value.end
        return AlreadyOver(name, end, at.board.display(end.by) if end.by else "").explain()
    return UnknownIdentity(name, similar_identities(at.board, name)).explain()
