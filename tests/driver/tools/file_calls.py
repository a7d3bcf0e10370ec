"""Calls of the code behind the tools for files, in this process and without a sandbox."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.driver.tools import file_work

PERFORM: dict[str, Callable[[dict[str, Any]], tuple[str, str]]] = {
    "Read": file_work.read_file,
    "Write": file_work.write_file,
    "Edit": file_work.edit_file,
    "Glob": file_work.list_files,
    "Grep": file_work.search_files,
}
DEFAULTS: dict[str, Any] = {
    "offset": 1,
    "limit": 2_000,
    "replace_all": False,
    "glob": "",
    "ignore_case": False,
    "files_only": False,
}


def perform(root: Path, tool: str, path: str = ".", **fields: Any) -> str:
    """Return the answer of a tool for files; of a refusal, its sentence."""
    call = {**DEFAULTS, **fields, "path": path, "worktree": str(root), "roots": (str(root),)}
    call.setdefault("opened_files", [str(root / path)])
    try:
        return PERFORM[tool](call)[1]
    except file_work.FileRefused as refusal:
        return str(refusal)
