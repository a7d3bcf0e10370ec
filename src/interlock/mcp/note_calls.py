"""What the tools of the toolset `notes` do."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from interlock.app.callers.request_key import RequestKey, request_key
from interlock.app.context import App
from interlock.app.explanation import Explanation
from interlock.app.notes import neighbourhood
from interlock.app.notes.deletion import remove_note
from interlock.app.notes.edit import EditRequest, NoteChange, apply_note_edit, resolve_edit
from interlock.app.notes.explain import explain_note_refusal
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.read import read_note_text
from interlock.app.notes.refusals import (
    EmptyEdit,
    NoSuchNote,
    NoteChanged,
    NoteExists,
    NotePathTaken,
    NoteRefusal,
    SeveralNotes,
    SimilarNoteExists,
    UnexpectedEditArgument,
    VersionRequired,
)
from interlock.app.notes.rename import rename_note
from interlock.app.notes.results import (
    ContextNote,
    NoteChangeResult,
    NoteContext,
    NoteSearchResult,
    NoteSummary,
    RecentNotes,
)
from interlock.app.notes.search import NoteFilter, NoteQuery, recent_notes, search
from interlock.app.notes.timeframes import parse_since
from interlock.app.notes.write import NoteDraft, write_draft
from interlock.core.canonical import Json
from interlock.core.notes.edits import (
    AmbiguousSection,
    EmptySearchText,
    MatchCountMismatch,
    NoSuchSection,
    TextNotFound,
)
from interlock.core.views.ages import time_ago
from interlock.core.views.counting import pluralise
from interlock.mcp.arguments import workspace_of
from interlock.mcp.note_tools import (
    ContextArguments,
    DeleteArguments,
    EditArguments,
    MoveArguments,
    ReadArguments,
    RecentArguments,
    SearchArguments,
    WriteArguments,
    read_first_call,
)
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.tool import Tool

Outcome = TypeVar("Outcome")


def _with_notes(
    app: App, tool: Tool[Any], arguments: Any, use: Callable[[OpenedNotes], Outcome | NoteRefusal]
) -> Outcome | ToolResult:
    """What `use` comes to with the notes of the project that is meant; a refusal as its answer."""
    notes = open_notes(app, workspace_of(arguments.workspace_path))
    done = use(notes) if isinstance(notes, OpenedNotes) else notes
    return _refuse(done, tool, arguments) if isinstance(done, NoteRefusal) else done


def _refuse(refusal: NoteRefusal, tool: Tool[Any], arguments: msgspec.Struct) -> ToolResult:
    """A refusal, with a call that gets further."""
    given = _given_arguments(arguments)
    call, others = None, tuple[SuggestedCall, ...]()
    match refusal:
        case NoteExists() | NotePathTaken() | NoteChanged() | VersionRequired():
            call = read_first_call({**given, "identifier": refusal.path})
        case SimilarNoteExists():
            call = read_first_call({**given, "identifier": refusal.path})
            others = (tool.corrected_call({**given, "separate": True}),)
        case SeveralNotes():
            others = tuple(
                tool.corrected_call({**given, "identifier": path}) for path in refusal.paths
            )
        case NoSuchNote():
            # In the same project: the server may well run in another.
            place = {k: v for k, v in given.items() if k == "workspacePath"}
            call = SuggestedCall("search_notes", {"query": refusal.identifier, **place})
            others = tuple(
                tool.corrected_call({**given, "identifier": name}) for name in refusal.similar
            )
        case UnexpectedEditArgument() | EmptyEdit():
            call = tool.corrected_call(given)
        case EmptySearchText() | TextNotFound() | NoSuchSection() | AmbiguousSection():
            call = read_first_call(given)
        case MatchCountMismatch():
            call = read_first_call(given)
            others = (tool.corrected_call({**given, "expectedReplacements": refusal.found}),)
        case _:
            pass
    return refusal_result(explain_note_refusal(refusal), call, next_calls=others)


def _request_key(app: App, tool: Tool[Any], arguments: Any, request_id: str | None) -> RequestKey:
    # As text: what stands in metadata need not have a canonical form.
    return request_key(tool.name, app.caller, msgspec.json.encode(arguments).decode(), request_id)


def _given_arguments(arguments: msgspec.Struct) -> dict[str, Json]:
    """What was sent, without what was left at its default."""
    sent: dict[str, Json] = msgspec.to_builtins(arguments)
    usual = {it.encode_name: it.default for it in msgspec.structs.fields(type(arguments))}
    return {name: value for name, value in sent.items() if value != usual[name]}


def write_note(app: App, tool: Tool[Any], arguments: WriteArguments) -> ToolResult:
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
    call = _request_key(app, tool, arguments, arguments.request_id)
    workspace = workspace_of(arguments.workspace_path)
    return _change_result(
        _with_notes(
            app, tool, arguments, lambda notes: write_draft(app, notes, draft, workspace, call)
        )
    )


def read_note(app: App, tool: Tool[Any], arguments: ReadArguments) -> ToolResult:
    found = _with_notes(
        app,
        tool,
        arguments,
        lambda notes: read_note_text(app, notes, arguments.identifier, page=arguments.page),
    )
    if isinstance(found, ToolResult):
        return found
    head = f"{found.type} {found.path} ({found.permalink}): {found.title}, version {found.version}"
    if found.pages > 1:
        head += f", page {found.page} of {found.pages}"
    if found.linked_from:
        head += f", linked from {', '.join(found.linked_from)}"
    head += "".join(f"\nhint: {hint}" for hint in found.hints)
    return ToolResult(found, f"{head}\n\n{found.text}")


def edit_note(app: App, tool: Tool[Any], arguments: EditArguments) -> ToolResult:
    wanted = resolve_edit(
        EditRequest(
            arguments.operation,
            arguments.content or "",
            arguments.section or "",
            arguments.find_text or "",
            arguments.expected_replacements,
            arguments.replace_subsections,
        )
    )
    if isinstance(wanted, UnexpectedEditArgument):
        return _refuse(wanted, tool, arguments)
    change = NoteChange(wanted, arguments.metadata or {}, arguments.version)
    call = _request_key(app, tool, arguments, arguments.request_id)
    return _change_result(
        _with_notes(
            app,
            tool,
            arguments,
            lambda notes: apply_note_edit(app, notes, arguments.identifier, change, call),
        )
    )


def move_note(app: App, tool: Tool[Any], arguments: MoveArguments) -> ToolResult:
    call = _request_key(app, tool, arguments, arguments.request_id)
    return _change_result(
        _with_notes(
            app,
            tool,
            arguments,
            lambda notes: rename_note(app, notes, arguments.identifier, arguments.to, call),
        )
    )


def delete_note(app: App, tool: Tool[Any], arguments: DeleteArguments) -> ToolResult:
    call = _request_key(app, tool, arguments, arguments.request_id)
    return _change_result(
        _with_notes(
            app,
            tool,
            arguments,
            lambda notes: remove_note(app, notes, arguments.identifier, arguments.version, call),
        )
    )


def _change_result(done: NoteChangeResult | ToolResult) -> ToolResult:
    if isinstance(done, ToolResult):
        return done
    version = f", version {done.version}" if done.version else ""
    lines = [f"{done.result}: {done.path} ({done.permalink}){version}"]
    return ToolResult(done, "\n".join([*lines, *(f"hint: {hint}" for hint in done.hints)]))


def search_notes(app: App, tool: Tool[Any], arguments: SearchArguments) -> ToolResult:
    since = _since_ms(app, arguments.timeframe)
    if since is None:
        return _refuse_timeframe(tool, arguments)
    wanted = NoteFilter(
        types=arguments.types or (),
        statuses=(arguments.status,) if arguments.status else (),
        tags=arguments.tags or (),
        category=arguments.category or "",
        since_ms=since,
        prefix=f"{arguments.folder.strip('/')}/" if arguments.folder else "",
    )
    query = NoteQuery(
        arguments.query or "", wanted, arguments.limit, arguments.page, arguments.explain
    )
    found = _with_notes(app, tool, arguments, lambda notes: search(app, notes, query))
    if isinstance(found, ToolResult):
        return found
    return ToolResult(found, _hits_text(found, app.clock.now_ms()))


def build_context(app: App, tool: Tool[Any], arguments: ContextArguments) -> ToolResult:
    since = _since_ms(app, arguments.timeframe)
    if since is None:
        return _refuse_timeframe(tool, arguments)
    found = _with_notes(
        app,
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
    return found if isinstance(found, ToolResult) else ToolResult(found, _context_text(found))


def recent_activity(app: App, tool: Tool[Any], arguments: RecentArguments) -> ToolResult:
    since = _since_ms(app, arguments.timeframe or "7d")
    if since is None:
        return _refuse_timeframe(tool, arguments)
    wanted = NoteFilter(types=arguments.types or (), since_ms=since)
    found = _with_notes(
        app, tool, arguments, lambda notes: recent_notes(app, notes, wanted, limit=arguments.limit)
    )
    if isinstance(found, ToolResult):
        return found
    return ToolResult(found, _recent_text(found, app.clock.now_ms()))


def _since_ms(app: App, timeframe: str | None) -> int | None:
    return parse_since(timeframe, app.clock.now_ms()) if timeframe else 0


def _refuse_timeframe(tool: Tool[Any], arguments: Any) -> ToolResult:
    message = f"`{arguments.timeframe}` says no span of time"
    hint = "Write it like `7d`, `24h`, `2 weeks` or `2026-11-01`."
    return refusal_result(
        Explanation("invalid_arguments", message, hint),
        tool.corrected_call({**_given_arguments(arguments), "timeframe": "7d"}),
    )


def _hits_text(found: NoteSearchResult, now_ms: int) -> str:
    lines = [f"{pluralise(len(found.hits), 'note')}{', and more' if found.has_more else ''}."]
    if found.is_wordless:
        lines.append("Only letters and digits can be searched for.")
    elif not found.hits:
        lines.append("Nothing was found; try other words, or recent_activity.")
    elif found.is_loose:
        lines.append("No note has all the words; these have some of them.")
    for number, hit in enumerate(found.hits, start=1):
        lines += ["", f"{number}. {_note_line(hit.note, now_ms)}"]
        lines += [f"   {hit.excerpt}"] if hit.excerpt else []
        lines += [f"   {hit.score:.2f}: {hit.why.words}"] if hit.why else []
    return "\n".join([*lines, *_pending_lines(found.pending)])


def _recent_text(found: RecentNotes, now_ms: int) -> str:
    lines = [f"{pluralise(len(found.notes), 'note')}{', and more' if found.has_more else ''}."]
    lines += [f"- {_note_line(note, now_ms)}" for note in found.notes]
    return "\n".join([*lines, *_pending_lines(found.pending)])


def _context_text(found: NoteContext) -> str:
    lines: list[str] = []
    for one in found.notes:
        lines += [*_context_note_lines(one), ""]
    if found.left_out:
        lines.append(f"{pluralise(found.left_out, 'more note')} near; ask with a higher limit.")
    return "\n".join([*lines, *_pending_lines(found.pending)])


def _context_note_lines(one: ContextNote) -> list[str]:
    note = one.note
    via = f", {pluralise(one.distance, 'link')} away by {one.via}" if one.distance else ""
    head = f"{note.title} [{note.path}] {note.type} {note.status}".rstrip()
    lines = [f"## {head}{via}", *(f"- {said}" for said in one.observations)]
    for link in one.links:
        arrow = "<-" if link.is_backward else "->"
        missing = "" if link.is_written else " (not written yet)"
        lines.append(f"- {arrow} {link.kind} {link.to}{missing}")
    if one.links_left_out:
        lines.append(f"- {pluralise(one.links_left_out, 'more link')}; read_note shows them")
    return lines


def _note_line(note: NoteSummary, now_ms: int) -> str:
    tags = "".join(f" #{tag}" for tag in note.tags)
    status = f", {note.status}" if note.status else ""
    at = time_ago(note.modified_ms, now_ms)
    return f"{note.title} [{note.path}] {note.type}{status}, {at}{tags}"


def _pending_lines(count: int) -> list[str]:
    return (
        [f"{pluralise(count, 'file')} not read yet; the same call again goes on."] if count else []
    )
