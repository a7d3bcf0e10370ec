"""Pages about notes are told of changes, whoever makes them."""
# pyright: reportPrivateUsage=false

import asyncio
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from interlock.app.context import App, open_app
from interlock.app.notes import polling
from interlock.server.live_note_changes import PAUSE_FACTOR, LiveNoteChanges
from interlock.server.worker import Worker
from tests.server.live_listener import Listener
from tests.server.process import until
from tests.server.server_process import Server
from tests.server.stage import Stage
from tests.server.vault import Vault, server, vault

__all__ = ["server", "vault"]  # fixtures

QUIET = 0.8
"""Several looks at the files: so long nothing is told where nothing happens."""


def page_of(server: Server, vault: Vault, seen: str = "") -> Listener:
    """An open page: it has seen the notes as they are, and listens."""
    seen = seen or seen_now(server, vault)
    query = urlencode({"in": str(vault.shop), "since": seen})
    return Listener(server, f"?{query}", path="/live/notes")


def seen_now(server: Server, vault: Vault) -> str:
    return server.get(vault.at()).text.partition("since=")[2].partition('"')[0]


def test_what_is_done_by_hand_is_told_within_seconds(server: Server, vault: Vault) -> None:
    with page_of(server, vault) as page:
        file = vault.write("by-hand.md", "Written by hand.\n")
        assert page.wait()
        file.write_text("Written over.\n")
        assert page.wait()
        file.rename(vault.notes / "moved.md")
        assert page.wait()
        (vault.notes / "moved.md").unlink()
        assert page.wait()


def test_what_an_agent_writes_is_told_at_once(server: Server, vault: Vault) -> None:
    with page_of(server, vault) as page:
        app = open_app(vault.home)
        agent = Stage(app, vault.shop)
        agent.call(
            "write_note",
            title="From an agent",
            content="It was measured.",
            workspacePath=str(vault.shop),
        )
        assert page.wait()
        app.close()


def test_where_nothing_happens_nothing_is_told(server: Server, vault: Vault) -> None:
    with page_of(server, vault) as page:
        while page.wait(QUIET):
            continue  # what another test has written a moment ago
        vault.write("elsewhere.md", "In another project.\n", project=vault.site)
        (vault.notes / "no-note.txt").write_text("Not a note.")
        assert not page.wait(QUIET)


def test_what_was_missed_is_told_to_whoever_comes_back(server: Server, vault: Vault) -> None:
    seen = seen_now(server, vault)
    vault.write("missed.md", "While nobody looked.\n")
    until(lambda: seen_now(server, vault) != seen)  # a visit brings the index up to date

    with page_of(server, vault, seen) as page:
        assert page.wait()


def test_a_change_of_the_settings_is_told(server: Server, vault: Vault) -> None:
    config = vault.shop / ".interlock" / "config.toml"
    with page_of(server, vault) as page:
        config.write_text("[notes\n")
        assert page.wait()
        config.unlink()
        assert page.wait()


def test_only_the_user_hears_and_only_of_projects_that_are_known(
    server: Server, vault: Vault
) -> None:
    path = f"/live/notes?{urlencode({'in': str(vault.unknown)})}"
    unknown = server.get(path)

    assert unknown.status == 404
    assert json.loads(unknown.body)["code"] == "unknown_session"
    assert server.ask("GET", path, is_signed=False).status == 401
    assert server.ask("HEAD", f"/live/notes?{urlencode({'in': str(vault.shop)})}").status == 200


def test_a_project_that_fails_for_a_while_ends_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(tmp_path)
    vault.fill()
    real, failures = polling.notes_state, 0

    def failing(app: App, workspace: Path) -> str:
        nonlocal failures
        if failures < 2 and workspace == vault.shop:
            failures += 1
            raise PermissionError(13, "Permission denied")
        return real(app, workspace)

    async def heard() -> bytes:
        worker = Worker("reader", lambda: open_app(vault.home))
        live = LiveNoteChanges(worker)
        query = urlencode({"in": str(vault.shop), "since": "what was before"}).encode()
        asked = Request({"type": "http", "method": "GET", "query_string": query, "headers": []})
        try:
            stream = await live.stream(asked)
            assert isinstance(stream, StreamingResponse)
            async for news in stream.body_iterator:
                assert isinstance(news, bytes)
                if b"event: changed" in news:
                    return news
        finally:
            live.end()
            worker.stop()
        return b""

    monkeypatch.setattr(polling, "notes_state", failing)

    assert b"event: changed" in asyncio.run(heard())
    assert failures == 2


@pytest.mark.parametrize(("is_behind", "scans"), [(False, 1), (True, 6)])
def test_after_a_costly_look_at_the_files_there_is_a_long_pause_unless_some_are_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_behind: bool, scans: int
) -> None:
    """So an open page costs less than one per cent of a processor."""
    found: list[Path] = []

    def poll(_: App, workspace: Path) -> polling.NotesPoll:
        if workspace == tmp_path:  # the server of the module looks at others
            found.append(workspace)
        return polling.NotesPoll("state", cpu_seconds=1.0, is_behind=is_behind)

    async def look_six_times() -> None:
        worker = Worker("reader", lambda: open_app(tmp_path / "home"))
        live = LiveNoteChanges(worker)
        live._next_file_scan[tmp_path] = 0.0
        try:
            for _ in range(6):
                await live._state(tmp_path)
        finally:
            worker.stop()

    monkeypatch.setattr(polling, "poll_files", poll)

    def notes_state(*_: object) -> str:
        return "state"

    monkeypatch.setattr(polling, "notes_state", notes_state)
    asyncio.run(look_six_times())

    assert len(found) == scans
    assert PAUSE_FACTOR >= 100
