"""`interlock note search`, `context`, `recent`, `graph`, `check`: look through the notes."""

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
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    print_json,
    print_lines,
    print_message,
    print_table,
)
from interlock.core.notes.note import NoteStatus
from interlock.core.views.counting import pluralise, time_ago

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
    words: tuple[str, ...], *, limit: int, explain: bool, as_json: bool, **filters: Any
) -> None:
    """Search the notes"""
    app, notes = open_project_notes()
    folder, since = filters.pop("folder").strip("/"), filters.pop("since")
    prefix = f"{folder}/" if folder else ""
    note_filter = NoteFilter(**filters, since_ms=_since_ms(app, since), prefix=prefix)
    query = NoteQuery(" ".join(words), note_filter, limit, is_explained=explain)
    result = result_or_stop(search(app, notes, query))
    if as_json:
        print_json(result)
        return
    if result.is_wordless:
        print_lines("Nothing was found: only letters and digits can be searched for.")
    elif not result.hits:
        print_lines("Nothing was found.")
    elif result.is_loose:
        print_lines("No note has all the words; these have some of them.", "")
    for hit in result.hits:
        print_lines(f"{hit.note.path}  {hit.note.title}")
        if hit.excerpt:
            print_lines(f"    {hit.excerpt}")
        if hit.why:
            print_lines(f"    {hit.score:.2f}: {hit.why.words}")
    if result.has_more:
        print_message(f"More than {limit}; {_how_to_see_more(limit)}.")


@note.command("context")
@click.argument("name")
@depth_option
@since_option
@limit_option
@as_json_option
def context_command(name: str, *, depth: int, since: str, limit: int, as_json: bool) -> None:
    """Show what a note says and what lies around it. NAME may be a pattern: 'specs/*'"""
    app, notes = open_project_notes()
    from_ms = _since_ms(app, since)
    name = resolve_note_name(notes, name)
    outcome = build_context(app, notes, name, depth=depth, since_ms=from_ms, limit=limit)
    context = result_or_stop(outcome)
    if as_json:
        print_json(context)
        return
    for entry in context.notes:
        via = f"  ({entry.distance} away, by {entry.via})" if entry.distance else ""
        print_lines(f"{entry.note.path}  {entry.note.title}{via}")
        for observation in entry.observations:
            print_lines(f"    {observation}")
        for link in entry.links:
            arrow = "<-" if link.is_backward else "->"
            print_lines(
                f"    {arrow} {link.kind} {link.to}{'' if link.is_written else ' (not written)'}"
            )
        if entry.links_left_out:
            more = pluralise(entry.links_left_out, "more link")
            print_lines(f"    {more}; `interlock note read NAME` shows them")
    if context.left_out:
        print_message(f"{context.left_out} more; {_how_to_see_more(limit)}.")


@note.command("recent")
@click.option("--since", default="7d", help="7d, 24h, 2 weeks, or a date")
@click.option("--type", "types", multiple=True, help="Only of this type")
@limit_option
@as_json_option
def recent_command(*, since: str, types: tuple[str, ...], limit: int, as_json: bool) -> None:
    """List the notes that were changed last"""
    app, notes = open_project_notes()
    note_filter = NoteFilter(types=types, since_ms=_since_ms(app, since))
    recent = result_or_stop(recent_notes(app, notes, note_filter, limit=limit))
    if as_json:
        print_json(recent)
        return
    if not recent.notes and not _report_if_empty(notes):
        not_changed = f"was changed in that time ({since}); --since looks further back"
        print_lines(f"No note {not_changed if since else 'fits'}.")
    now_ms = app.clock.now_ms()
    print_table([(time_ago(n.modified_ms, now_ms), n.type, n.path, n.title) for n in recent.notes])


@note.command("graph")
@click.argument("name", required=False, default="")
@depth_option
@click.option("--mermaid", "as_mermaid", is_flag=True, help="As a Mermaid diagram")
@as_json_option
def graph_command(name: str, *, depth: int, as_mermaid: bool, as_json: bool) -> None:
    """Draw how notes are linked: around one of them, or the newest"""
    app, notes = open_project_notes()
    graph = result_or_stop(note_graph(app, notes, resolve_note_name(notes, name), depth=depth))
    if as_json:
        print_json(graph)
        return
    if as_mermaid:
        print_lines(*_mermaid_lines(graph))
    elif not graph.edges:
        if not _report_if_empty(notes):
            print_lines("No note links to another.")
    else:
        print_table([(edge.source, edge.kind, edge.target) for edge in graph.edges])
        for target in graph.unwritten:
            print_lines(f"not written: {target}")
    for count, items in (
        (graph.left_out, "notes"),
        (graph.edges_left_out, "links"),
        (graph.unwritten_left_out, "notes that are not written"),
    ):
        if count:
            print_message(f"{count} more {items} are left out")


@note.command("check")
@click.option("--all", "shows_all", is_flag=True, help="Also each hint on quality")
@as_json_option
def check_command(*, shows_all: bool, as_json: bool) -> None:
    """Check names, numbers, statuses, links and frontmatter of all notes"""
    app, notes = open_project_notes()
    report = result_or_stop(check_notes(app, notes))
    serious = [finding for finding in report.findings if finding.severity != "hint"]
    if as_json:
        print_json(report)
    else:
        listed = [
            finding for finding in report.findings if shows_all or not finding.is_about_quality
        ]
        for finding in listed:
            location = f"{finding.path}:{finding.line}" if finding.line else finding.path
            print_lines(f"{location}: {finding.severity}: {finding.what}; {finding.instead}")
        for path in report.unreadable:
            print_lines(f"{path or notes.folder.root}: error: cannot be looked at")
        for line in _quality_summary([] if shows_all else report.findings):
            print_lines(line)
        hints = len(report.findings) - len(serious)
        totals = (
            pluralise(report.notes, "note"),
            f"{len(serious)} to mend",
            pluralise(hints, "hint"),
        )
        print_message(", ".join(totals))
    if serious or report.unreadable:
        raise Stop(EXIT_REFUSED)


def _report_if_empty(notes: OpenedNotes) -> bool:
    """Whether there is no note at all; if so, print that."""
    is_empty = not notes.index.counts().notes
    if is_empty:
        print_lines("There are no notes yet; `interlock note write TITLE` makes one.")
    return is_empty


def _how_to_see_more(limit: int) -> str:
    return "--limit shows more" if limit < LIMIT_MAX else "ask for less to see the rest"


def _quality_summary(findings: Sequence[NoteFinding]) -> Iterator[str]:
    """One line for all hints on quality: three for nearly every note would hide a dead link."""
    counts = Counter(finding.rule for finding in findings if finding.is_about_quality)
    if counts:
        kinds = ", ".join(f"{rule} in {count}" for rule, count in sorted(counts.items()))
        yield f"hint: too few or too many {kinds} notes; --all lists them"


def _since_ms(app: App, text: str) -> int:
    if not text:
        return 0
    since_ms = parse_since(text, app.clock.now_ms())
    if since_ms is None:
        raise click.BadParameter(f"`{text}` is no span of time; write 7d, 24h, 2 weeks or a date")
    return since_ms


# Within quotes, brackets are text. A quote would end a label, and a pipe the label of an arrow.
_UNQUOTED = str.maketrans({'"': "'", "|": "/"})


def _mermaid_lines(graph: NoteGraph) -> Iterator[str]:
    names = [*(summary.path for summary in graph.notes), *graph.unwritten]
    numbers = {name: f"n{number}" for number, name in enumerate(names)}
    titles = {summary.path: summary.title for summary in graph.notes}
    yield "graph LR"
    for name, number in numbers.items():
        label = titles.get(name, name).translate(_UNQUOTED)
        yield f'  {number}["{label}"]' if name in titles else f'  {number}("{label}")'
    for edge in graph.edges:
        kind = edge.kind.translate(_UNQUOTED)
        yield f'  {numbers[edge.source]} -->|"{kind}"| {numbers[edge.target]}'
