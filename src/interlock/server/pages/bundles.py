"""Import and export: look at a bundle before it becomes a session, and make one of a session."""

import hashlib
from functools import partial

import msgspec
from starlette.routing import Route

from interlock.app.refusals import BundleBroken
from interlock.app.sessions import bundle as use
from interlock.app.sessions.bundle import ImportPreview, SessionExport
from interlock.core.explanation import Explanation
from interlock.server.console import Console, Download, Page, PageRedirect, PageRequest
from interlock.server.guard import BODY_BYTES_MAX
from interlock.server.http_refusals import status_of

SHELF_BUNDLES_MAX = 4
SHELF_BYTES_MAX = 2 * BODY_BYTES_MAX
SHELF_MS = 15 * 60_000
SUSPECTS_MAX = 100  # that are listed; all of them are counted


class _ShelvedBundle(msgspec.Struct, frozen=True):
    document: bytes
    until_ms: int


class BundleShelf:
    """Bundles that were looked at and not yet imported: few, for minutes, in memory only.

    Only the thread that writes comes here.
    """

    def __init__(self) -> None:
        self._bundles: dict[str, _ShelvedBundle] = {}

    def put(self, document: bytes, *, now_ms: int) -> str:
        """The name under which it can be taken; the oldest make room."""
        self._tidy(now_ms)
        name = hashlib.sha256(document).hexdigest()
        self._bundles.pop(name, None)
        self._bundles[name] = _ShelvedBundle(document, now_ms + SHELF_MS)
        while len(self._bundles) > SHELF_BUNDLES_MAX or self._size() > SHELF_BYTES_MAX:
            del self._bundles[next(iter(self._bundles))]
        return name

    def take(self, name: str, *, now_ms: int) -> bytes | None:
        """It can be taken once, so that a second click does not import it again."""
        self._tidy(now_ms)
        shelved = self._bundles.pop(name, None)
        return shelved.document if shelved else None

    def _tidy(self, now_ms: int) -> None:
        self._bundles = {
            name: kept for name, kept in self._bundles.items() if now_ms < kept.until_ms
        }

    def _size(self) -> int:
        return sum(len(kept.document) for kept in self._bundles.values())


def routes(console: Console) -> list[Route]:
    shelf = BundleShelf()
    return [
        console.page("/import", choose),
        console.action("/import", partial(check, shelf)),
        console.action("/import/{name}", partial(import_as_new, shelf)),
        console.page("/sessions/{session}/export", export),
        console.page("/sessions/{session}/export/bundle.json", download),
    ]


def choose(_: PageRequest) -> Page:
    return _page()


def check(shelf: BundleShelf, request: PageRequest) -> Page:
    """Look at what was sent. Nothing is recorded yet."""
    document = request.form.get("bundle")
    if not isinstance(document, bytes) or not document:
        hint = "Choose a file that was made by an export."
        return _refusal_page(Explanation("invalid_arguments", "No file was sent", hint))
    checked = use.preview_import(document)
    if isinstance(checked, BundleBroken):
        return _refusal_page(checked.explain())
    name = shelf.put(document, now_ms=request.app.clock.now_ms())
    return _page(checked=checked, name=name, size=len(document))


def import_as_new(shelf: BundleShelf, request: PageRequest) -> PageRedirect | Page:
    document = shelf.take(request.params["name"], now_ms=request.app.clock.now_ms())
    if document is None:
        error = "This bundle is not at hand any more: it was imported, or looked at too long ago"
        hint = "Nothing was imported just now. Look among the sessions, or choose the file again."
        return _refusal_page(Explanation("bundle_broken", error, hint))
    session = use.import_as_new(request.app, document)
    if isinstance(session, BundleBroken):
        return _refusal_page(session.explain())
    return PageRedirect(f"/sessions/{session}", "imported")


def export(request: PageRequest) -> Page | Explanation:
    exported = use.export(request.app, request.params["session"])
    if not isinstance(exported, SessionExport):
        return exported.explain()
    facts = {
        "session": exported.session,
        "events": exported.events,
        "size": len(exported.document),
        "suspects": exported.suspects,
        "suspects_max": SUSPECTS_MAX,
    }
    return Page("export.html", f"Export {exported.session}", facts)


def download(request: PageRequest) -> Download | Explanation:
    exported = use.export(request.app, request.params["session"])
    if not isinstance(exported, SessionExport):
        return exported.explain()
    return Download(f"{exported.session}.json", exported.document)


def _refusal_page(why: Explanation) -> Page:
    return _page(refused=why, status=status_of(why.code))


def _page(
    *,
    checked: ImportPreview | None = None,
    name: str = "",
    size: int = 0,
    refused: Explanation | None = None,
    status: int = 200,
) -> Page:
    facts = {
        "checked": checked,
        "name": name,
        "size": size,
        "refused": refused,
        "bytes_max": BODY_BYTES_MAX,
        "suspects_max": SUSPECTS_MAX,
        "kept_minutes": SHELF_MS // 60_000,
    }
    return Page("import.html", "Import", facts, status=status)
