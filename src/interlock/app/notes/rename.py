"""Give a note another path.

A permalink that is written in its frontmatter stays, and with it every link to that. One that is
only made from the path becomes another, since nobody's file is changed by moving it.
"""

from collections.abc import Mapping

from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.lookup import find_text
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NameTaken, NoteRefusal, NotWritten
from interlock.app.notes.results import Done
from interlock.app.notes.sync import parsed
from interlock.app.notes.write_and_index import (
    not_put,
    settled,
    shown_permalink,
    take,
    told,
    withdrawn_if_it_fails,
)
from interlock.core.notes.keys import KeyRank, key_of, keys_of
from interlock.core.notes.versions import version_of
from interlock.workspace.files.atomic_file import Found, Moved
from interlock.workspace.files.sandboxed_path import Outside
from interlock.workspace.projects.notes_folder import Twin

LINKS_MAX = 20


@told
def rename(
    app: App, notes: OpenedNotes, asked: str, to: str, call: RequestKey | None = None
) -> Done | NoteRefusal:
    """`to` is a path, or a folder if it ends with a slash."""
    notes.refresh(app)
    with notes.lock.held():
        if (before := repeated_calls.repeated(app, notes, call)) is not None:
            return before
        meant = find_text(notes, asked)
        if not isinstance(meant, tuple):
            return meant
        row, found = meant
        path = _path(row.path, to)
        version = version_of(found.digest)
        note, problem = parsed(path, found.text)
        hints = _hints(notes, row.path, keys_of(path, title=note.title, permalink=note.permalink))
        done = Done("moved", path, shown_permalink(note.permalink, path), version, hints)
        if path == row.path:
            return done
        repeated_calls.remember(app, notes, call, done, path=row.path, before=found.digest)
        now_ms = app.clock.now_ms()
        with withdrawn_if_it_fails(notes, call):
            moved = notes.folder.move(row.path, path, expected=found.digest)
        if isinstance(moved, Moved | Twin | Outside):
            repeated_calls.withdraw(notes, call)
            return _not_moved(notes, row.path, path, found, moved)
        with settled(notes, call):
            notes.index.remove([row.path])
            take(notes, path, note, moved, now_ms=now_ms, problem=problem)
            notes.overlook(row.path, None)
        return done


def _not_moved(
    notes: OpenedNotes, before: str, path: str, found: Found, refusal: Moved | Twin | Outside
) -> NoteRefusal:
    if not isinstance(refusal, Moved):
        return not_put(path, found.text, refusal)
    now = notes.folder.read(before)
    if isinstance(now, Found) and now.digest == found.digest:
        return NameTaken(path)
    return NotWritten(f"`{before}` was changed in this very moment", "Look at it, and try again.")


def _path(before: str, to: str) -> str:
    name = before.rpartition("/")[2]
    to = to.strip()
    if to.endswith("/"):
        return f"{to.strip('/')}/{name}" if to.strip("/") else name
    return to if to.endswith(".md") else f"{to}.md"


def _hints(notes: OpenedNotes, before: str, names: Mapping[str, KeyRank]) -> tuple[str, ...]:
    """Links that named the old path, and not the title or the permalink, lead nowhere now."""
    linking = notes.index.links_to(before, limit=LINKS_MAX)
    lost = sorted({link.path for link in linking if key_of(link.target) not in names})
    return (f"links to the old name stand in {', '.join(lost)}",) if lost else ()
