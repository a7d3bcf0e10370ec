"""`interlock demo --driver`: an unattended run on a throw-away repository, offline, killed once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import interlock
from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.context import App, open_app
from interlock.app.unattended import orders, status
from interlock.app.unattended.orders import OrderedWork, OrderRequest
from interlock.cli.terminal import print_lines
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.unattended.journal import (
    AdvanceIntended,
    Entry,
    ModelAnswered,
    StepBegun,
    ToolEnded,
    ToolStarted,
)
from interlock.core.unattended.order import UnattendedState, dollars
from interlock.core.visible_text import make_visible_line

SECONDS_MAX = 60.0
MATERIAL = Path(interlock.__file__).parent / "bundled" / "demo"
WORKFLOW = "fix-greeting"
FILES = {
    "greet.sh": '#!/bin/sh\n# Greet somebody by name.\necho "Hello, ${2}!"\n',
    "test.sh": '#!/bin/sh\n[ "$(sh greet.sh Ada)" = "Hello, Ada!" ] && echo ok\n',
}
KILL_DURING = "sleep 3"
"""The command during which the driver is killed."""


def play_unattended(directory: Path) -> None:
    """Play it, and print what happens. Everything is in `directory`, which is removed later."""
    home, repository = directory / "home", directory / "greeting"
    script = MATERIAL / "script.json"
    _make_repository(repository)
    home.mkdir(mode=0o700)
    own_script = directory / "script.json"
    own_script.write_bytes(script.read_bytes())
    settings = f'[driver]\nmodel = "scripted:{own_script}"\nautostart = false\n'
    (home / "config.toml").write_text(settings)
    app = open_app(home)
    try:
        with _running_server(home) as server:
            print_lines(f"A server: {server.url}. A repository: {repository}")
            _watch(app, home, repository)
    finally:
        app.close()


def _watch(app: App, home: Path, repository: Path) -> None:
    request = OrderRequest(WorkflowId(WORKFLOW), "Make the test pass", repository)
    ordered = orders.order_work(app, request, place="in the demo")
    assert isinstance(ordered, OrderedWork), ordered
    print_lines(f"Ordered: “{request.goal}”, session {ordered.session}", "")
    with _running_driver(home) as driver:
        _follow(app, ordered.session, lambda entry: _is_kill_point(app, ordered.session, entry))
        print_lines("", f"kill -9 {driver.pid}: the driver dies while a command runs", "")
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    with _running_driver(home):
        _follow(app, ordered.session, lambda _: False)
        state = _wait_until_over(app, ordered.session)
    _print_end(state, repository)


def _print_end(state: UnattendedState, repository: Path) -> None:
    assert state.outcome == "success", state.detail
    spent, cost = state.spent, dollars(state.spent.usage.cost_micros or 0)
    shown = _git(repository, "show", "--stat", "--format=%h %s", state.branch)
    print_lines(
        "",
        f"Done: {state.summary}",
        f"{spent.turns} turns, {spent.usage.tokens:,} tokens, {cost} (of a model that plays a"
        f" script); tools ran at the level `{state.level}` of the sandbox.",
        "",
        f"On the branch {state.branch}, and nowhere else:",
        *shown.splitlines(),
    )


def _follow(app: App, session: SessionId, is_end: Callable[[Entry], bool]) -> None:
    """Print the journal as it grows, until an entry is the end, or the work is over."""
    deadline = time.monotonic() + SECONDS_MAX
    seen = len(status.turns_of(app, session))
    while time.monotonic() < deadline:
        for row in status.turns_of(app, session, first=seen):
            seen = row.seq + 1
            for line in _lines_of(row.entry):
                print_lines(make_visible_line(line)[:110])
            if is_end(row.entry):
                return
        state = orders.state_of(app, session)
        if state is not None and state.is_over:
            return
        time.sleep(0.05)
    raise AssertionError("the demo takes less than a minute")


def _is_kill_point(app: App, session: SessionId, entry: Entry) -> bool:
    if not (isinstance(entry, ToolStarted) and entry.name == "Bash"):
        return False
    answers = [
        row.entry.message
        for row in status.turns_of(app, session)
        if isinstance(row.entry, ModelAnswered)
    ]
    return any(KILL_DURING in call.arguments for call in answers[-1].calls)


def _lines_of(entry: Entry) -> Iterator[str]:
    match entry:
        case StepBegun():
            yield ""
            yield f"# Step {entry.number}: {entry.title}"
        case ModelAnswered():
            if entry.message.text:
                yield f"model:  {entry.message.text}"
            for call in entry.message.calls:
                yield f"model:  {call.name} {call.arguments}"
        case ToolEnded():
            yield f"tool:   {' '.join(entry.result.text.split())}"
        case AdvanceIntended():
            yield "driver: hands the step in"
        case _:
            return


def _wait_until_over(app: App, session: SessionId) -> UnattendedState:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        state = orders.state_of(app, session)
        if state is not None and state.status in ("done", "parked"):
            return state
        time.sleep(0.05)
    raise AssertionError("the demo takes less than a minute")


def _make_repository(repository: Path) -> None:
    folder = repository / ".interlock" / "workflows"
    folder.mkdir(parents=True)
    workflow = MATERIAL / f"{WORKFLOW}.json"
    (folder / f"{WORKFLOW}.json").write_bytes(workflow.read_bytes())
    for name, text in FILES.items():
        (repository / name).write_text(text)
    _git(repository, "init", "-q", "-b", "main")
    _git(repository, "add", ".")
    author = ("-c", "user.name=Interlock", "-c", "user.email=interlock@localhost")
    _git(repository, *author, "commit", "-q", "-m", "A greeting that greets nobody")


def _git(repository: Path, *arguments: str) -> str:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout.strip()


@contextmanager
def _running_server(home: Path) -> Generator[RunningServer]:
    with _running(home, "-m", "interlock", "up", "--port", "0") as process:
        deadline = time.monotonic() + SECONDS_MAX
        while not isinstance(server := find_server(home), RunningServer):
            assert process.poll() is None, "the server of the demo has ended"
            assert time.monotonic() < deadline, "the server of the demo does not start"
            time.sleep(0.05)
        yield server


@contextmanager
def _running_driver(home: Path) -> "Generator[subprocess.Popen[bytes]]":
    with _running(home, "-m", "interlock.driver") as process:
        yield process


@contextmanager
def _running(home: Path, *arguments: str) -> "Generator[subprocess.Popen[bytes]]":
    process = subprocess.Popen(
        [sys.executable, "-P", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=home,
        env={**os.environ, "INTERLOCK_HOME": str(home)},
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
