"""The briefing of a project: the text that a new session would be told at its start."""

from functools import partial

import msgspec
from starlette.routing import Route

from interlock.agents.hosts.registry import NAMES, all_hosts, host_named
from interlock.app.notes.all_projects import known_project
from interlock.app.protocol.bootstrap import CONFINED_SHELL, preview_bootstrap
from interlock.core.explanation import Explanation
from interlock.core.notes.budget import Briefing, estimate_tokens
from interlock.server.console import Console, Page, PageRequest
from interlock.server.pages.note_addresses import briefing_address, notes_address, notes_stream


class LeftOutPart(msgspec.Struct, frozen=True):
    """The items of a part of the briefing that are not in its text, by the reason."""

    heading: str
    without_room: int
    unfetched: int


def routes(console: Console) -> list[Route]:
    return [console.page("/notes/briefing", briefing)]


def briefing(request: PageRequest) -> Page | Explanation:
    project = request.word("in")
    known = known_project(request.app, project)
    if isinstance(known, Explanation):
        return known
    client = request.word("client")
    host = host_named(client if client in NAMES else NAMES[0])
    stream = notes_stream(request, known)
    preview = preview_bootstrap(request.app, known, host)
    is_told = isinstance(preview, Briefing)
    facts = {
        "project": project,
        "host": host,
        "clients": [
            (one.title, briefing_address(project, client=one.name), one is host)
            for one in all_hosts()
        ],
        "briefing": preview if is_told else None,
        "problem": None if is_told else preview.explain(),
        "tokens": estimate_tokens(preview.text) if is_told else 0,
        "bytes": len(preview.text.encode("utf-8", "replace")) if is_told else 0,
        "left_out": _left_out(preview) if is_told else [],
        "confined_shell": CONFINED_SHELL,
        "listed": partial(notes_address, project),
    }
    return Page("briefing.html", "What a new session would be told", facts, stream=stream)


def _left_out(preview: Briefing) -> list[LeftOutPart]:
    unfetched = dict(preview.unfetched)
    return [
        LeftOutPart(heading, count - unfetched.get(heading, 0), unfetched.get(heading, 0))
        for heading, count in preview.left_out
    ]
