"""Pages for what this version does not have: what is true now, and what to do instead."""

from functools import partial

import msgspec
from starlette.routing import Route

from interlock.server.console import Console, Page, PageRequest


class AbsentFeature(msgspec.Struct, frozen=True):
    path: str
    name: str
    is_so: str
    """The fact, in a sentence that is the title."""
    meaning: str
    instead: str
    href: str
    link: str
    command: str = ""


ABSENT_FEATURES = (
    AbsentFeature(
        "/live-work",
        "Live",
        "Nothing runs unattended",
        "Agents work while you drive them in their own client. This version starts none by itself.",
        "What they hand in shows up while they work:",
        "/sessions?status=open",
        "Open sessions",
    ),
    AbsentFeature(
        "/triggers",
        "Triggers",
        "Nothing starts a workflow by itself",
        "This version listens to no issue, no message and no clock.",
        "A workflow starts when you ask your agent to start it. Those that it can start:",
        "/workflows",
        "Workflows",
        "interlock workflow list",
    ),
)


def routes(console: Console) -> list[Route]:
    return [console.page(absent.path, partial(_absent_page, absent)) for absent in ABSENT_FEATURES]


def _absent_page(absent: AbsentFeature, _: PageRequest) -> Page:
    return Page("absent.html", absent.name, {"absent": absent})
