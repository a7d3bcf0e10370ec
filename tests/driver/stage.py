"""A stage for unattended work: a repository, a real server, a real driver, a scripted model."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import msgspec

from interlock.app.context import App, open_app
from interlock.app.sessions.driver_lease import current_lease
from interlock.app.unattended import orders
from interlock.app.unattended.orders import OrderedWork, OrderRequest
from interlock.app.unattended.status import turns_of
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.unattended.journal import Entry, ToolEnded
from interlock.core.unattended.order import LimitsWish, UnattendedState
from interlock.core.workflow.definition import Workflow
from tests.child_process import end_with_parent
from tests.scenes import linear
from tests.server.server_process import Server

SECONDS_MAX = 60.0
PLACE = "in a test"
QUICK = """
from interlock.driver import __main__, process
process.TICK_SECONDS, process.STORAGE_RETRY_SECONDS, process.DRAIN_SECONDS = 0.1, 0.5, 2.0
raise SystemExit(__main__.main())
"""
"""A driver that looks, retries and gives up waiting sooner than in production."""
RUN = ("-c", QUICK)
COMMIT = ("-c", "user.name=Ana", "-c", "user.email=ana@localhost", "commit", "-q")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def hand_in(notes: str, **more: Any) -> dict[str, Any]:
    return call("complete_step", notes=notes, **more)


def one_step(*turns: dict[str, Any]) -> dict[str, Any]:
    """Return a script for `linear(1)`: it plays these turns, and the step is submitted."""
    return {"steps": [{"when": "# Step 1 of 1", "turns": [*turns, hand_in("It is done.")]}]}


def line_script(steps: int, *, work: Callable[[int], list[dict[str, Any]]] | None = None) -> Any:
    """A script for `linear(steps)`: each step does its work, and is submitted."""
    return {
        "steps": [
            {
                "when": f"# Step {number} of {steps}: Step {number}",
                "turns": [*(work(number) if work else []), hand_in(f"Step {number} is done.")],
            }
            for number in range(1, steps + 1)
        ]
    }


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class DriverProcess:
    def __init__(self, home: Path, arguments: Sequence[str], environment: dict[str, str]) -> None:
        self.log = home.parent / "driver.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home.parent,
                env=os.environ | {"INTERLOCK_HOME": str(home)} | environment,
                preexec_fn=end_with_parent,  # noqa: PLW1509 (it takes no lock)
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self, number: int = signal.SIGTERM, *, seconds: float = 20) -> int:
        """End it, and return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait(seconds)


class Stage:
    """`with Stage(tmp_path) as stage:`. The driver is started by hand, so that it can be killed."""

    def __init__(self, directory: Path, *, settings: str = "", sections: str = "") -> None:
        self.home, self.repository = directory / "home", directory / "repository"
        self.script = directory / "script.json"
        self.drivers: list[DriverProcess] = []
        self.home.mkdir(mode=0o700)
        self.repository.mkdir()
        model = f'model = "scripted:{self.script}"\nautostart = false\n'
        (self.home / "config.toml").write_text(f"{sections}[driver]\n{model}{settings}\n")
        git(self.repository, "init", "-q", "-b", "main")
        (self.repository / "README.md").write_text("# A project\n")
        git(self.repository, "add", ".")
        git(self.repository, *COMMIT, "-m", "begin")
        self.server = Server(self.home)
        self._app: App | None = None

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        for driver in self.drivers:
            driver.end(signal.SIGKILL)
        if self._app is not None:
            self._app.close()
        self.server.__exit__()

    @property
    def app(self) -> App:
        if self._app is None:
            self._app = open_app(self.home)
        return self._app

    def install(self, *workflows: Workflow) -> None:
        folder = self.repository / ".interlock" / "workflows"
        folder.mkdir(parents=True, exist_ok=True)
        for workflow in workflows:
            (folder / f"{workflow.id}.json").write_bytes(msgspec.json.encode(workflow))
        git(self.repository, "add", ".")
        git(self.repository, *COMMIT, "-m", "workflows")

    def play(self, script: Any) -> None:
        """Give the model its script."""
        self.script.write_text(json.dumps(script))

    def start_driver(self, *arguments: str, **environment: str) -> DriverProcess:
        driver = DriverProcess(self.home, arguments or RUN, environment)
        self.drivers.append(driver)
        return driver

    def order(self, goal: str = "See to it", workflow: str = "line", **options: Any) -> SessionId:
        """Order work. `script`: of a model for this work alone; `limits`: by their names.

        Its proof is `true`, unless a test is about proofs.
        """
        options.setdefault("proof", "true")
        limits = LimitsWish(**options.pop("limits", {}))
        if script := options.pop("script", None):
            path = self.script.with_name(f"script-{len(list(self.script.parent.iterdir()))}.json")
            path.write_text(json.dumps(script))
            options["model"] = f"scripted:{path}"
        request = OrderRequest(
            WorkflowId(workflow), goal, self.repository, limits=limits, **options
        )
        ordered = orders.order_work(self.app, request, place=PLACE)
        assert isinstance(ordered, OrderedWork), ordered
        return ordered.session

    def order_line(self, steps: int = 2, **options: Any) -> SessionId:
        self.install(linear(steps))
        return self.order(**options)

    def state(self, session: SessionId) -> UnattendedState:
        state = orders.state_of(self.app, session)
        assert state is not None, f"{session} works unattended"
        return state

    def wait_for(self, session: SessionId, *statuses: str) -> UnattendedState:
        """Wait until the work has one of these statuses."""
        self.wait_until(lambda: self.state(session).status in statuses, str(statuses), session)
        return self.state(session)

    def wait_for_check_in(self) -> None:
        """Wait for two renewals of the lease: the first may have begun before the last order."""
        for _ in range(2):
            left_ms = self.lease_ms()
            while (now_left_ms := self.lease_ms()) <= left_ms:  # bounded by the test's timeout
                left_ms = now_left_ms
                time.sleep(0.02)

    def lease_ms(self) -> int:
        lease = current_lease(self.app)
        return lease.left_ms if lease else 0

    def wait_until(
        self, is_so: Callable[[], bool], what: str, session: SessionId | None = None
    ) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not is_so():
            if time.monotonic() > deadline:
                state = self.state(session) if session else ""
                logs = "".join(driver.log.read_text()[-3000:] for driver in self.drivers[-1:])
                raise AssertionError(f"not in time: {what}\n{state}\n{logs}")
            time.sleep(0.02)

    def entries(self, session: SessionId) -> list[Entry]:
        return [one.entry for one in turns_of(self.app, session)]

    def results(self, session: SessionId) -> list[ToolEnded]:
        return [entry for entry in self.entries(session) if isinstance(entry, ToolEnded)]

    def model_calls(self, session: SessionId | None = None) -> list[dict[str, Any]]:
        """Every call that the scripted model was asked, in any process."""
        name = self.state(session).order.model if session else f"scripted:{self.script}"
        path = Path(f"{name.removeprefix('scripted:')}.calls")
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def age_lease(self, ms: int) -> None:
        """Change the lease as if so much time had passed since its last renewal."""
        aged = "UPDATE lease SET renewed_ms = renewed_ms - ?, until_ms = until_ms - ?"
        with closing(sqlite3.connect(self.home / "interlock.db")) as db, db:
            db.execute(aged, (ms, ms))

    def worktree(self, session: SessionId) -> Path:
        worktree = self.state(session).worktree
        assert worktree, "it has none yet"
        return Path(worktree)

    def notes(self, session: SessionId) -> list[str]:
        """The notes that were submitted on the path of the run, in order."""
        from interlock.app.sessions.lookup import load_notes  # noqa: PLC0415

        run = self.app.reader.runs(session, latest=1)[-1]
        found = load_notes(self.app, run.run, None)
        assert isinstance(found, list | tuple), found
        return [one.notes for one in found if one.is_standing]


def until_go(mark: str) -> str:
    """A command that runs until there is a file `go` where it works, and prints the mark then."""
    return f"until [ -e go ]; do sleep 0.05; done; echo {mark}"
