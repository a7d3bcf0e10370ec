"""The protected path that a tool call would write, if any."""

import re
from collections.abc import Callable, Iterator
from functools import cache

import msgspec

from interlock.core.gate.paths import (
    ALWAYS_PROTECTED,
    CHARACTERS_MAX,
    GLOB_CHARACTERS,
    PATH_MAX,
    PATHS_MAX,
    join_path,
    protection_of,
)
from interlock.core.gate.shell import Analysis
from interlock.core.gate.tool_call import ToolCall

RealPath = Callable[[str], str]
"""The absolute path to which a path leads when every link is followed; it may begin with `~`."""


class ProtectedPath(msgspec.Struct, frozen=True):
    path: str
    protection: str
    """The directory or path ending that protects it; empty if there are too many to look at."""


def as_written(path: str) -> str:
    return path


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
    for number, (folder, path, is_tree) in enumerate(_written_paths(call, analysis, names)):
        written = join_path(folder, path)
        characters += len(written) + len(call.cwd)
        if characters > CHARACTERS_MAX or number > PATHS_MAX:
            return ProtectedPath(path[:PATH_MAX], "")
        spellings = [written]
        is_literal = not any(char in written for char in GLOB_CHARACTERS)
        if is_literal and real_path is not as_written and len(written) <= PATH_MAX:
            spellings.append(real_path(join_path(call.cwd, written)))
        for spelling in spellings:
            is_short = len(spelling) <= PATH_MAX and len(call.cwd) <= PATH_MAX
            if is_literal and is_short and not names.search(f"{call.cwd}/{spelling}".casefold()):
                continue
            if by := protection_of(spelling, call.cwd, home, additional, is_tree=is_tree):
                return ProtectedPath(path[:PATH_MAX], by)
    return None


@cache
def _protected_names(protected: tuple[str, ...]) -> re.Pattern[str]:
    """One of these is in every protected path, if that is not a pattern."""
    parts = [end.strip("/").casefold().split("/") for end in protected]
    return re.compile("|".join(re.escape(name) for part in parts for name in (part[0], part[-1])))


def _written_paths(
    call: ToolCall, analysis: Analysis | None, names: re.Pattern[str]
) -> Iterator[tuple[str, str, bool]]:
    """Directory and path, and whether everything below is written too."""
    for path in (*call.paths, *_texts_that_may_be_paths(call.input_texts, names)):
        yield from (("", path, False), ("", path, True))
    for command in analysis.commands if analysis else ():
        for folder in dict.fromkeys(("", command.folder)):
            yield from ((folder, path, False) for path in dict.fromkeys(command.paths))
            yield from ((folder, path, True) for path in dict.fromkeys(command.trees))


def _texts_that_may_be_paths(texts: tuple[str, ...], names: re.Pattern[str]) -> Iterator[str]:
    """The texts that may be a protected path; an address elsewhere is none."""
    for text in texts:
        path = text.removeprefix("file://")
        if len(text) <= PATH_MAX and "://" not in path and names.search(text.casefold()):
            yield path
