"""The pages of the console. A new capability is a new module here, and a line in each list."""

from starlette.routing import Route

from interlock.app.runs.waiting import count_waiting
from interlock.server.console import Console, NavItem
from interlock.server.pages import (
    absent,
    board,
    bundles,
    jobs,
    note,
    notes,
    session,
    session_actions,
    sessions,
    settings,
    takeover,
    waiting,
    workflow,
    workflow_sources,
    workflow_start,
    workflows,
)

NAV = (
    NavItem("Sessions", "/sessions", "s", "list"),
    NavItem("Live", "/live-work", "l", "pulse"),
    NavItem("Waiting for you", "/waiting", "a", "hand", count_waiting),
    NavItem("Board", "/board", "b", "board"),
    NavItem("Notes", "/notes", "n", "note"),
    NavItem("Workflows", "/workflows", "w", "flow"),
    NavItem("Triggers", "/triggers", "t", "bolt"),
    NavItem("Jobs", "/jobs", "j", "gear"),
    NavItem("Import", "/import", "i", "box"),
    NavItem("Settings", "/settings", "h", "dial"),
)


def routes(console: Console) -> list[Route]:
    return [
        *sessions.routes(console),
        *session.routes(console),
        *session_actions.routes(console),
        *waiting.routes(console),
        *board.routes(console),
        *takeover.routes(console),
        *bundles.routes(console),
        *notes.routes(console),
        *note.routes(console),
        *jobs.routes(console),
        *settings.routes(console),
        *absent.routes(console),
        *workflows.routes(console),
        *workflow_sources.routes(console),
        *workflow_start.routes(console),
        *workflow.routes(console),
    ]
