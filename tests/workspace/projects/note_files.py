"""Reading and writing notes where a test wants it to succeed."""

from pathlib import Path

from interlock.workspace.files.atomic_file import FileContent, WrittenFile
from interlock.workspace.projects.notes_folder import NotesFolder


def written(folder: NotesFolder, path: str, text: str, expected: str | None = None) -> WrittenFile:
    done = folder.write(path, text, expected=expected)
    assert isinstance(done, WrittenFile), done
    return done


def found(folder: NotesFolder, path: str) -> FileContent:
    read = folder.read(path)
    assert isinstance(read, FileContent), read
    return read


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}
