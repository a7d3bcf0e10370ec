"""Paths that no agent may write, because that would let it change its own rules."""

import re
from collections.abc import Callable, Iterable
from functools import cache

GLOB_CHARACTERS = "*?["
"""Characters that make a word a pattern for a shell."""
UNKNOWN = "**"
"""Stands in a path for what a variable or a command gives, of which nothing is known."""
PATH_MAX = 4096  # no system opens a longer one: it is not looked at, and counts as protected
CHARACTERS_MAX = 1024 * 1024  # of all paths of a call; with more, one of them counts as protected
PATHS_MAX = 20_000  # likewise
_GLOBS = re.compile(r"\[[^\]]*+\]|[*?\[]")  # each is taken for `*`
WORKTREES = "worktrees"
"""The folder in Interlock's own directory with the worktrees of unattended work."""
PATTERN_MAX = 255  # the longest file name; a longer pattern counts as a match
_PATCH_HEADERS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
RealPath = Callable[[str], str | None]
"""Return the absolute path to which a path leads when every link is followed; None if unknown."""
ALWAYS_PROTECTED = (
    ".interlock/config.toml",
    ".interlock/triggers.toml",
    ".interlock/launch",
    ".git/hooks",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    ".claude.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".gemini/extensions/interlock",
    ".gemini/policies/interlock.toml",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".github/hooks",
    ".copilot",
    ".opencode/plugin",
    ".opencode/plugins",
    ".config/opencode/plugin",
    ".config/opencode/plugins",
)
"""Path endings, each with everything below it; no project can remove one."""


def normal_parts(path: str, cwd: str) -> list[str]:
    """The parts of the path as it would be opened, without `.` and `..`, in lower case.

    `~` comes first if the path begins with it: whose home that is, is unknown here.
    """
    start, path = ("~", path.partition("/")[2]) if path.startswith("~") else ("", path)
    path = path.replace("\\", "/")
    if not start and not path.startswith("/") and not re.match(r"[A-Za-z]:/", path):
        path = f"{cwd}/{path}".replace("\\", "/")
    parts: list[str] = []
    for part in path.casefold().split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in ("", "."):
            parts.append(part)
    return [start, *parts] if start else parts


def patched_files(text: str) -> list[str]:
    """Return the files that a patch for `apply_patch` names in its headers."""
    lines = map(str.strip, text.splitlines()) if "*** " in text else ()  # as Codex reads it
    return [
        line.removeprefix(header).strip()
        for line in lines
        for header in _PATCH_HEADERS
        if line.startswith(header)
    ]


def join_path(folder: str, path: str) -> str:
    return path if path.startswith(("/", "~")) or not folder else f"{folder.rstrip('/')}/{path}"


def as_written(path: str) -> str:
    return path


def protection_of(
    path: str, cwd: str, home: str, additional: Iterable[str] = (), *, is_tree: bool = False
) -> str | None:
    """The directory or path ending that protects the path, if any. `home` is Interlock's own.

    A path may be a pattern that a shell expands: whatever it could stand for counts. `is_tree`:
    everything below is written too, so a directory above a protected path counts; but only around
    `cwd` and `home`, since what is elsewhere, such as another clone, binds nobody.
    """
    if len(path) > PATH_MAX or len(cwd) > PATH_MAX:
        return "a path that is too long to be looked at"
    if path.startswith("$INTERLOCK_HOME"):
        path = path.replace("$INTERLOCK_HOME", home, 1)
    parts = normal_parts(path, cwd)
    home_parts = home.casefold().split("/")[1:]
    if _is_below(parts, home_parts) and not _is_own_worktree(parts, cwd, home_parts):
        return home
    places = (normal_parts(cwd, ""), home_parts)
    endings = _endings_by_first_part((*ALWAYS_PROTECTED, *additional))
    for at, part in enumerate(parts):
        if _is_unknown(part):
            continue
        is_pattern = any(char in part for char in GLOB_CHARACTERS)
        firsts = [first for first in endings if could_match(first, part)] if is_pattern else [part]
        for end, end_parts in (ending for first in firsts for ending in endings.get(first, ())):
            is_reached = len(parts) - at >= len(end_parts) or is_tree
            is_match = is_reached and all(
                map(could_match, end_parts, parts[at : at + len(end_parts)])
            )
            if is_match and (not is_tree or _is_around(parts[:at], places)):
                return end
    return None


@cache
def _endings_by_first_part(endings: tuple[str, ...]) -> dict[str, list[tuple[str, list[str]]]]:
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for end in endings:
        end_parts = end.strip("/").casefold().split("/")
        found.setdefault(end_parts[0], []).append((end, end_parts))
    return found


def _is_around(folder: list[str], places: Iterable[list[str]]) -> bool:
    """Whether one of the places is this folder, or below it."""
    if folder[:1] == ["~"]:
        size = len(folder) - 1
        return any(
            place[at : at + size] == folder[1:] for place in places for at in range(len(place) + 1)
        )
    return any(place[: len(folder)] == folder for place in places)


def _is_below(parts: list[str], home: list[str]) -> bool:
    if parts[:1] == ["~"]:
        return any(_starts_with(parts[1:], home[at:]) for at in range(1, len(home)))
    return _starts_with(parts, home)


def _is_own_worktree(parts: list[str], cwd: str, home: list[str]) -> bool:
    """Whether a path is in the worktree in which the caller works, though Interlock keeps it."""
    size = len(home) + 2  # the folder of the worktrees, and the one with the session's name
    worktree = parts[:size]
    is_worktree = len(worktree) == size and worktree[:-1] == [*home, WORKTREES]
    return is_worktree and normal_parts(cwd, "")[:size] == worktree


def _starts_with(parts: list[str], prefix: list[str]) -> bool:
    """Whether the parts begin with `prefix`, or could."""
    is_unknown = any(map(_is_unknown, parts[: len(prefix)]))
    return len(parts) >= len(prefix) and not is_unknown and all(map(could_match, prefix, parts))


def _is_unknown(part: str) -> bool:
    """Whether it could stand for anything: then it names nothing."""
    return UNKNOWN in part and not part.strip("*")


def could_match(name: str, part: str) -> bool:
    """Whether a word is this name, or a pattern that could stand for it."""
    if part == name:
        return True
    if not any(char in part for char in GLOB_CHARACTERS):
        return False
    if name.startswith(".") and not part.startswith("."):
        return False  # a shell matches names with a dot only with patterns that begin with one
    if len(part) > PATTERN_MAX:
        return True
    start, *middle, end = _GLOBS.split(part)
    at = len(start) if name.startswith(start) and name.endswith(end) else -1
    for literal in middle:
        at = name.find(literal, at) if at >= 0 else -1
        at += len(literal) if at >= 0 else 0
    return 0 <= at <= len(name) - len(end)
