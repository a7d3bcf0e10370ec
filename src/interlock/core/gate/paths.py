"""Paths that no agent may write, because that would let it change its own rules."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

GLOB_CHARACTERS = "*?["
"""Characters that make a word a pattern for a shell."""
PATTERN_MAX = 255  # the longest file name; a longer pattern takes too long, and counts as a match
ALWAYS_PROTECTED = (
    ".interlock/config.toml",
    ".interlock/triggers.toml",
    ".git/hooks",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    ".claude.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".github/hooks",
    ".copilot",
    ".opencode/plugins",
)
"""Path endings, each with everything below it; no project can remove one."""


def normalise(path: str, cwd: str) -> str:
    """The path as it would be opened: absolute, with `/`, without `.` and `..`."""
    path = path.replace("\\", "/")
    if not path.startswith("/") and not re.match(r"[A-Za-z]:/", path):
        path = f"{cwd.replace(chr(92), '/')}/{path}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def normal_parts(path: str, cwd: str) -> list[str]:
    """The parts of the normal path, in lower case; `~` comes first if the path begins with it."""
    if path.startswith("~"):  # whose home that is, is unknown here
        return ["~", *normalise(path, "").casefold().split("/")[2:]]
    return normalise(path, cwd).casefold().split("/")[1:]


def protection_of(path: str, cwd: str, home: str, additional: Iterable[str] = ()) -> str | None:
    """The directory or path ending that protects the path, if any. `home` is Interlock's own.

    A path may be a pattern that a shell expands: whatever it could stand for counts.
    """
    parts = normal_parts(path, cwd)
    if _is_below(parts, home.casefold().split("/")[1:]):
        return home
    for end in (*ALWAYS_PROTECTED, *additional):
        end_parts = end.strip("/").casefold().split("/")
        if any(_starts_with(parts[at:], end_parts) for at in range(len(parts))):
            return end
    return None


def _is_below(parts: list[str], home: list[str]) -> bool:
    if parts[:1] == ["~"]:
        return any(_starts_with(parts[1:], home[at:]) for at in range(1, len(home)))
    return _starts_with(parts, home)


def _starts_with(parts: list[str], prefix: list[str]) -> bool:
    """Whether the parts begin with `prefix`, or could."""
    pairs = list(zip(parts, prefix, strict=False))
    return len(parts) >= len(prefix) and all(could_match(name, part) for part, name in pairs)


def could_match(name: str, part: str) -> bool:
    """Whether a word is this name, or a pattern that could stand for it."""
    if part == name:
        return True
    if not any(char in part for char in GLOB_CHARACTERS):
        return False
    if name.startswith(".") and not part.startswith("."):
        return False  # a shell matches names with a dot only with patterns that begin with one
    return len(part) > PATTERN_MAX or fnmatchcase(name, part)


_WORD_BREAKS = re.compile(r"[\s;&|<>()=,]+")


def glob_words(text: str) -> list[str]:
    """The words of a command that a shell would expand, whether or not they are quoted."""
    words = _WORD_BREAKS.split(re.sub(r"['\"\\]", "", text))
    return [word for word in words if any(char in word for char in GLOB_CHARACTERS)]
