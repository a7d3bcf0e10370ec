"""Sources in the console: added, fetched and removed by a button, and never by looking."""

import html
import os
import re
import signal
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.server.server_process import Server
from tests.workspace.git.test_state import run
from tests.workspace.projects.test_sources import remote, write

__all__ = ["remote"]  # a fixture

PAGE = "/workflows/sources"
FLOW = (
    '{"id": "shared", "name": "Shared", "description": "d", "version": "1.0.0",'
    ' "steps": [{"id": "a", "title": "A", "prompt": "Do it."}]}'
)


def test_a_repository_is_fetched_when_somebody_says_so_and_only_then(
    empty_server: Server, remote: Path
) -> None:
    added = empty_server.post(f"{PAGE}/add", {"location": f"file://{remote}", "name": "team"})
    assert (added.status, added.headers["location"]) == (303, PAGE)
    first = run(remote, "rev-parse", "HEAD")
    assert first[:12] in empty_server.get(PAGE).text

    second = write(remote, "shared.json", FLOW)

    assert first[:12] in empty_server.get(PAGE).text, "looking fetches nothing"
    assert "shared" not in empty_server.get("/workflows").text
    assert empty_server.post(f"{PAGE}/fetch", {"name": "team"}).status == 303
    assert second[:12] in empty_server.get(PAGE).text
    catalogue = empty_server.get("/workflows?source=source+team").text
    assert "/workflows/shared" in catalogue
    assert empty_server.post(f"{PAGE}/remove", {"name": "team"}).status == 303
    assert "No sources yet" in empty_server.get(PAGE).text


def test_what_cannot_be_fetched_stays_as_it_was(empty_server: Server, remote: Path) -> None:
    empty_server.post(f"{PAGE}/add", {"location": f"file://{remote}", "name": "team"})
    remote.rename(remote.with_name("moved"))

    page = empty_server.post(f"{PAGE}/fetch", {"name": "team"})

    assert page.status == 409
    assert "What was fetched before stays in use" in page.text


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"location": "/not/there"}, "There is no directory `/not/there`"),
    ({"location": "ext::sh -c touch% x"}, "Nothing is fetched by `ext`"),
    ({"location": "https://me:secret@example.com/x"}, "carries a user's name or password"),
    ({"location": "/tmp", "name": "../up"}, "cannot be the name of a source"),
]


def test_a_location_that_is_refused_is_explained(empty_server: Server) -> None:
    for fields, told in REFUSED:
        page = empty_server.post(f"{PAGE}/add", fields)

        assert page.status == 409, fields
        assert told in html.unescape(page.text), fields
        assert "No sources yet" in page.text, fields


def test_a_directory_is_read_where_it_lies_and_removed_by_its_name(
    empty_server: Server, tmp_path: Path
) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "shared.json").write_text(FLOW)

    assert empty_server.get(f"{PAGE}/add?location={flows}").status == 405
    assert empty_server.post(f"{PAGE}/add", {"location": str(flows)}).status == 303
    page = empty_server.get(PAGE).text
    assert "as it lies there" in page
    assert "1 workflow file" in page
    assert "Fetch now" not in page, "a directory is read where it lies"
    (flows / "shared.json").unlink()
    flows.rmdir()
    assert "cannot be read" in empty_server.get(PAGE).text
    [address] = re.findall(
        r'<a href="(/workflows/~[0-9a-f]+)">', empty_server.get("/workflows").text
    )
    for tab in ("problems", "source"):
        page = empty_server.get(f"{address}?tab={tab}")
        assert (page.status, str(flows) in page.text) == (200, True)
    assert empty_server.post(f"{PAGE}/remove", {"name": "nothing"}).status == 409
    assert empty_server.post(f"{PAGE}/fetch", {"name": "nothing"}).status == 409


def test_nobody_waits_for_a_fetch_and_neither_does_the_end_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "pid"
    slow = tmp_path / "slow-ssh"
    slow.write_text(f"#!/bin/sh\necho $$ > {said}\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(slow))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")  # otherwise git asks it first what it is
    fetching = threading.Thread(target=_left_alone, args=(server := Server(tmp_path / "home"),))
    server.start()
    fetching.start()
    try:
        while not (said.exists() and said.read_text()):
            time.sleep(0.02)  # bounded by the timeout of the test

        assert server.get("/workflows").status == 200
        start = server.post("/workflows/hello/start", {"goal": "x"})
        assert start.status == 409, "the writer is free"
        assert server.stop() == 0
    finally:
        os.kill(int(said.read_text()), signal.SIGKILL)
        fetching.join()


def _left_alone(server: Server) -> None:
    """The server ends in the middle of it, with an answer or without."""
    with suppress(OSError, HTTPException):
        server.post(f"{PAGE}/add", {"location": "ssh://example.invalid/flows.git"})
