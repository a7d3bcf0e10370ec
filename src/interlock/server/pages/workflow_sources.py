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
from interlock.server.console import Asked, Console, GoTo, Shown

PAGE = "/workflows/sources"


def routes(console: Console) -> list[Route]:
    return [
        console.page(PAGE, sources),
        console.errand(f"{PAGE}/add", add),
        console.errand(f"{PAGE}/fetch", fetch),
        console.errand(f"{PAGE}/remove", remove),
    ]


def sources(asked: Asked) -> Shown:
    return _page(asked, None)


def add(asked: Asked) -> GoTo | Shown:
    try:
        added = add_source(
            asked.app.home,
            asked.word("location").strip(),
            name=_typed(asked, "name"),
            ref=_typed(asked, "ref"),
            path=_typed(asked, "path"),
            clock=asked.app.clock,
        )
    except SourceFailure as failure:
        return _page(asked, SourceExplanation("source_failed", str(failure), failure.hint))
    if not isinstance(added, SourceRow):
        return _page(asked, explain_source_refusal(added))
    return GoTo(PAGE, said="source_added")


def fetch(asked: Asked) -> GoTo | Shown:
    try:
        outcomes = sync_sources(asked.app.home, asked.word("name"), asked.app.clock)
    except SourceFailure as failure:
        return _page(asked, SourceExplanation("source_failed", str(failure), failure.hint))
    if not isinstance(outcomes, tuple):
        return _page(asked, explain_source_refusal(outcomes))
    for outcome in outcomes:
        if outcome.error:
            return _page(asked, _failed(outcome, outcome.error))
    return GoTo(PAGE, said="source_fetched")


def remove(asked: Asked) -> GoTo | Shown:
    try:
        removed = remove_source(asked.app.home, asked.word("name"))
    except SourceFailure as failure:
        return _page(asked, SourceExplanation("source_failed", str(failure), failure.hint))
    if not isinstance(removed, SourceRow):
        return _page(asked, explain_source_refusal(removed))
    return GoTo(PAGE, said="source_removed")


def _page(asked: Asked, wrong: SourceExplanation | None) -> Shown:
    is_adding = asked.path.endswith("/add")
    typed = {name: asked.word(name) if is_adding else "" for name in _FIELDS}
    return Shown(
        "workflow_sources.html",
        "Sources of workflows",
        {"sources": list_sources(asked.app.home), "wrong": wrong, "typed": typed},
        status=409 if wrong else 200,
    )


_FIELDS = ("location", "name", "ref", "path")


def _typed(asked: Asked, name: str) -> str | None:
    return asked.word(name).strip() or None


def _failed(outcome: SyncOutcome, error: str) -> SourceExplanation:
    kept = " What was fetched before stays in use." if outcome.commit else ""
    return SourceExplanation(
        "source_failed", f"{outcome.name}: {error}", f"{outcome.hint or ''}{kept}"
    )
