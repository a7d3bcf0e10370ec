"""Carry a session to another store: export it, verify the document, import it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from interlock import __version__
from interlock.app.context import App
from interlock.app.refusals import BundleBroken, NoSuchSession, UnhealthySession
from interlock.app.sessions.lookup import check_stream, find_session
from interlock.core import ids
from interlock.core.canonical import CanonicalBytes
from interlock.core.ids import BlobRef, SessionId
from interlock.core.session import bundle, secrets
from interlock.core.session.bundle import BundleContent, BundleRefused
from interlock.core.session.events import blob_refs_of, decode_envelope
from interlock.core.session.head import Head
from interlock.core.session.plan import Stream, fold
from interlock.core.session.run_head import RunHead
from interlock.core.session.secrets import SuspectedSecret
from interlock.workspace.files.regular_file import read_regular_file

DOCUMENT_BYTES_MAX = 512 * 1024 * 1024


class SessionExport(msgspec.Struct, frozen=True):
    session: SessionId
    document: CanonicalBytes
    events: int
    suspects: tuple[SuspectedSecret, ...]
    """Texts that look like secrets. They are in the bundle, unchanged."""


class ImportPreview(msgspec.Struct, frozen=True):
    """A sound bundle: its label, and the session that an import would make."""

    session: SessionId
    """Its id in the store that it was exported from."""
    producer: str
    exported_ms: int
    events: int
    blobs: int
    head: Head
    runs: tuple[RunHead, ...]
    suspects: tuple[SuspectedSecret, ...]


def export(app: App, id_or_prefix: str) -> SessionExport | NoSuchSession | UnhealthySession:
    session = find_session(app.reader, id_or_prefix)
    if isinstance(session, NoSuchSession):
        return session
    health = check_stream(app.reader, session)
    if health.state != "healthy":
        return UnhealthySession(session, health)
    stream = app.reader.known_stream(session)
    links = [link for link in app.reader.links(session) if link.seq < stream.version]
    envelopes = [decode_envelope(link.body) for link in links]
    refs = {ref for envelope in envelopes for ref in blob_refs_of(envelope.event)}
    blobs: dict[BlobRef, bytes] = {ref: app.reader.blob(ref) for ref in refs}
    document = bundle.pack(
        stream, links, blobs, producer=f"interlock {__version__}", at_ms=app.clock.now_ms()
    )
    suspects = _suspects(
        [link.body.decode() for link in links],
        {ref: content.decode() for ref, content in blobs.items()},
    )
    return SessionExport(session, document, len(links), suspects)


def read_document(path: Path) -> bytes | BundleBroken:
    """Read the file of a bundle. An agent may name any: a device, or a file with a large hole."""
    try:
        return read_regular_file(path, DOCUMENT_BYTES_MAX)
    except OSError as error:
        return BundleBroken("file", error.strerror or str(error))


def verify(document: bytes) -> BundleContent | BundleBroken:
    content = bundle.unpack(document)
    if isinstance(content, BundleRefused):
        return BundleBroken(content.part, content.reason)
    return content


def preview_import(document: bytes) -> ImportPreview | BundleBroken:
    """Return what an import would bring. Nothing is recorded."""
    content = verify(document)
    if isinstance(content, BundleBroken):
        return content
    envelopes = [decode_envelope(event.body) for event in content.events]
    head, runs = fold(Stream(content.session), envelopes)
    label = bundle.label(document)
    return ImportPreview(
        content.session,
        label.producer,
        label.exported_at_ms,
        len(content.events),
        len(content.blobs),
        head,
        tuple(runs.values()),
        _suspects([bytes(event.body).decode() for event in content.events], content.blobs),
    )


def import_as_new(
    app: App, document: bytes, workspace: Path | None = None
) -> SessionId | BundleBroken:
    """Import as a session of its own, with new ids; tokens of the old one mean nothing here.

    It is put into `workspace`. Without one it belongs to no project: the data home, which is none,
    stands for that.
    """
    content = verify(document)
    if isinstance(content, BundleBroken):
        return content
    session = ids.session_id(app.entropy(ids.RANDOM_BYTES))
    key = app.keyring.current()
    plan = bundle.adopt(
        content,
        session=session,
        workspace=str(workspace or app.home),
        random=app.entropy,
        key=key,
        at_ms=app.clock.now_ms(),
    )
    app.log.append(plan)
    return session


def _suspects(events: Sequence[str], blobs: Mapping[BlobRef, str]) -> tuple[SuspectedSecret, ...]:
    texts = [
        *((f"event {number}", text) for number, text in enumerate(events)),
        *sorted(blobs.items()),
    ]
    return tuple(
        suspect
        for location, text in texts
        for suspect in secrets.find_suspected_secrets(location, text)
    )
