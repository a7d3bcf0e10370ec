"""Paths that no agent may write: what would let it change its own rules."""

import re
from collections.abc import Iterable

ALWAYS = (
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


def normal(path: str, cwd: str) -> str:
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


def protected(path: str, cwd: str, home: str, more: Iterable[str] = ()) -> str | None:
    """What protects the path, if something does. `home` is Interlock's own directory."""
    whole = normal(path, cwd)
    folded = whole.casefold()
    if folded == home.casefold() or folded.startswith(f"{home.casefold()}/"):
        return home
    for end in (*ALWAYS, *more):
        if f"/{end.strip('/').casefold()}/" in f"{folded}/":
            return end
    return None
