"""Compare: two branches of a run side by side, from where they part."""

from starlette.routing import Route

from interlock.app.refusals import NoSuchNode
from interlock.app.sessions.branch_comparison import compare_branches
from interlock.core.explanation import Explanation
from interlock.server.console import Console, Page, PageRequest
from interlock.server.pages.session import view_session
from interlock.server.pages.session_place import place_in_view


def routes(console: Console) -> list[Route]:
    return [console.page("/sessions/{session}/compare", compare)]


def compare(request: PageRequest) -> Page | Explanation:
    """Query: `run`, `left` and `right`, which are nodes; without `left`, where the run stands."""
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    outcome = compare_branches(
        request.app, viewed, left=request.word("left"), right=request.word("right")
    )
    if isinstance(outcome, NoSuchNode):
        return outcome.explain()
    facts = {
        "viewed": viewed,
        "run": viewed.run,
        "place": place_in_view(request, viewed.session, "path"),
        "found": outcome,
        "swapped": request.without(left=outcome.right.id, right=outcome.left.id),
        "only": request.word("only"),
        "only_url": request.without("only")
        if request.word("only")
        else request.without(only="differences"),
    }
    return Page("session_compare.html", "Compare branches", facts, live=viewed.session)
