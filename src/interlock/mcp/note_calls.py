"""The implementation of the tools of the toolset `notes`.

Each call turns its arguments into a request of `app.notes`, runs it on the notes of the project
that the workspace belongs to, and returns the result as a structure and as text. A refusal is
returned with a call that gets further: most often `read_note`, for the newest version of a note.
Calls that write carry a request key, so that a repeated call is carried out once.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from interlock.app.callers.caller import Caller
from interlock.app.callers.request_key import RequestKey, request_key
from interlock.app.context import App
from interlock.app.notes import neighbourhood
from interlock.app.notes.edit import EditRequest, NoteChange, apply_note_edit, resolve_edit
from interlock.app.notes.inspect import read_note_text
from interlock.app.notes.move_or_delete import remove_note, rename_note
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.refusals import (
    EmptyEdit,
    NoSuchNote,
    NoteChanged,
    NoteExists,
    NotePathTaken,
    SeveralNotes,
    SimilarNoteExists,
    UnexpectedEditArgument,
    VersionRequired,
)
from interlock.app.notes.results import (
    ContextNote,
    NoteChangeResult,
    NoteContext,
    NoteSearchResult,
    NoteSummary,
)
from interlock.app.notes.search import NoteFilter, NoteQuery, search
from interlock.app.notes.timeframes import parse_since
from interlock.app.notes.write import NoteDraft, write_draft
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.notes.edit_refusals import (
    AmbiguousSection,
    EmptySearchText,
    MatchCountMismatch,
    NoSuchSection,
    TextNotFound,
)
from interlock.core.refusal import Refusal
from interlock.core.views.counting import pluralise, time_ago
from interlock.mcp.note_tools import (
    ContextArguments,
    DeleteArguments,
    EditArguments,
    ReadArguments,
    SearchArguments,
    WriteArguments,
    read_first_call,
)
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.tool import Tool

Outcome = TypeVar("Outcome")


def _with_notes(
    app: App,
    caller: Caller,
    tool: Tool[Any],
    arguments: Any,
    use: Callable[[OpenedNotes], Outcome | Refusal],
) -> Outcome | ToolResult:
    """The result of `use` on the notes of the workspace's project; a refusal as a tool result."""
    notes = open_notes(app, caller.workspace)
    outcome = use(notes) if isinstance(notes, OpenedNotes) else notes
    return _refuse(outcome, tool, arguments) if isinstance(outcome, Refusal) else outcome


def _refuse(refusal: Refusal, tool: Tool[Any], arguments: msgspec.Struct) -> ToolResult:
    """The refusal, with a call that gets further."""
    sent_arguments = _given_arguments(arguments)
    call, alternatives = None, tuple[SuggestedCall, ...]()
    match refusal:
        case NoteExists() | NotePathTaken() | NoteChanged() | VersionRequired():
            call = read_first_call({**sent_arguments, "identifier": refusal.path})
        case SimilarNoteExists():
            call = read_first_call({**sent_arguments, "identifier": refusal.path})
            alternatives = (tool.corrected_call({**sent_arguments, "separate": True}),)
        case SeveralNotes():
            alternatives = tuple(
                tool.corrected_call({**sent_arguments, "identifier": path})
                for path in refusal.paths
            )
        case NoSuchNote():
            # In the same project: the server may well run in another.
            workspace = {k: v for k, v in sent_arguments.items() if k == "workspacePath"}
            call = SuggestedCall("search_notes", {"query": refusal.identifier, **workspace})
            alternatives = tuple(
                tool.corrected_call({**sent_arguments, "identifier": name})
                for name in refusal.similar
            )
        case UnexpectedEditArgument() | EmptyEdit():
            call = tool.corrected_call(sent_arguments)
        case EmptySearchText() | TextNotFound() | NoSuchSection() | AmbiguousSection():
            call = read_first_call(sent_arguments)
        case MatchCountMismatch():
            call = read_first_call(sent_arguments)
            alternatives = (
                tool.corrected_call({**sent_arguments, "expectedReplacements": refusal.found}),
            )
        case _:
            pass
    return refusal_result(refusal.explain(), call, next_calls=alternatives)


def _given_arguments(arguments: msgspec.Struct) -> dict[str, Json]:
    """The arguments that were sent, without those that equal their default."""
    sent: dict[str, Json] = msgspec.to_builtins(arguments)
    defaults = {
        field.encode_name: field.default for field in msgspec.structs.fields(type(arguments))
    }
    return {name: value for name, value in sent.items() if value != defaults[name]}


def write_note(app: App, caller: Caller, tool: Tool[Any], arguments: WriteArguments) -> ToolResult:
    draft = NoteDraft(
        arguments.title,
        arguments.content,
        arguments.folder,
        arguments.type or "",
        arguments.tags or (),
        arguments.metadata or {},
        overwrite=arguments.overwrite,
        version=arguments.version,
        is_separate=arguments.separate,
    )
    return _change_notes(
        app,
        caller,
        tool,
        arguments,
        lambda notes, call: write_draft(app, caller, notes, draft, call),
    )


def read_note(app: App, caller: Caller, tool: Tool[Any], arguments: ReadArguments) -> ToolResult:
    note = _with_notes(
        app,
        caller,
        tool,
        arguments,
        lambda notes: read_note_text(app, notes, arguments.identifier, page=arguments.page),
    )
    if isinstance(note, ToolResult):
        return note
    head = f"{note.type} {note.path} ({note.permalink}): {note.title}, version {note.version}"
    if note.pages > 1:
        head += f", page {note.page} of {note.pages}"
    if note.linked_from:
        head += f", linked from {', '.join(note.linked_from)}"
    head += "".join(f"\nhint: {hint}" for hint in note.hints)
    return ToolResult(note, f"{head}\n\n{note.text}")


def edit_note(app: App, caller: Caller, tool: Tool[Any], arguments: EditArguments) -> ToolResult:
    edit = resolve_edit(
        EditRequest(
            arguments.operation,
            arguments.content or "",
            arguments.section or "",
            arguments.find_text or "",
            arguments.expected_replacements,
            arguments.replace_subsections,
        )
    )
    if isinstance(edit, UnexpectedEditArgument):
        return _refuse(edit, tool, arguments)
    destination = arguments.to
    if destination and edit is None and not arguments.metadata:
        return _change_notes(
            app,
            caller,
            tool,
            arguments,
            lambda notes, call: rename_note(app, notes, arguments.identifier, destination, call),
        )
    change = NoteChange(edit, arguments.metadata or {}, arguments.version)
    return _change_notes(
        app,
        caller,
        tool,
        arguments,
        lambda notes, call: apply_note_edit(
            app, notes, arguments.identifier, change, call, caller=caller
        ),
    )


def delete_note(
    app: App, caller: Caller, tool: Tool[Any], arguments: DeleteArguments
) -> ToolResult:
    name, version = arguments.identifier, arguments.version
    return _change_notes(
        app,
        caller,
        tool,
        arguments,
        lambda notes, call: remove_note(app, notes, name, version, call),
    )


def _change_notes(
    app: App,
    caller: Caller,
    tool: Tool[Any],
    arguments: Any,
    change: Callable[[OpenedNotes, RequestKey], NoteChangeResult | Refusal],
) -> ToolResult:
    # As text: the values in `metadata` need not have a canonical form.
    sent = msgspec.json.encode(arguments).decode()
    call = request_key(tool.name, caller.connection.client, sent, arguments.request_id)
    outcome = _with_notes(app, caller, tool, arguments, lambda notes: change(notes, call))
    if isinstance(outcome, ToolResult):
        return outcome
    version = f", version {outcome.version}" if outcome.version else ""
    lines = [f"{outcome.result}: {outcome.path} ({outcome.permalink}){version}"]
    return ToolResult(outcome, "\n".join([*lines, *(f"hint: {hint}" for hint in outcome.hints)]))


def search_notes(
    app: App, caller: Caller, tool: Tool[Any], arguments: SearchArguments
) -> ToolResult:
    since = _since_ms(app, arguments.timeframe)
    if since is None:
        return _refuse_timeframe(tool, arguments)
    note_filter = NoteFilter(
        types=arguments.types or (),
        statuses=(arguments.status,) if arguments.status else (),
        tags=arguments.tags or (),
        category=arguments.category or "",
        since_ms=since,
        prefix=f"{arguments.folder.strip('/')}/" if arguments.folder else "",
    )
    query = NoteQuery(
        arguments.query or "", note_filter, arguments.limit, arguments.page, arguments.explain
    )
    result = _with_notes(app, caller, tool, arguments, lambda notes: search(app, notes, query))
    if isinstance(result, ToolResult):
        return result
    return ToolResult(result, _hits_text(result, app.clock.now_ms()))


def build_context(
    app: App, caller: Caller, tool: Tool[Any], arguments: ContextArguments
) -> ToolResult:
    since = _since_ms(app, arguments.timeframe)
    if since is None:
        return _refuse_timeframe(tool, arguments)
    context = _with_notes(
        app,
        caller,
        tool,
        arguments,
        lambda notes: neighbourhood.build_context(
            app,
            notes,
            arguments.identifier,
            depth=arguments.depth,
            since_ms=since,
            limit=arguments.limit,
        ),
    )
    return (
        context if isinstance(context, ToolResult) else ToolResult(context, _context_text(context))
    )


def _since_ms(app: App, timeframe: str | None) -> int | None:
    return parse_since(timeframe, app.clock.now_ms()) if timeframe else 0


def _refuse_timeframe(tool: Tool[Any], arguments: Any) -> ToolResult:
    message = f"`{arguments.timeframe}` says no span of time"
    hint = "Write it like `7d`, `24h`, `2 weeks` or `2026-11-01`."
    return refusal_result(
        Explanation("invalid_arguments", message, hint),
        tool.corrected_call({**_given_arguments(arguments), "timeframe": "7d"}),
    )


def _hits_text(result: NoteSearchResult, now_ms: int) -> str:
    lines = [f"{pluralise(len(result.hits), 'note')}{', and more' if result.has_more else ''}."]
    if result.is_wordless:
        lines.append("Only letters and digits can be searched for.")
    elif not result.hits:
        lines.append("Nothing was found; try other words, or no query for the newest notes.")
    elif result.is_loose:
        lines.append("No note has all the words; these have some of them.")
    for number, hit in enumerate(result.hits, start=1):
        lines += ["", f"{number}. {_note_line(hit.note, now_ms)}"]
        lines += [f"   {hit.excerpt}"] if hit.excerpt else []
        lines += [f"   {hit.score:.2f}: {hit.why.words}"] if hit.why else []
    return "\n".join([*lines, *_pending_lines(result.pending)])


def _context_text(context: NoteContext) -> str:
    lines: list[str] = []
    for entry in context.notes:
        lines += [*_context_note_lines(entry), ""]
    if context.left_out:
        lines.append(f"{pluralise(context.left_out, 'more note')} near; ask with a higher limit.")
    return "\n".join([*lines, *_pending_lines(context.pending)])


def _context_note_lines(entry: ContextNote) -> list[str]:
    note = entry.note
    via = f", {pluralise(entry.distance, 'link')} away by {entry.via}" if entry.distance else ""
    head = f"{note.title} [{note.path}] {note.type} {note.status}".rstrip()
    lines = [f"## {head}{via}", *(f"- {observation}" for observation in entry.observations)]
    for link in entry.links:
        arrow = "<-" if link.is_backward else "->"
        missing = "" if link.is_written else " (not written yet)"
        lines.append(f"- {arrow} {link.kind} {link.to}{missing}")
    if entry.links_left_out:
        lines.append(f"- {pluralise(entry.links_left_out, 'more link')}; read_note shows them")
    return lines


def _note_line(note: NoteSummary, now_ms: int) -> str:
    tags = "".join(f" #{tag}" for tag in note.tags)
    status = f", {note.status}" if note.status else ""
    age = time_ago(note.modified_ms, now_ms)
    return f"{note.title} [{note.path}] {note.type}{status}, {age}{tags}"


def _pending_lines(count: int) -> list[str]:
    return (
        [f"{pluralise(count, 'file')} not read yet; the same call again goes on."] if count else []
    )
