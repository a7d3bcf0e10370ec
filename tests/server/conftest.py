"""A server in this process, over a store with something of everything in it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.app.context import open_app
from interlock.server import live_changes, live_note_changes
from tests.conftest import store_of
from tests.postgres import IN_POSTGRES
from tests.server.forms import SignedIn
from tests.server.http_agent import project_in
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import perform, project_at

if TYPE_CHECKING:  # most of those who run these tests need no browser
    from playwright.sync_api import Browser

    from tests.server.browser_visitor import Chromium, Visitor


@pytest.fixture(scope="module", autouse=True)
def kept_in(request: pytest.FixtureRequest) -> Iterator[str]:
    """One store for a module, whose server outlives its tests."""
    yield from store_of(request)


@pytest.fixture(scope="package", autouse=True)
def short_intervals() -> Iterator[None]:
    """Pages served by this process hear of changes sooner than in production."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_changes, "POLL_SECONDS", 0.05)
        patch.setattr(live_note_changes, "POLL_SECONDS", 0.1)
        patch.setattr(live_note_changes, "FILE_SCAN_SECONDS_MIN", 0.1)
        yield


class Staged:
    """A home and a project, with the sessions in it by what is to be seen in them."""

    def __init__(self, home: Path, project: Path, sessions: dict[str, str]) -> None:
        self.home, self.project, self.sessions = home, project, sessions


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """Made once: those who change it copy it."""
    if IN_POSTGRES:
        pytest.skip("the stage is a file that is copied")
    home = tmp_path_factory.mktemp("staged") / "home"
    project = project_at(tmp_path_factory.mktemp("project") / "bundles")
    app = open_app(home)
    sessions = perform(app, project)
    app.close()
    return Staged(home, project, sessions)


@pytest.fixture(scope="module")
def stage(staged: Staged, tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """A copy that a module may change."""
    home = tmp_path_factory.mktemp("copy") / "home"
    shutil.copytree(staged.home, home)
    return Staged(home, staged.project, staged.sessions)


@pytest.fixture
def own_stage(staged: Staged, tmp_path: Path) -> Staged:
    """A copy for one test alone."""
    shutil.copytree(staged.home, tmp_path / "home")
    return Staged(tmp_path / "home", staged.project, staged.sessions)


@pytest.fixture(scope="module")
def server(stage: Staged) -> Iterator[SiteServer]:
    """The server of the module's copy."""
    with SiteServer(stage.home) as running:
        yield running


@pytest.fixture
def empty_server(tmp_path: Path) -> Iterator[SiteServer]:
    with SiteServer(tmp_path / "home") as running:
        yield running


@pytest.fixture
def signed_in(server: Server) -> SignedIn:
    return SignedIn(server)


@pytest.fixture(scope="session")
def shared_chromium() -> "Iterator[Chromium]":
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        pytest.skip("NOT TESTED: Chromium is not here, so the console is not seen in a browser")
    from tests.server.browser_visitor import Chromium  # noqa: PLC0415 (only where it is here)

    browser = Chromium(program)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def chromium(shared_chromium: "Chromium") -> "Iterator[Browser]":
    with shared_chromium.in_use() as browser:
        yield browser


@pytest.fixture
def visitor(chromium: "Browser", server: Server) -> "Iterator[Visitor]":
    """Somebody who is signed in to the module's server."""
    from tests.server.browser_visitor import Visitor  # noqa: PLC0415 (only where it is here)

    with Visitor(chromium, server) as visiting:
        yield visiting


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With the workflows `line` and `short`."""
    return project_in(tmp_path)


@pytest.fixture
def up(home: Path, project: Path) -> Iterator[SiteServer]:
    """A server for agents, over an empty store."""
    with SiteServer(home, workspace=project) as server:
        yield server


@pytest.fixture(scope="module")
def shared(kept_in: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    """The same for tests that do not mind each other. Each store has its own."""
    assert kept_in
    directory = tmp_path_factory.mktemp("shared")
    with SiteServer(directory / "home", workspace=project_in(directory)) as server:
        yield server
