"""The protected path that a tool call would write, if any."""

import re
from collections.abc import Iterator
from functools import cache

import msgspec

from interlock.core.gate.paths import (
    ALWAYS_PROTECTED,
    CHARACTERS_MAX,
    GLOB_CHARACTERS,
    PATH_MAX,
    PATHS_MAX,
    RealPath,
    join_path,
    protection_of,
)
from interlock.core.gate.shell import Analysis
from interlock.core.gate.tool_call import ToolCall, led_paths

UNRESOLVED = "its target cannot be determined: name the file itself, without links"


class ProtectedPath(msgspec.Struct, frozen=True):
    path: str
    protection: str
    """The directory or path ending that protects it; empty if there are too many to look at."""


def protected_path_written_by(
    call: ToolCall,
    analysis: Analysis | None,
    additional: tuple[str, ...],
    home: str,
    real_path: RealPath,
) -> ProtectedPath | None:
    """The first protected path that a call would write, by its name or where links lead."""
    names = _protected_names((*ALWAYS_PROTECTED, *additional, home))
    characters = 0
    real_cwd = real_path(call.cwd) or call.cwd
    for number, (folder, path, is_tree) in enumerate(_written_paths(call, analysis)):
        written = join_path(folder, path)
        characters += len(written) + len(call.cwd)
        if characters > CHARACTERS_MAX or number > PATHS_MAX:
            return ProtectedPath(path[:PATH_MAX], "")
        # Only a shell expands patterns: to a tool, `app/[id]` is a name.
        is_literal = not (analysis and any(char in written for char in GLOB_CHARACTERS))
        led = led_paths(call, written, call.cwd, real_path)
        for cwd, spelling in ((call.cwd, written), *((real_cwd, real) for real in led)):
            if spelling is None:
                return ProtectedPath(path[:PATH_MAX], UNRESOLVED)
            is_short = len(spelling) <= PATH_MAX and len(cwd) <= PATH_MAX
            if is_literal and is_short and not names.search(f"{cwd}/{spelling}".casefold()):
                continue
            if by := protection_of(spelling, cwd, home, additional, is_tree=is_tree):
                return ProtectedPath(path[:PATH_MAX], by)
    return None


@cache
def _protected_names(protected: tuple[str, ...]) -> re.Pattern[str]:
    """One of these is in every protected path, if that is not a pattern."""
    parts = [end.strip("/").casefold().split("/") for end in protected]
    return re.compile("|".join(re.escape(name) for part in parts for name in (part[0], part[-1])))


def _written_paths(call: ToolCall, analysis: Analysis | None) -> Iterator[tuple[str, str, bool]]:
    """Directory and path, and whether everything below is written too."""
    # A longer text of an unknown tool is no path, and an address elsewhere is none here.
    texts = (text for text in call.input_texts if len(text) <= PATH_MAX and "://" not in text)
    for path in dict.fromkeys((*call.paths, *texts)):
        yield from (("", path, False), ("", path, True))
    for command in analysis.commands if analysis else ():
        for folder in dict.fromkeys(("", command.folder)):
            yield from ((folder, path, False) for path in dict.fromkeys(command.paths))
            yield from ((folder, path, True) for path in dict.fromkeys(command.trees))
