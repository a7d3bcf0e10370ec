"""Sources: where workflow files are read from besides the usual places.

Nothing is fetched unless somebody presses a button that says so.
"""

from starlette.routing import Route

from interlock.app.catalogue.sources import (
    SourceExplanation,
    SourceFailure,
    SourceRow,
    SyncOutcome,
    add_source,
    explain_source_refusal,
    list_sources,
    remove_source,
    sync_sources,
)
from interlock.server.console import Console, Page, PageRedirect, PageRequest

PAGE = "/workflows/sources"


def routes(console: Console) -> list[Route]:
    return [
        console.page(PAGE, sources),
        console.background_action(f"{PAGE}/add", add),
        console.background_action(f"{PAGE}/fetch", fetch),
        console.background_action(f"{PAGE}/remove", remove),
    ]


def sources(asked: PageRequest) -> Page:
    return _page(asked, None)


def add(asked: PageRequest) -> PageRedirect | Page:
    try:
        added = add_source(
            asked.app.home,
            asked.word("location").strip(),
            name=_typed_value(asked, "name"),
            ref=_typed_value(asked, "ref"),
            path=_typed_value(asked, "path"),
            clock=asked.app.clock,
        )
    except SourceFailure as failure:
        return _page(asked, SourceExplanation("source_failed", str(failure), failure.hint))
    if not isinstance(added, SourceRow):
        return _page(asked, explain_source_refusal(added))
    return PageRedirect(PAGE, message_key="source_added")


def fetch(asked: PageRequest) -> PageRedirect | Page:
    try:
        outcomes = sync_sources(asked.app.home, asked.word("name"), asked.app.clock)
    except SourceFailure as failure:
        return _page(asked, SourceExplanation("source_failed", str(failure), failure.hint))
    if not isinstance(outcomes, tuple):
        return _page(asked, explain_source_refusal(outcomes))
    for outcome in outcomes:
        if outcome.error:
            return _page(asked, _failure_words(outcome, outcome.error))
    return PageRedirect(PAGE, message_key="source_fetched")


def remove(asked: PageRequest) -> PageRedirect | Page:
    try:
        removed = remove_source(asked.app.home, asked.word("name"))
    except SourceFailure as failure:
        return _page(asked, SourceExplanation("source_failed", str(failure), failure.hint))
    if not isinstance(removed, SourceRow):
        return _page(asked, explain_source_refusal(removed))
    return PageRedirect(PAGE, message_key="source_removed")


def _page(asked: PageRequest, wrong: SourceExplanation | None) -> Page:
    is_adding = asked.path.endswith("/add")
    typed = {name: asked.word(name) if is_adding else "" for name in _FIELDS}
    return Page(
        "workflow_sources.html",
        "Sources of workflows",
        {"sources": list_sources(asked.app.home), "wrong": wrong, "typed": typed},
        status=409 if wrong else 200,
    )


_FIELDS = ("location", "name", "ref", "path")


def _typed_value(asked: PageRequest, name: str) -> str | None:
    return asked.word(name).strip() or None


def _failure_words(outcome: SyncOutcome, error: str) -> SourceExplanation:
    kept = " What was fetched before stays in use." if outcome.commit else ""
    return SourceExplanation(
        "source_failed", f"{outcome.name}: {error}", f"{outcome.hint or ''}{kept}"
    )
