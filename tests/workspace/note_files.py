"""Reading and writing notes where a test wants it to succeed."""

from pathlib import Path

from interlock.workspace.files.atomic_file import Found, Written
from interlock.workspace.projects.notes_folder import Folder


def written(folder: Folder, path: str, text: str, expected: str | None = None) -> Written:
    done = folder.write(path, text, expected=expected)
    assert isinstance(done, Written), done
    return done


def found(folder: Folder, path: str) -> Found:
    read = folder.read(path)
    assert isinstance(read, Found), read
    return read


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}
