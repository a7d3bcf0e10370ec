"""Sources: where workflow files are read from besides the usual places.

Nothing is fetched unless somebody presses a button that says so.
"""

from starlette.routing import Route

from interlock.app.catalogue.sources import (
    SourceFailure,
    SourceRow,
    SyncOutcome,
    add_source,
    list_sources,
    remove_source,
    sync_sources,
)
from interlock.core.explanation import Explanation
from interlock.server.console import Console, Page, PageRedirect, PageRequest

PAGE = "/workflows/sources"


def routes(console: Console) -> list[Route]:
    return [
        console.page(PAGE, sources),
        console.background_action(f"{PAGE}/add", add, loosens=True),
        console.background_action(f"{PAGE}/fetch", fetch, loosens=True),
        console.background_action(f"{PAGE}/remove", remove),
    ]


def sources(request: PageRequest) -> Page:
    return _page(request, None)


def add(request: PageRequest) -> PageRedirect | Page:
    try:
        added = add_source(
            request.app.home,
            request.word("location").strip(),
            name=_typed_value(request, "name"),
            ref=_typed_value(request, "ref"),
            path=_typed_value(request, "path"),
            clock=request.app.clock,
        )
    except SourceFailure as failure:
        return _page(request, Explanation("source_failed", str(failure), failure.hint))
    if not isinstance(added, SourceRow):
        return _page(request, added.explain())
    return PageRedirect(PAGE, message_key="source_added")


def fetch(request: PageRequest) -> PageRedirect | Page:
    try:
        outcomes = sync_sources(request.app.home, request.word("name"), request.app.clock)
    except SourceFailure as failure:
        return _page(request, Explanation("source_failed", str(failure), failure.hint))
    if not isinstance(outcomes, tuple):
        return _page(request, outcomes.explain())
    for outcome in outcomes:
        if outcome.error:
            return _page(request, _failure_words(outcome, outcome.error))
    return PageRedirect(PAGE, message_key="source_fetched")


def remove(request: PageRequest) -> PageRedirect | Page:
    try:
        removed = remove_source(request.app.home, request.word("name"))
    except SourceFailure as failure:
        return _page(request, Explanation("source_failed", str(failure), failure.hint))
    if not isinstance(removed, SourceRow):
        return _page(request, removed.explain())
    return PageRedirect(PAGE, message_key="source_removed")


def _page(request: PageRequest, wrong: Explanation | None) -> Page:
    is_adding = request.path.endswith("/add")
    typed = {name: request.word(name) if is_adding else "" for name in _FIELDS}
    return Page(
        "workflow_sources.html",
        "Sources of workflows",
        {"sources": list_sources(request.app.home), "wrong": wrong, "typed": typed},
        status=409 if wrong else 200,
    )


_FIELDS = ("location", "name", "ref", "path")


def _typed_value(request: PageRequest, name: str) -> str | None:
    return request.word(name).strip() or None


def _failure_words(outcome: SyncOutcome, error: str) -> Explanation:
    kept = " What was fetched before stays in use." if outcome.commit else ""
    return Explanation("source_failed", f"{outcome.name}: {error}", f"{outcome.hint or ''}{kept}")
