"""Copying a session with much content: in parts that stay, whatever happens to the rest."""

import os
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from interlock.app.admin import store_copy
from interlock.app.admin.store_copy import copy
from interlock.app.context import App
from interlock.app.runs.advance import advance
from interlock.app.sessions.lookup import check_streams
from interlock.core.ids import BlobRef
from interlock.core.session.answer import RenderedAnswer
from interlock.store.failures import StoreUnusable
from interlock.store.log_reader import LogReader
from interlock.store.open_store import STORE_FILE, open_target
from interlock.store.sqlite import schema
from interlock.store.sqlite.log_database import SqliteLogDatabase
from tests.app.admin.store_contents import contents, contents_at, copied, quiet
from tests.scenes import output, started

pytestmark = pytest.mark.sqlite  # which store is where is what these are about


class Slow(LogReader):
    """Contents take their time, and one of them cannot be read."""

    fails_at = calls = 0

    def stored_blob(self, ref: BlobRef) -> bytes:
        self.calls += 1
        if self.calls == self.fails_at:
            raise StoreUnusable("The disk is away", "Bring it back.")
        time.sleep(0.03)
        return super().stored_blob(ref)


def test_a_session_with_much_content_is_brought_in_parts_that_stay(
    app: App, url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the server throws out who reads for too long, and all begins from the start."""
    monkeypatch.setattr(store_copy, "BYTES_MAX", 100_000)
    answer = started(app, tmp_path, steps=20)
    for number in range(18):
        content = output("done", context={"content": f"{number} " + "x" * 50_000})
        answered = advance(app, answer.answer.continue_token, content)
        assert isinstance(answered, RenderedAnswer)
        answer = answered
    slow = Slow(SqliteLogDatabase.read_only(home / STORE_FILE), schema_version=schema.VERSION)
    assert [health.state for _, health in check_streams(slow, slow.all_sessions())] == ["healthy"]
    impatient = f"{url}&options=-cidle_in_transaction_session_timeout%3D500"
    slow.fails_at = 2 * slow.calls + 20

    with pytest.raises(StoreUnusable, match="The disk is away"):
        copy(msgspec.structs.replace(app, reader=slow), impatient, quiet)

    with closing(open_target(url, os.urandom)) as there:
        stream = there.log.stream(answer.session)
        assert stream is not None, "what was brought before is there"
        assert stream.version > 10
    slow.fails_at = 0
    done = copied(msgspec.structs.replace(app, reader=slow), impatient)
    assert 0 < done.brought < done.events
    assert contents_at(monkeypatch, home, url) == contents(app)
