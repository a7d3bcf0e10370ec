"""Paths that no agent may write: what would let it change its own rules."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

GLOB_CHARACTERS = "*?["
"""What makes a word a pattern for a shell."""
PATTERN_MAX = 255  # as long as a name may be; a longer one takes too long, and may be anything
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
"""Ends of paths, with everything below them; no project can take one of them off."""


def normalise(path: str, cwd: str) -> str:
    """The path as it would be opened: absolute, with `/`, without `.` and `..`."""
    path = path.replace("\\", "/")
    if not path.startswith("/") and not re.match(r"[A-Za-z]:/", path):
        path = f"{cwd.replace(chr(92), '/')}/{path}"
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            kept[-1:] = []
        elif part not in ("", "."):
            kept.append(part)
    return "/" + "/".join(kept)


def normal_parts(path: str, cwd: str) -> list[str]:
    """Those of the normal path, in small letters; `~` comes first where it begins so."""
    if path.startswith("~"):  # whose home that is, is not known here
        return ["~", *normalise(path, "").casefold().split("/")[2:]]
    return normalise(path, cwd).casefold().split("/")[1:]


def protection_of(path: str, cwd: str, home: str, additional: Iterable[str] = ()) -> str | None:
    """What protects the path, if something does. `home` is Interlock's own directory.

    A path may be a pattern that a shell fills in: what it could stand for counts.
    """
    found = normal_parts(path, cwd)
    if _is_below(found, home.casefold().split("/")[1:]):
        return home
    for end in (*ALWAYS_PROTECTED, *additional):
        wanted = end.strip("/").casefold().split("/")
        if any(_starts_with(found[at:], wanted) for at in range(len(found))):
            return end
    return None


def _is_below(found: list[str], home: list[str]) -> bool:
    if found[:1] == ["~"]:
        return any(_starts_with(found[1:], home[at:]) for at in range(1, len(home)))
    return _starts_with(found, home)


def _starts_with(found: list[str], prefix: list[str]) -> bool:
    """Whether the parts begin with those that are wanted, or could."""
    pairs = list(zip(found, prefix, strict=False))
    return len(found) >= len(prefix) and all(could_match(name, part) for part, name in pairs)


def could_match(name: str, part: str) -> bool:
    """Whether a word is this name, or a pattern that could stand for it."""
    if part == name:
        return True
    if not any(char in part for char in GLOB_CHARACTERS):
        return False
    if name.startswith(".") and not part.startswith("."):
        return False  # a shell fills in names with a dot only for patterns that begin with one
    return len(part) > PATTERN_MAX or fnmatchcase(name, part)


_WORD_BREAKS = re.compile(r"[\s;&|<>()=,]+")


def glob_words(text: str) -> list[str]:
    """The words of a command that a shell would fill in, however they are quoted around that."""
    words = _WORD_BREAKS.split(re.sub(r"['\"\\]", "", text))
    return [word for word in words if any(char in word for char in GLOB_CHARACTERS)]
