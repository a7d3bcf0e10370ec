"""The tools of the toolset `notes` and their arguments.

Their implementation, `note_calls`, is imported at the first call.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import Caller
from interlock.app.context import App
from interlock.core.canonical import Json
from interlock.core.notes.note import NoteStatus
from interlock.core.notes.operations import (
    OPERATION_ARGUMENTS,
    ArgumentName,
    EditOperation,
    closest_operation,
)
from interlock.mcp import schema
from interlock.mcp.results import SuggestedCall, ToolResult
from interlock.mcp.tool import Tool

# Kept short: agents pay for every byte in every conversation.
Identifier = Annotated[str, Meta(examples=["<title or path of the note>"])]
Version = Annotated[str | None, Meta(description="From read_note.")]
Timeframe = Annotated[str | None, Meta(description="`7d`, `24h`, `2 weeks` or a date.")]
# More than the maximum is cut, not refused: agents ask for a hundred of everything.
Limit = Annotated[int, Meta(ge=1, extra_json_schema={"maximum": 50})]
Page = Annotated[int, Meta(ge=1)]

COMMON_ALIASES = {
    "url": "identifier",
    "permalink": "identifier",
    "note": "identifier",
    "name": "identifier",
    "workspace": "workspacePath",
    "hash": "version",
}


class WriteArguments(msgspec.Struct, frozen=True, rename="camel"):
    title: Annotated[str, Meta(examples=["<title>"])]
    content: Annotated[
        str,
        Meta(
            description="Markdown. Observation: `- [category] fact #tag`. Relation:"
            " `- relation_type [[Other Note]]`.",
            examples=["<content in Markdown>"],
        ),
    ]
    folder: str | None = None
    type: Annotated[
        str | None,
        Meta(description="Default: note. Else decision, requirement, design, task, feature, …"),
    ] = None
    tags: tuple[str, ...] | None = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="More frontmatter.")] = None
    overwrite: Annotated[bool, Meta(description="With the version that you read.")] = False
    version: Version = None
    separate: Annotated[
        bool, Meta(description="Write it beside the note with a similar title.")
    ] = False
    request_id: str | None = None
    workspace_path: str | None = None


class ReadArguments(msgspec.Struct, frozen=True, rename="camel"):
    identifier: Identifier
    page: Annotated[Page, Meta(description="Of a long note.")] = 1
    workspace_path: str | None = None


class EditArguments(msgspec.Struct, frozen=True, rename="camel"):
    identifier: Identifier
    operation: EditOperation | None = None
    content: str | None = None
    section: Annotated[str | None, Meta(description="Its heading.")] = None
    find_text: str | None = None
    expected_replacements: int = 1
    replace_subsections: bool = False
    metadata: Annotated[
        dict[str, Any] | None,
        Meta(description="Frontmatter to set; null removes a key.", examples=[{"status": "done"}]),
    ] = None
    to: Annotated[
        str | None,
        Meta(description="Move it to this path, or `folder/`."),
    ] = None
    version: Version = None
    request_id: str | None = None
    workspace_path: str | None = None


class DeleteArguments(msgspec.Struct, frozen=True, rename="camel"):
    identifier: Identifier
    version: Annotated[str, Meta(description="From read_note.", examples=["<version>"])]
    request_id: str | None = None
    workspace_path: str | None = None


class SearchArguments(msgspec.Struct, frozen=True, rename="camel"):
    query: Annotated[str | None, Meta(description='Words, or a "phrase".')] = None
    types: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    status: NoteStatus | None = None
    category: Annotated[str | None, Meta(description="Of an observation.")] = None
    folder: str | None = None
    timeframe: Timeframe = None
    limit: Limit = 10
    page: Page = 1
    explain: bool = False
    workspace_path: str | None = None


class ContextArguments(msgspec.Struct, frozen=True, rename="camel"):
    identifier: Identifier
    depth: Annotated[
        int, Meta(description="Links to follow.", ge=0, extra_json_schema={"maximum": 3})
    ] = 1
    timeframe: Timeframe = None
    limit: Limit = 10
    workspace_path: str | None = None


_EDIT_ARGUMENTS: Final[dict[str, ArgumentName]] = {
    "section": "section",
    "findText": "find",
    "replaceSubsections": "subsections",
    "expectedReplacements": "expected",
    "content": "content",
}
_OPERATIONS: Final[dict[str, EditOperation]] = {name: name for name in OPERATION_ARGUMENTS}
_PLACEHOLDERS: Final[dict[str, tuple[str, ArgumentName]]] = {
    "<heading>": ("section", "section"),
    "<text>": ("findText", "find"),
    "<content>": ("content", "content"),
}
# Clients that fill in every property of a schema send these. Each counts for its argument only:
# `True` equals 1.
_DEFAULTS: Final[dict[str, Json]] = {"replaceSubsections": False, "expectedReplacements": 1}


def read_first_call(sent_arguments: Mapping[str, Json]) -> SuggestedCall:
    """A call of `read_note`: the version of a note cannot be guessed, only read."""
    example = schema.example_arguments(READ_NOTE.input_schema)
    reused = {
        name: sent_arguments[name]
        for name in ("identifier", "workspacePath")
        if name in sent_arguments
    }
    return SuggestedCall("read_note", {**example, **reused})


def _suggest_edit_call(sent_arguments: Mapping[str, Json]) -> SuggestedCall | None:
    present: set[ArgumentName] = {
        argument
        for name, argument in _EDIT_ARGUMENTS.items()
        if sent_arguments.get(name) not in (None, "", _DEFAULTS.get(name))
    }
    operation_name = sent_arguments.get("operation")
    if operation_name is None and not present and sent_arguments.get("metadata"):
        return None
    operation = _OPERATIONS.get(str(operation_name))
    if operation is None or present - OPERATION_ARGUMENTS[operation]:
        operation = closest_operation(str(operation_name or ""), present)
    if operation == "replace_section" and not sent_arguments.get("version"):
        return read_first_call(sent_arguments)
    accepted = OPERATION_ARGUMENTS[operation]
    reused = {
        k: v for k, v in sent_arguments.items() if _EDIT_ARGUMENTS.get(k, "content") in accepted
    }
    placeholders = {
        name: placeholder
        for placeholder, (name, argument) in _PLACEHOLDERS.items()
        if argument in accepted
    }
    example = schema.example_arguments(EDIT_NOTE.input_schema)
    return SuggestedCall("edit_note", {**example, **placeholders, **reused, "operation": operation})


def _suggest_delete_call(sent_arguments: Mapping[str, Json]) -> SuggestedCall | None:
    return None if sent_arguments.get("version") else read_first_call(sent_arguments)


def _lazy_call(name: str) -> Callable[[App, Caller, Any], ToolResult]:
    """A call that imports its implementation when it is made: most conversations need no note."""

    def call(app: App, caller: Caller, arguments: Any) -> ToolResult:
        calls = import_module("interlock.mcp.note_calls")
        return getattr(calls, name)(app, caller, TOOLS_BY_NAME[name], arguments)

    return call


WRITE_NOTE = Tool(
    name="write_note",
    purpose=(
        "Write a Markdown note that every later session of the project can find: a finding,"
        " constraint or decision. Search first; edit an existing note on the subject instead of"
        " writing a second one."
    ),
    arguments=WriteArguments,
    cue="{title, content}: for later sessions",
    call=_lazy_call("write_note"),
    aliases={
        **COMMON_ALIASES,
        "name": "title",
        "directory": "folder",
        "dir": "folder",
        "path": "folder",
        "noteType": "type",
        "text": "content",
        "body": "content",
        "markdown": "content",
        "frontmatter": "metadata",
    },
)
READ_NOTE = Tool(
    name="read_note",
    purpose=(
        "Read a note by permalink, title, path or memory:// address. Also returns its version and"
        " the notes that link to it."
    ),
    arguments=ReadArguments,
    cue="{identifier}",
    is_read_only=True,
    is_idempotent=True,
    call=_lazy_call("read_note"),
    aliases={**COMMON_ALIASES, "title": "identifier", "path": "identifier", "id": "identifier"},
)
EDIT_NOTE = Tool(
    name="edit_note",
    purpose=(
        "Change part of a note or its frontmatter, or move it. replace_section needs the version"
        " that you read. To delete a note, run `interlock note delete NAME`."
    ),
    arguments=EditArguments,
    cue="{identifier, operation?, content?}",
    call=_lazy_call("edit_note"),
    suggest_call=_suggest_edit_call,
    aliases={
        **COMMON_ALIASES,
        "title": "identifier",
        "path": "identifier",
        "op": "operation",
        "find": "findText",
        "oldText": "findText",
        "search": "findText",
        "newText": "content",
        "replace": "content",
        "replacement": "content",
        "text": "content",
        "heading": "section",
        "destination": "to",
        "destinationPath": "to",
        "destinationFolder": "to",
        "newPath": "to",
    },
    former_names={"move_note": {}},
)
DELETE_NOTE = Tool(
    name="delete_note",
    purpose=("Delete a note that you have read. Only git still has it, if it was committed."),
    arguments=DeleteArguments,
    cue="{identifier, version}",
    is_idempotent=True,
    is_destructive=True,
    call=_lazy_call("delete_note"),
    suggest_call=_suggest_delete_call,
    aliases={**COMMON_ALIASES, "title": "identifier", "path": "identifier"},
)
SEARCH_NOTES = Tool(
    name="search_notes",
    purpose=(
        "Search what the project knows: decisions, findings and constraints of earlier sessions."
        " Search before you ask the user or write a note. Without a query, the newest notes come"
        " first."
    ),
    arguments=SearchArguments,
    cue="{query?}: before you ask or write",
    is_read_only=True,
    is_idempotent=True,
    call=_lazy_call("search_notes"),
    aliases={
        "q": "query",
        "search": "query",
        "text": "query",
        "type": "types",
        "noteTypes": "types",
        "tag": "tags",
        "directory": "folder",
        "path": "folder",
        "since": "timeframe",
        "after": "timeframe",
        "afterDate": "timeframe",
        "lookback": "timeframe",
        "pageSize": "limit",
        "perPage": "limit",
        "workspace": "workspacePath",
    },
    former_names={"recent_activity": {}},
)
BUILD_CONTEXT = Tool(
    name="build_context",
    purpose=(
        "Read a note with its observations, its relations, and the notes around it. `folder/*`"
        " reads all notes below a folder."
    ),
    arguments=ContextArguments,
    cue="{identifier}: read a note and its neighbours",
    is_read_only=True,
    is_idempotent=True,
    call=_lazy_call("build_context"),
    aliases={
        **COMMON_ALIASES,
        "title": "identifier",
        "path": "identifier",
        "since": "timeframe",
        "maxRelated": "limit",
    },
)
TOOLS_BY_NAME: dict[str, Tool[Any]] = {
    tool.name: tool
    for tool in (
        SEARCH_NOTES,
        READ_NOTE,
        WRITE_NOTE,
        EDIT_NOTE,
        BUILD_CONTEXT,
        DELETE_NOTE,
    )
}
