"""The stage of demonstrations: real processes in a directory that is removed later."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import interlock
from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.context import App
from interlock.app.unattended import orders, status
from interlock.cli.terminal import print_lines
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import (
    AdvanceIntended,
    Entry,
    ModelAnswered,
    StepBegun,
    ToolEnded,
)
from interlock.core.unattended.order import UnattendedState
from interlock.core.visible_text import make_visible_line

SECONDS_MAX = 60.0
MATERIAL = Path(interlock.__file__).parent / "bundled" / "demo"
TEST = '#!/bin/sh\n[ "$(sh greet.sh Ada)" = "Hello, Ada!" ] && echo ok\n'
_AUTHOR = ("-c", "user.name=Interlock", "-c", "user.email=interlock@localhost")


def greeting(name: str) -> str:
    """A program that greets; whom, is what the demonstrations are about."""
    return f'#!/bin/sh\n# Greet somebody by name.\necho "Hello, {name}!"\n'


def make_repository(repository: Path, files: dict[str, str], message: str) -> None:
    repository.mkdir(parents=True)
    run_git(repository, "init", "-q", "-b", "main")
    commit_files(repository, files, message)


def commit_files(repository: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run_git(repository, "add", ".")
    run_git(repository, *_AUTHOR, "commit", "-q", "-m", message)


def follow_work(app: App, session: SessionId, is_end: Callable[[Entry], bool]) -> None:
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
            yield "driver: submits the step"
        case _:
            return


def wait_until_over(app: App, session: SessionId) -> UnattendedState:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        state = orders.state_of(app, session)
        if state is not None and state.status in ("done", "parked"):
            return state
        time.sleep(0.05)
    raise AssertionError("the demo takes less than a minute")


def run_git(repository: Path, *arguments: str) -> str:
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
def running_server(home: Path) -> Generator[RunningServer]:
    with _running(home, "-m", "interlock", "up", "--port", "0") as process:
        deadline = time.monotonic() + SECONDS_MAX
        while not isinstance(server := find_server(home), RunningServer):
            assert process.poll() is None, "the server of the demo has ended"
            assert time.monotonic() < deadline, "the server of the demo does not start"
            time.sleep(0.05)
        yield server


@contextmanager
def running_driver(home: Path) -> "Generator[subprocess.Popen[bytes]]":
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
