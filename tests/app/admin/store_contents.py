"""What a store holds, so that two of them can be compared."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interlock.app.admin.store_copy import CopyReport, copy
from interlock.app.context import App, open_app
from interlock.core.session.events import HostBound, blob_refs_of, decode_envelope
from interlock.store.records import RunSearch, SessionFilter
from tests.stores import Place


def opened(monkeypatch: pytest.MonkeyPatch, home: Path, url: str = "") -> App:
    """The store at `url`, or the file in `home`."""
    if url:
        monkeypatch.setenv("INTERLOCK_STORE", url)
    else:
        monkeypatch.delenv("INTERLOCK_STORE", raising=False)
    return open_app(home)


def contents(app: App) -> dict[str, Any]:
    """Everything that can be asked of a store, but for where it is."""
    reader = app.reader
    sessions = reader.all_sessions()
    links = {session: list(reader.links(session)) for session in sessions}
    events = [
        (session, decode_envelope(link.body).event)
        for session in sessions
        for link in links[session]
    ]
    bound = {
        (event.host, event.host_session) for _, event in events if isinstance(event, HostBound)
    }
    return {
        "order": sessions,
        "links": links,
        "streams": {session: reader.stream(session) for session in sessions},
        "runs": {session: reader.runs(session) for session in sessions},
        "blobs": {ref: reader.blob(ref) for _, event in events for ref in blob_refs_of(event)},
        "rows": {
            session: sorted(reader.rows([session]), key=lambda row: row.run) for session in sessions
        },
        "newest": [
            one.session
            for one in reader.list_sessions(
                SessionFilter(is_archived=None), before=None, limit=1_000
            ).sessions
        ],
        "usage": reader.usage(),
        "shared": reader.shared_tables(),
        "found": {
            words: reader.find_runs(RunSearch(words), limit=1_000)
            for words in (("try",), ("firs",), ("line", "second"), ("meanwhile",), ("nothing",))
        },
        "waiting": [row.run for row in reader.waiting_runs(limit=1_000)],
        "attended": {
            place: reader.attended_sessions_in(place) for place in reader.workspaces(limit=1_000)
        },
        "conversations": {one: reader.session_of_conversation(*one) for one in bound},
        "requests": reader.requests(),
        "keys": dict(app.keyring.keys()),
        "counts": (reader.stats().sessions, reader.stats().events, reader.stats().blobs),
    }


def contents_at(monkeypatch: pytest.MonkeyPatch, home: Path, url: str = "") -> dict[str, Any]:
    with closing(opened(monkeypatch, home, url)) as app:
        return contents(app)


def quiet(_what: str, _done: int, _total: int) -> None:
    """Nobody looks how far it is."""


def to(target: Place) -> str:
    return target.url or str(target.home)


def copied(app: App, where: str) -> CopyReport:
    done = copy(app, where, quiet)
    assert isinstance(done, CopyReport), done
    return done
