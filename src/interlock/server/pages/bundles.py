"""Import and export: look at a bundle before it becomes a session, and make one of a session."""

import hashlib
from functools import partial

import msgspec
from starlette.routing import Route

from interlock.app.explain import explain
from interlock.app.explanation import Explanation
from interlock.app.refusals import BundleBroken
from interlock.app.sessions import bundle as use
from interlock.app.sessions.bundle import ImportPreview, SessionExport
from interlock.server.console import Asked, Console, Download, GoTo, Shown
from interlock.server.guard import BODY_BYTES_MAX
from interlock.server.http_refusals import status_of

KEPT_MAX = 4
KEPT_BYTES_MAX = 2 * BODY_BYTES_MAX
KEPT_MS = 15 * 60_000
SUSPECTS_MAX = 100  # that are listed; all of them are counted


class _Kept(msgspec.Struct, frozen=True):
    document: bytes
    until_ms: int


class Shelf:
    """Bundles that were looked at and not yet imported: few, for minutes, in memory only.

    Only the thread that writes comes here.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def put(self, document: bytes, *, now_ms: int) -> str:
        """The name under which it can be taken; the oldest make room."""
        self._tidy(now_ms)
        name = hashlib.sha256(document).hexdigest()
        self._kept.pop(name, None)
        self._kept[name] = _Kept(document, now_ms + KEPT_MS)
        while len(self._kept) > KEPT_MAX or self._size() > KEPT_BYTES_MAX:
            del self._kept[next(iter(self._kept))]
        return name

    def take(self, name: str, *, now_ms: int) -> bytes | None:
        """It can be taken once, so that a second click does not import it again."""
        self._tidy(now_ms)
        found = self._kept.pop(name, None)
        return found.document if found else None

    def _tidy(self, now_ms: int) -> None:
        self._kept = {name: kept for name, kept in self._kept.items() if now_ms < kept.until_ms}

    def _size(self) -> int:
        return sum(len(kept.document) for kept in self._kept.values())


def routes(console: Console) -> list[Route]:
    shelf = Shelf()
    return [
        console.page("/import", choose),
        console.action("/import", partial(check, shelf)),
        console.action("/import/{name}", partial(import_as_new, shelf)),
        console.page("/sessions/{session}/export", export),
        console.page("/sessions/{session}/export/bundle.json", download),
    ]


def choose(_: Asked) -> Shown:
    return _page()


def check(shelf: Shelf, asked: Asked) -> Shown:
    """Look at what was sent. Nothing is recorded yet."""
    document = asked.form.get("bundle")
    if not isinstance(document, bytes) or not document:
        hint = "Choose a file that was made by an export."
        return _refused(Explanation("invalid_arguments", "No file was sent", hint))
    checked = use.preview_import(document)
    if isinstance(checked, BundleBroken):
        return _refused(explain(checked))
    name = shelf.put(document, now_ms=asked.app.clock.now_ms())
    return _page(checked=checked, name=name, size=len(document))


def import_as_new(shelf: Shelf, asked: Asked) -> GoTo | Shown:
    document = shelf.take(asked.params["name"], now_ms=asked.app.clock.now_ms())
    if document is None:
        error = "This bundle is not at hand any more: it was imported, or looked at too long ago"
        hint = "Nothing was imported just now. Look among the sessions, or choose the file again."
        return _refused(Explanation("bundle_broken", error, hint))
    session = use.import_as_new(asked.app, document)
    if isinstance(session, BundleBroken):
        return _refused(explain(session))
    return GoTo(f"/sessions/{session}", "imported")


def export(asked: Asked) -> Shown | Explanation:
    exported = use.export(asked.app, asked.params["session"])
    if not isinstance(exported, SessionExport):
        return explain(exported)
    facts = {
        "session": exported.session,
        "events": exported.events,
        "size": len(exported.document),
        "suspects": exported.suspects,
        "suspects_max": SUSPECTS_MAX,
    }
    return Shown("export.html", f"Export {exported.session}", facts)


def download(asked: Asked) -> Download | Explanation:
    exported = use.export(asked.app, asked.params["session"])
    if not isinstance(exported, SessionExport):
        return explain(exported)
    return Download(f"{exported.session}.json", exported.document)


def _refused(why: Explanation) -> Shown:
    return _page(refused=why, status=status_of(why.code))


def _page(
    *,
    checked: ImportPreview | None = None,
    name: str = "",
    size: int = 0,
    refused: Explanation | None = None,
    status: int = 200,
) -> Shown:
    facts = {
        "checked": checked,
        "name": name,
        "size": size,
        "refused": refused,
        "bytes_max": BODY_BYTES_MAX,
        "suspects_max": SUSPECTS_MAX,
        "kept_minutes": KEPT_MS // 60_000,
    }
    return Shown("import.html", "Import", facts, status=status)
