"""The tools for files: Read, Write, Edit, Glob and Grep. Their work is done in the sandbox."""

import os
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from interlock.core.gate.paths import protection_of
from interlock.core.session.secrets import has_placeholder
from interlock.driver.tools.processes import run_process
from interlock.driver.tools.tool import DriverTool, ToolOutcome, Workplace

SECONDS_MAX = 60
_PATH_CHARACTERS_MAX, _PATTERN_CHARACTERS_MAX = 4096, 1000
_NOWHERE = "/\0"

FilePath = Annotated[
    str,
    Meta(
        description="Path of the file, absolute or from the worktree.",
        min_length=1,
        max_length=_PATH_CHARACTERS_MAX,
    ),
]
SearchPath = Annotated[
    str,
    Meta(description="Where to look; default: the worktree.", max_length=_PATH_CHARACTERS_MAX),
]


class ReadCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: FilePath
    offset: Annotated[int, Meta(description="The first line, from 1.", ge=1)] = 1
    limit: Annotated[int, Meta(description="How many lines.", ge=1, le=100_000)] = 2_000


class WriteCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: FilePath
    content: Annotated[str, Meta(description="The whole file.")]


class EditCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: FilePath
    old_string: Annotated[
        str, Meta(description="The text to replace, exactly as it is there.", min_length=1)
    ]
    new_string: Annotated[str, Meta(description="The text in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class GlobCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str,
        Meta(
            description="As in `src/**/*.py` or `**/*.{ts,tsx}`.",
            min_length=1,
            max_length=_PATTERN_CHARACTERS_MAX,
        ),
    ]
    path: SearchPath = "."


class GrepCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str,
        Meta(
            description="A regular expression (RE2), for single lines.",
            min_length=1,
            max_length=_PATTERN_CHARACTERS_MAX,
        ),
    ]
    path: SearchPath = "."
    glob: Annotated[
        str,
        Meta(
            description="Only in files with such a name, as in `*.py`.",
            max_length=_PATTERN_CHARACTERS_MAX,
        ),
    ] = ""
    ignore_case: Annotated[bool, Meta(description="Ignore upper and lower case.")] = False
    files_only: Annotated[bool, Meta(description="List only the names of the files.")] = False


async def _read(workplace: Workplace, arguments: ReadCall) -> ToolOutcome:
    return await _work(workplace, "Read", arguments, is_opened=True)


async def _write(workplace: Workplace, arguments: WriteCall | EditCall) -> ToolOutcome:
    refusal = _write_refusal(workplace, arguments.file_path) or _placeholder_refusal(arguments)
    if refusal:
        return ToolOutcome(refusal, is_error=True)
    tool = "Write" if isinstance(arguments, WriteCall) else "Edit"
    return await _work(workplace, tool, arguments, is_opened=True)


async def _search(workplace: Workplace, arguments: GlobCall | GrepCall) -> ToolOutcome:
    tool = "Glob" if isinstance(arguments, GlobCall) else "Grep"
    return await _work(workplace, tool, arguments, is_opened=False)


def _write_refusal(workplace: Workplace, path: str) -> str:
    """The sentence for a file that is not to be written; empty if it may be."""
    if workplace.level == "read-only":
        return "Nothing is written in this step: it only reads. Put what you want in your answer."
    worktree = str(workplace.worktree.resolve())
    written = os.path.join(worktree, path.replace("\0", ""))
    # Not the real path of the normal one: `..` after a link is not where the text says.
    for spelling in (os.path.normpath(written), os.path.realpath(written)):
        # Seen from the worktree: that is in Interlock's own directory, which is protected.
        name = os.path.relpath(spelling, worktree)
        if protection := protection_of(name, "/", _NOWHERE):
            return f"`{path}` is protected ({protection}): it is for the user to change."
        if ".git" in name.casefold().split("/"):
            return f"`{path}` is git's own: it is changed by git commands, with Bash."
    return ""


def _placeholder_refusal(call: WriteCall | EditCall) -> str:
    """The sentence for a text with a placeholder where a secret belongs; empty if it has none."""
    before, after = (
        ("", call.content) if isinstance(call, WriteCall) else (call.old_string, call.new_string)
    )
    if not has_placeholder(after) or has_placeholder(before):
        return ""
    return (
        "The text has a placeholder of Interlock (`[secret removed: …]`), which stands for a secret"
        " that is not shown to you. Do not write it to a file; keep what is in the file, or read"
        " the secret from where the program gets it."
    )


async def _work(
    workplace: Workplace, tool: str, arguments: msgspec.Struct, *, is_opened: bool
) -> ToolOutcome:
    fields: dict[str, Any] = msgspec.structs.asdict(arguments)
    path = str(fields.get("file_path") or fields.get("path") or ".")
    # What is named in full may be in any worktree of the session; else it stays in this one.
    places = workplace.roots if os.path.isabs(path) else (workplace.worktree,)
    places = places if tool in ("Write", "Edit") else (*places, workplace.scratch)
    call = {
        **fields,
        "tool": tool,
        "path": path,
        "worktree": str(workplace.worktree.resolve()),
        "roots": tuple(str(place.resolve()) for place in places),
        "opened_files": sorted(workplace.opened_files),
    }
    output = bytearray()
    code = await run_process(
        workplace, (), seconds=SECONDS_MAX, on_output=output.extend, file_call=call
    )
    if code is None:
        return ToolOutcome(f"It took longer than {SECONDS_MAX} s, and was ended.", is_error=True)
    state, _, rest = output.decode(errors="replace").partition("\0")
    path, _, text = rest.partition("\0")
    if code != 0 or state not in ("0", "1"):
        return ToolOutcome(f"{tool} failed: {output.decode(errors='replace')}", is_error=True)
    if state == "0" and is_opened:
        workplace.opened_files.add(path)
    return ToolOutcome(text, is_error=state == "1")


FILE_TOOLS = (
    DriverTool(
        "Read",
        "Read a file of text, with line numbers: at most 256 KB at a time.",
        ReadCall,
        "read",
        _read,
    ),
    DriverTool(
        "Write",
        "Write a whole file, in one step. Directories on the way are made.",
        WriteCall,
        "edit",
        _write,
    ),
    DriverTool(
        "Edit",
        "Replace a text in a file that was read or written before. It must occur exactly once,"
        " unless every occurrence is to be replaced.",
        EditCall,
        "edit",
        _write,
    ),
    DriverTool(
        "Glob",
        "List the files whose paths match a pattern: at most 250.",
        GlobCall,
        "search",
        _search,
    ),
    DriverTool(
        "Grep",
        "Search the files for lines that match a regular expression: at most 250 lines.",
        GrepCall,
        "search",
        _search,
    ),
)
