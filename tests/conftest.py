"""Fixtures that every test may use, and the wall between the tests and the user's own data."""

import gc
import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from interlock.agents.hosts.recognition import AGENT_VARIABLES
from interlock.app.callers import agent_detection
from interlock.app.context import App, open_app
from interlock.workspace.machine import processes
from tests.effort import EFFORT, load_hypothesis_profile
from tests.postgres import IN_POSTGRES, MISSING, Cluster, binaries
from tests.run_directory import RunDirectory

RUN_DIRECTORY = None if "PYTEST_XDIST_WORKER" in os.environ else RunDirectory()
load_hypothesis_profile()

gc.disable()  # everything that collection makes stays, so searching it for garbage is wasted

os.environ.pop("INTERLOCK_STORE", None)  # the user's

LONGEST_SUITES = ("crash", "server", "mcp", "e2e", "conformance")
"""They come first: with two processes, a long file that comes last is waited for by one of them."""


_homes = count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data home of the test's own. HOME is replaced too: no test can reach the real one."""
    # `mktemp` looks at every directory that is there for the next number.
    base = tmp_path_factory.getbasetemp() / f"home-{next(_homes)}"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(base))
    monkeypatch.setenv("INTERLOCK_HOME", str(base / "interlock"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return base / "interlock"


@pytest.fixture(autouse=True)
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person types what the tests run in their own process, whoever runs the tests.

    Only variables that a test sets tell otherwise. `tests.person` runs other processes so.
    """
    for name in AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ATTENDED", "1")
    monkeypatch.setattr(processes, "can_open_terminal", lambda: True)
    monkeypatch.setattr(agent_detection, "ancestors", _no_ancestors)
    monkeypatch.setattr(processes, "environment_of", _no_variables)


def _no_ancestors(_: int) -> list[processes.Process]:
    return []


def _no_variables(_: int) -> dict[str, str]:
    return {}


@pytest.fixture(autouse=True)
def kept_in(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the data homes of a test have their stores: `file`, or `postgres`, all the same one."""
    yield from store_of(request)


def store_of(request: pytest.FixtureRequest) -> Iterator[str]:
    if getattr(request, "param", "postgres" if IN_POSTGRES else "file") == "file":
        yield "file"
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    url = cluster.fresh()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLOCK_STORE", url)
        yield "postgres"
    cluster.give_back(url)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is marked so is run with both stores, unless it is about one of them."""
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if "both_stores" in marks and "sqlite" not in marks and not IN_POSTGRES:
        metafunc.parametrize("kept_in", ["file", "postgres"], indirect=True)


@pytest.fixture(scope="session")
def child() -> Iterator[int]:
    """A process that the tests started, as a client starts its server."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of the tests' own, for as long as they run."""
    if binaries() is None:
        pytest.skip(MISSING)
    made = Cluster()
    yield made
    made.remove()


@pytest.fixture(scope="session")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data home with an empty store. Copying it takes a third of the time that making it does."""
    made = tmp_path_factory.mktemp("template") / "interlock"
    open_app(made).close()
    return made


@pytest.fixture
def app(home: Path, kept_in: str, request: pytest.FixtureRequest) -> Iterator[App]:
    if kept_in == "file" and not home.exists():
        shutil.copytree(request.getfixturevalue("new_home"), home)
    opened = open_app(home)
    yield opened
    opened.close()


_seconds: dict[str, float] = defaultdict(float)
_skipped: dict[str, list[str]] = defaultdict(list)
"""The tests that were skipped, by the reason."""
_leftovers: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[_suite_of(report.nodeid)] += report.duration
    if report.skipped and isinstance(report.longrepr, tuple):
        _skipped[report.longrepr[2].removeprefix("Skipped: ")].append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if anything outlives the tests, once xdist has ended its workers."""
    if RUN_DIRECTORY is not None:
        _leftovers.extend(RUN_DIRECTORY.leftovers())
        if _leftovers and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    if RUN_DIRECTORY is not None:
        RUN_DIRECTORY.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time goes, so that a suite that has grown slow is seen, and what was not tried."""
    longest = sorted(_seconds.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{suite} {seconds / 60:.2f}" for suite, seconds in longest)
    terminalreporter.write_line(f"minutes per suite: {shown}")
    for reason, tests in _skipped.items():
        is_a_gap = reason.startswith("NOT TESTED")
        terminalreporter.write_line(
            f"skipped: {reason} ({len(tests)})", red=is_a_gap, bold=is_a_gap
        )
        for test in tests:
            terminalreporter.write_line(f"  {test}")
    for left in _leftovers:
        terminalreporter.write_line(f"LEFT BEHIND by the tests: {left}", red=True, bold=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, help="run in the random order of this seed")
    parser.addoption("--invariant", help="run only the tests that prove the invariant of this id")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if IN_POSTGRES and item.get_closest_marker("sqlite"):
            item.add_marker(pytest.mark.skip("about the file of SQLite"))
    if chosen := config.getoption("--invariant"):
        items[:] = [
            item
            for item in items
            if any(mark.args == (chosen,) for mark in item.iter_markers("invariant"))
        ]
    elif EFFORT == "quick":
        items[:] = [item for item in items if _is_quick(item)]
    if EFFORT != "long":
        items[:] = [item for item in items if item.get_closest_marker("long") is None]
    items.sort(key=_suite_rank)
    if (seed := config.getoption("--shuffle")) is not None:
        _shuffle(items, random.Random(seed))


def pytest_collection_finish() -> None:
    """Keep what has been collected out of every later search for garbage."""
    gc.freeze()
    gc.enable()


def _shuffle(items: list[pytest.Item], chance: random.Random) -> None:
    """Shuffle files and the tests in a file, which share what their module sets up."""
    ranks = {path: chance.random() for path in sorted({str(item.path) for item in items})}
    items.sort(key=lambda item: (ranks[str(item.path)], chance.random()))


def _is_quick(item: pytest.Item) -> bool:
    """True for what needs no PostgreSQL and takes no seconds."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return (
        item.get_closest_marker("slow") is None
        and not {"cluster", "durable"} & set(item.fixturenames)
        and not any(value in ("postgres", "pooled") for value in parameters)
    )


def _suite_rank(item: pytest.Item) -> int:
    suite = _suite_of(item.nodeid)
    return LONGEST_SUITES.index(suite) if suite in LONGEST_SUITES else len(LONGEST_SUITES)


def _suite_of(node_id: str) -> str:
    return Path(node_id.partition("::")[0]).parts[1].removesuffix(".py")
