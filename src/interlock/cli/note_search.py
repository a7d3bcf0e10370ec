"""`interlock note search`, `context`, `recent`, `graph`, `check`: look through the notes."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import click

from interlock.app.context import App
from interlock.app.notes.check import check_notes
from interlock.app.notes.neighbourhood import DEPTH_MAX, build_context, note_graph
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.results import NoteFinding, NoteGraph
from interlock.app.notes.search import LIMIT_MAX, NoteFilter, NoteQuery, recent_notes, search
from interlock.app.notes.timeframes import parse_since
from interlock.cli.note import (
    as_json_option,
    note,
    open_project_notes,
    resolve_note_name,
    result_or_stop,
)
from interlock.cli.terminal import EXIT_REFUSED, Stop, print_json, print_table
from interlock.core.notes.note import NoteStatus
from interlock.core.views.ages import time_ago
from interlock.core.views.counting import pluralise

since_option = click.option("--since", default="", help="7d, 24h, 2 weeks, or a date")
limit_option = click.option(
    "--limit", type=click.IntRange(1, LIMIT_MAX), default=10, help="How many at most"
)
depth_option = click.option(
    "--depth", type=click.IntRange(0, DEPTH_MAX), default=1, help="How many links away"
)


@note.command("search")
@click.argument("words", nargs=-1)
@click.option("--type", "types", multiple=True, help="Only of this type")
@click.option("--tag", "tags", multiple=True, help="Only with this tag")
@click.option(
    "--status",
    "statuses",
    type=click.Choice(get_args(NoteStatus)),
    multiple=True,
    help="Only with this status",
)
@click.option("--category", default="", help="Only with an observation of this category")
@click.option("--folder", default="", help="Only below this folder")
@since_option
@limit_option
@click.option("--explain", is_flag=True, help="Say why each is where it is")
@as_json_option
def search_command(
    words: tuple[str, ...], *, limit: int, explain: bool, as_json: bool, **narrowed: Any
) -> None:
    """Search the notes"""
    app, notes = open_project_notes(as_json=as_json)
    folder, since = narrowed.pop("folder").strip("/"), narrowed.pop("since")
    prefix = f"{folder}/" if folder else ""
    wanted = NoteFilter(**narrowed, since_ms=_since_ms(app, since), prefix=prefix)
    query = NoteQuery(" ".join(words), wanted, limit, is_explained=explain)
    found = result_or_stop(search(app, notes, query), as_json=as_json)
    if as_json:
        print_json(found)
        return
    if found.is_wordless:
        print("Nothing was found: only letters and digits can be searched for.")
    elif not found.hits:
        print("Nothing was found.")
    elif found.is_loose:
        print("No note has all the words; these have some of them.\n")
    for hit in found.hits:
        print(f"{hit.note.path}  {hit.note.title}")
        if hit.excerpt:
            print(f"    {hit.excerpt}")
        if hit.why:
            print(f"    {hit.score:.2f}: {hit.why.words}")
    if found.has_more:
        print(f"More than {limit}; {_how_to_see_more(limit)}.", file=sys.stderr)


@note.command("context")
@click.argument("name")
@depth_option
@since_option
@limit_option
@as_json_option
def context_command(name: str, *, depth: int, since: str, limit: int, as_json: bool) -> None:
    """Show what a note says and what lies around it. NAME may be a pattern: 'specs/*'"""
    app, notes = open_project_notes(as_json=as_json)
    from_ms = _since_ms(app, since)
    name = resolve_note_name(notes, name)
    around = build_context(app, notes, name, depth=depth, since_ms=from_ms, limit=limit)
    found = result_or_stop(around, as_json=as_json)
    if as_json:
        print_json(found)
        return
    for one in found.notes:
        via = f"  ({one.distance} away, by {one.via})" if one.distance else ""
        print(f"{one.note.path}  {one.note.title}{via}")
        for said in one.observations:
            print(f"    {said}")
        for link in one.links:
            arrow = "<-" if link.is_backward else "->"
            print(f"    {arrow} {link.kind} {link.to}{'' if link.is_written else ' (not written)'}")
        if one.links_left_out:
            more = pluralise(one.links_left_out, "more link")
            print(f"    {more}; `interlock note read` shows them")
    if found.left_out:
        print(f"{found.left_out} more; {_how_to_see_more(limit)}.", file=sys.stderr)


@note.command("recent")
@click.option("--since", default="7d", help="7d, 24h, 2 weeks, or a date")
@click.option("--type", "types", multiple=True, help="Only of this type")
@limit_option
@as_json_option
def recent_command(*, since: str, types: tuple[str, ...], limit: int, as_json: bool) -> None:
    """List the notes that were changed last"""
    app, notes = open_project_notes(as_json=as_json)
    wanted = NoteFilter(types=types, since_ms=_since_ms(app, since))
    found = result_or_stop(recent_notes(app, notes, wanted, limit=limit), as_json=as_json)
    if as_json:
        print_json(found)
        return
    if not found.notes and not _report_if_empty(notes):
        narrowed = f"was changed in that time ({since}); --since looks further back"
        print(f"No note {narrowed if since else 'fits'}.")
    now_ms = app.clock.now_ms()
    print_table([(time_ago(n.modified_ms, now_ms), n.type, n.path, n.title) for n in found.notes])


@note.command("graph")
@click.argument("name", required=False, default="")
@depth_option
@click.option("--mermaid", "as_mermaid", is_flag=True, help="As a Mermaid diagram")
@as_json_option
def graph_command(name: str, *, depth: int, as_mermaid: bool, as_json: bool) -> None:
    """Draw how notes are linked: around one of them, or the newest"""
    app, notes = open_project_notes(as_json=as_json)
    found = result_or_stop(
        note_graph(app, notes, resolve_note_name(notes, name), depth=depth), as_json=as_json
    )
    if as_json:
        print_json(found)
        return
    if as_mermaid:
        print("\n".join(_mermaid_lines(found)))
    elif not found.edges:
        if not _report_if_empty(notes):
            print("No note links to another.")
    else:
        print_table([(edge.source, edge.kind, edge.target) for edge in found.edges])
        for target in found.unwritten:
            print(f"not written: {target}")
    for count, what in (
        (found.left_out, "notes"),
        (found.edges_left_out, "links"),
        (found.unwritten_left_out, "notes that are not written"),
    ):
        if count:
            print(f"{count} more {what} are left out", file=sys.stderr)


@note.command("check")
@click.option("--all", "shows_all", is_flag=True, help="Also each hint on quality")
@as_json_option
def check_command(*, shows_all: bool, as_json: bool) -> None:
    """Check names, numbers, statuses, links and frontmatter of all notes"""
    app, notes = open_project_notes(as_json=as_json)
    found = result_or_stop(check_notes(app, notes), as_json=as_json)
    grave = [finding for finding in found.findings if finding.severity != "hint"]
    if as_json:
        print_json(found)
    else:
        shown = [one for one in found.findings if shows_all or not one.is_about_quality]
        for finding in shown:
            place = f"{finding.path}:{finding.line}" if finding.line else finding.path
            print(f"{place}: {finding.severity}: {finding.what}; {finding.instead}")
        for path in found.unreadable:
            print(f"{path or notes.folder.root}: error: cannot be looked at")
        for line in _quality_summary([] if shows_all else found.findings):
            print(line)
        hints = len(found.findings) - len(grave)
        said = (pluralise(found.notes, "note"), f"{len(grave)} to mend", pluralise(hints, "hint"))
        print(", ".join(said), file=sys.stderr)
    if grave or found.unreadable:
        raise Stop(EXIT_REFUSED)


def _report_if_empty(notes: OpenedNotes) -> bool:
    """Whether there is no note at all; then that is said."""
    is_empty = not notes.index.counts().notes
    if is_empty:
        print("There are no notes yet; `interlock note write` makes one.")
    return is_empty


def _how_to_see_more(limit: int) -> str:
    return "--limit shows more" if limit < LIMIT_MAX else "ask for less to see the rest"


def _quality_summary(findings: Sequence[NoteFinding]) -> Iterator[str]:
    """One line instead of three for nearly every note, in which a dead link would not be seen."""
    counts = Counter(one.rule for one in findings if one.is_about_quality)
    if counts:
        kinds = ", ".join(f"{rule} in {count}" for rule, count in sorted(counts.items()))
        yield f"hint: too few or too many {kinds} notes; --all lists them"


def _since_ms(app: App, text: str) -> int:
    if not text:
        return 0
    found = parse_since(text, app.clock.now_ms())
    if found is None:
        raise click.BadParameter(f"`{text}` is no span of time; write 7d, 24h, 2 weeks or a date")
    return found


# Within quotes brackets are text; quotes would end them, and a pipe the word at an arrow.
_UNQUOTED = str.maketrans({'"': "'", "|": "/"})


def _mermaid_lines(found: NoteGraph) -> Iterator[str]:
    names = [*(one.path for one in found.notes), *found.unwritten]
    numbers = {name: f"n{number}" for number, name in enumerate(names)}
    titles = {one.path: one.title for one in found.notes}
    yield "graph LR"
    for name, number in numbers.items():
        label = titles.get(name, name).translate(_UNQUOTED)
        yield f'  {number}["{label}"]' if name in titles else f'  {number}("{label}")'
    for edge in found.edges:
        kind = edge.kind.translate(_UNQUOTED)
        yield f'  {numbers[edge.source]} -->|"{kind}"| {numbers[edge.target]}'
