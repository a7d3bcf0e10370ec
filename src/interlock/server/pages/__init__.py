"""The pages of the console. A new capability is a new module here, and a line in each list."""

from starlette.routing import Route

from interlock.app.runs.approvals import count_pending as approvals_waiting
from interlock.server.console import Console, Nav
from interlock.server.pages import (
    absent,
    approvals,
    bundles,
    note,
    notes,
    session,
    session_actions,
    sessions,
    settings,
    workflow,
    workflow_sources,
    workflow_start,
    workflows,
)

NAV = (
    Nav("Sessions", "/sessions", "s", "list"),
    Nav("Live", "/live-work", "l", "pulse"),
    Nav("Approvals", "/approvals", "a", "check", approvals_waiting),
    Nav("Board", "/board", "b", "board"),
    Nav("Notes", "/notes", "n", "note"),
    Nav("Workflows", "/workflows", "w", "flow"),
    Nav("Triggers", "/triggers", "t", "bolt"),
    Nav("Jobs", "/jobs", "j", "gear"),
    Nav("Import", "/import", "i", "box"),
    Nav("Settings", "/settings", "h", "dial"),
)


def routes(console: Console) -> list[Route]:
    return [
        *sessions.routes(console),
        *session.routes(console),
        *session_actions.routes(console),
        *approvals.routes(console),
        *bundles.routes(console),
        *notes.routes(console),
        *note.routes(console),
        *settings.routes(console),
        *absent.routes(console),
        *workflows.routes(console),
        *workflow_sources.routes(console),
        *workflow_start.routes(console),
        *workflow.routes(console),
    ]
