"""Now, the home page: what needs a person, and which sessions run, are idle and have finished."""

from starlette.routing import Route

from interlock.app.runs.agent_activity import list_agents_now
from interlock.app.runs.inbox import list_cards
from interlock.app.unattended.journal_views import unattended_lines
from interlock.app.unattended.status import driver_status
from interlock.core.views.activity import IDLE_AT_MOST_MS
from interlock.core.views.status import IDLE_AFTER_MS
from interlock.server.console import Console, Page, PageRequest

CARDS_MAX = 5


def routes(console: Console) -> list[Route]:
    return [console.page("/now", home)]


def home(request: PageRequest) -> Page:
    cards, driver = list_cards(request.app), driver_status(request.app)
    statuses = [work.state.status for work in driver.work]
    facts = {
        "cards": cards[:CARDS_MAX],
        "card_count": len(cards),
        "agents": list_agents_now(request.app, unattended_lines(request.app, driver)),
        "driver": driver,
        "driven": statuses.count("working"),
        "queued": statuses.count("queued"),
        "idle_minutes": IDLE_AFTER_MS // 60_000,
        "idle_days": IDLE_AT_MOST_MS // 86_400_000,
    }
    return Page("now.html", "Now", facts, live="", follows_work=True)
