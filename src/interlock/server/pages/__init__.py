"""The pages of the console. A new capability is a new module here, and a line in each list."""

from starlette.routing import Route

from interlock.server.console import Console, Nav
from interlock.server.pages import session, sessions

NAV = (
    Nav("Sessions", "/sessions", "s", "list"),
    Nav("Live", "/live-work", "l", "pulse"),
    Nav("Approvals", "/approvals", "a", "check"),
    Nav("Board", "/board", "b", "board"),
    Nav("Notes", "/notes", "n", "note"),
    Nav("Workflows", "/workflows", "w", "flow"),
    Nav("Triggers", "/triggers", "t", "bolt"),
    Nav("Jobs", "/jobs", "j", "gear"),
    Nav("Import", "/import", "i", "box"),
    Nav("Settings", "/settings", "h", "dial"),
)


def routes(console: Console) -> list[Route]:
    return [*sessions.routes(console), *session.routes(console)]
