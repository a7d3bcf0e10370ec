"""Into a client's files and out of them again, and what is in a directory then."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.host import Host, JsonPart
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.own_entries import own_hooks
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallReport, Scope
from interlock.app.hosts.install_plan import Part

KEPT = (".interlock", ".interlock/config.toml")
"""What stays of an install in a project by intention: it is opted in."""
SCOPES: tuple[Scope, ...] = ("user", "project")
PLACES: list[tuple[str, Scope]] = [(name, scope) for name in NAMES for scope in SCOPES]
"""Every host, with the user's files and with those of a project."""


def tree(root: Path) -> dict[str, object]:
    """Everything below a directory but the project's own config."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name in KEPT:
            continue
        mode = stat.filemode(path.lstat().st_mode)
        if path.is_symlink():
            found[name] = (mode, os.readlink(path))
        else:
            found[name] = (mode, path.read_bytes() if path.is_file() else None)
    return found


def put(
    home: Path,
    root: Path,
    program: Program,
    scope: Scope = "user",
    host: Host = claude_code.HOST,
    *,
    is_dry: bool = False,
) -> InstallReport:
    done = use.install(home, host, scope, root, program, at_ms=1, is_dry=is_dry)
    assert isinstance(done, InstallReport), done
    return done


def take(
    home: Path, root: Path, scope: Scope = "user", host: Host = claude_code.HOST
) -> InstallReport:
    done = use.uninstall(home, host, scope, root)
    assert isinstance(done, InstallReport), done
    return done


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def settings_of(root: Path) -> Path:
    return root / ".claude" / "settings.json"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8-sig").strip() or "{}")


def parts_below(host: str, scope: Scope) -> list[tuple[str, Part]]:
    """The parts of an install, each with the name of its file below the root."""
    parts = host_named(host).parts(scope, "/root", "/home", {})
    return [(part.path.removeprefix("/root/"), part) for part in parts]


def json_part(program: Program, host: Host, scope: Scope, root: Path, name: str) -> JsonPart:
    """The part of an install in the file of this name below the root."""
    parts = use.parts_of(program, host, scope, root)
    (part,) = [part for part in parts if part.path == f"{root}/{name}"]
    assert isinstance(part, JsonPart)
    return part


def holds(found: Any, addition: Any) -> bool:
    """Whether everything that was to be put in is there."""
    if isinstance(addition, dict):
        names: dict[str, Any] = addition  # pyright: ignore[reportUnknownVariableType]
        is_object = isinstance(found, dict)
        return is_object and all(k in found and holds(found[k], v) for k, v in names.items())
    if isinstance(addition, list):
        elements: list[Any] = addition  # pyright: ignore[reportUnknownVariableType]
        return isinstance(found, list) and all(element in found for element in elements)
    return found == addition


def is_installed(path: Path, root: Path, program: Program, scope: Scope = "user") -> bool:
    """Whether our entries are in settings of Claude Code, and no others of ours."""
    part = json_part(program, claude_code.HOST, scope, root, ".claude/settings.json")
    found = read(path)
    hooks = list(own_hooks(claude_code.HOST, found))
    return holds(found, part.addition) and len(hooks) == len(claude_code.HOST.events)


def parts(program: Program, host: str, scope: Scope, root: Path) -> list[Part]:
    return use.parts_of(program, host_named(host), scope, root)


def change_json(path: Path, change: Callable[[Any], object]) -> None:
    found = read(path)
    change(found)
    path.write_text(json.dumps(found, indent=3), encoding="utf-8")
