"""The pages of the console. A new capability is a new module here, and a line in each list."""

from starlette.routing import Route

from interlock.app.triggers.trigger_book import TriggerBook
from interlock.server.console import Console, NavItem
from interlock.server.pages import (
    automations,
    board,
    briefing,
    bundles,
    home,
    inbox,
    jobs,
    note,
    notes,
    palette,
    session,
    session_actions,
    session_compare,
    session_graph,
    session_turns,
    session_work,
    sessions,
    settings,
    takeover,
    workflow,
    workflow_sources,
    workflow_start,
    workflows,
)

NAV = (
    NavItem("Now", "/now", "h", "pulse"),
    NavItem("Inbox", "/inbox", "i", "hand", counts_waiting=True),
    NavItem("Sessions", "/sessions", "s", "list"),
    NavItem("Board", "/board", "b", "board"),
    NavItem("Notes", "/notes", "n", "note"),
    NavItem("Workflows", "/workflows", "w", "flow"),
    NavItem("Automations", "/automations", "a", "bolt"),
    NavItem("Jobs", "/jobs", "j", "gear"),
    NavItem("Import", "/import", "m", "box", "foot"),
    NavItem("Settings", "/settings", "e", "dial", "foot"),
)


def routes(console: Console, book: TriggerBook) -> list[Route]:
    return [
        *home.routes(console),
        *inbox.routes(console),
        *sessions.routes(console),
        *palette.routes(console),
        *session.routes(console),
        *session_graph.routes(console),
        *session_compare.routes(console),
        *session_turns.routes(console),
        *session_work.routes(console),
        *session_actions.routes(console),
        *board.routes(console),
        *takeover.routes(console),
        *bundles.routes(console),
        *notes.routes(console),
        *note.routes(console),
        *briefing.routes(console),
        *automations.routes(console, book),
        *jobs.routes(console),
        *settings.routes(console),
        *workflows.routes(console),
        *workflow_sources.routes(console),
        *workflow_start.routes(console),
        *workflow.routes(console),
    ]
