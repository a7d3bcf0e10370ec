"""A store with unattended work in every state, as a driver would have left it."""

import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Self, get_args

import msgspec

from interlock.app.context import App, open_app
from interlock.app.sessions.driver_lease import lease_name
from interlock.app.unattended.delivery import end_delivery, record_parts
from interlock.app.unattended.driver_desk import show_step
from interlock.app.unattended.orders import (
    OrderedWork,
    OrderRequest,
    order_work,
    record_move,
    state_of,
    steer_work,
)
from interlock.app.unattended.status import RunningDriver, announce_driver
from interlock.app.unattended.worktrees import make_worktree
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.conversation import (
    ModelMessage,
    SpokenPart,
    ThinkingPart,
    ToolReply,
    ToolRequest,
    Usage,
)
from interlock.core.unattended.delivery import DESPITE_SECRETS, DeliveryRecord
from interlock.core.unattended.journal import (
    AdvanceAnswered,
    AdvanceIntended,
    Entry,
    JournalNote,
    MessageAdded,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    StepBegun,
    ToolEnded,
    ToolStarted,
)
from interlock.core.unattended.order import DeliveryWish, ParkReason, Spent, UnattendedState
from interlock.store.driver_journal import DriverJournal
from interlock.store.trigger_log import Firing, FiringOutcome, TriggerLog
from tests.server.http_agent import Up
from tests.server.stage import HOSTILE, project_at
from tests.trigger_scene import TriggerScene, review_table

DRIVER = "driver of a test"
MODEL = "scripted:quick"
SPENT = Spent(37, 11 * 60_000, Usage(912_345, 21_400, 800_000, 9_000, 1_234_000))
PYTEST = ToolRequest("call-2", "Bash", '{"command": "pytest -q tests/test_import.py"}')


def call(name: str, number: str, **arguments: object) -> ToolRequest:
    return ToolRequest(number, name, msgspec.json.encode(arguments).decode())


class Driving:
    """Unattended work without a driver: what one would write is written here."""

    def __init__(self, home: Path, project: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        # Otherwise the server starts a real one, and it would go on with all of this.
        (home / "config.toml").write_text("[driver]\nautostart = false\n")
        self.app: App = open_app(home)
        self.project = project
        # For long: a lease that must be renewed in time fails on a busy machine.
        self.lease = self.app.log.acquire_lease(lease_name(self.app), DRIVER, ttl_ms=3_600_000)
        self.journal = DriverJournal(home, epoch=self.lease.epoch)
        self._numbers: dict[SessionId, int] = {}

    def leave(self) -> None:
        """End as a driver that was killed ends, some time later: its lease is over."""
        self.app.log.release_lease(self.lease)

    def close(self) -> None:
        self.journal.close()
        self.app.close()

    def order(
        self, goal: str, workflow: str = "ship-a-change", delivery: DeliveryWish | None = None
    ) -> SessionId:
        request = OrderRequest(
            WorkflowId(workflow), goal, self.project, model=MODEL, delivery=delivery
        )
        ordered = order_work(self.app, request, place="in a test")
        assert isinstance(ordered, OrderedWork), ordered
        return ordered.session

    def move(self, session: SessionId, moved: UnattendedMoved) -> UnattendedState:
        state = record_move(self.app, session, moved)
        assert isinstance(state, UnattendedState), state
        return state

    def state(self, session: SessionId) -> UnattendedState:
        state = state_of(self.app, session)
        assert state is not None
        return state

    def begin(self, session: SessionId) -> RenderedAnswer:
        """As a driver begins: with a worktree, and the run started in it."""
        path, branch = make_worktree(self.app.home, session, self.state(session).order)
        moved = UnattendedMoved(
            "working", Spent(), worktree=str(path), branch=branch, level="workspace"
        )
        self.move(session, moved)
        answer = show_step(self.app, session, path)
        assert isinstance(answer, RenderedAnswer), answer
        return answer

    def park(
        self, session: SessionId, reason: ParkReason, detail: str = "", spent: Spent = SPENT
    ) -> None:
        self.begin(session)
        self.move(session, UnattendedMoved("parked", spent, reason=reason, detail=detail))

    def write(self, session: SessionId, *entries: Entry) -> None:
        for entry in entries:
            number = self._numbers.get(session, 0)
            self.journal.append(session, number, entry, at_ms=self.app.clock.now_ms())
            self._numbers[session] = number + 1

    def step(self, session: SessionId, answer: RenderedAnswer, number: int = 1) -> None:
        pending = answer.answer.pending
        assert pending is not None
        token = answer.answer.continue_token
        begun = StepBegun(
            str(answer.run),
            pending.step_id,
            pending.title,
            number,
            token,
            "You work unattended.",
            "Read what matters.",
            MODEL,
            ("Bash", "Read", "complete_step"),
            "workspace",
        )
        self.write(session, begun)

    def turn(self, session: SessionId, text: str, *calls: ToolRequest, thinking: str = "") -> None:
        parts = (*([ThinkingPart(thinking)] if thinking else []), SpokenPart(text), *calls)
        usage = Usage(12_345, 240, 11_000, 300, 21_000)
        stop = "tools" if calls else "end"
        answered = ModelAnswered(ModelMessage(parts), stop, usage, 4_200)
        self.write(session, ModelCalled("d", 100), answered)

    def tool(self, session: SessionId, one: ToolRequest, output: str, code: int = 0) -> None:
        result = ToolReply(one.id, one.name, output, is_error=code != 0)
        self.write(session, ToolStarted(one.id, one.name), ToolEnded(result, 1_300, code))


def repository_at(project: Path) -> None:
    """Make a checkout one with a commit, so that worktrees can be made of it."""
    (project / "importer.py").write_text("def unpack(data):\n    return data\n")
    git = ["git", "-C", str(project), "-c", "user.name=T", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "begin"], check=True)


def perform(driving: Driving) -> dict[str, SessionId]:
    """Sessions by how they stand."""
    seen = {"working": driving.order("Make the import of bundles stream")}
    begin_and_work(driving, seen["working"])
    reached = msgspec.structs.replace(SPENT, turns=200)
    seen["limit"] = driving.order("Work that parks: limit")
    driving.park(seen["limit"], "limit", "200 of 200 turns", reached)
    seen["stuck"] = driving.order("Work that parks: stuck")
    driving.park(seen["stuck"], "stuck", "same call, same error")
    seen["done"] = driving.order("Raise the coverage of the parser")
    driving.begin(seen["done"])
    end = UnattendedMoved("done", SPENT, outcome="success", summary="Covered **every** branch.")
    driving.move(seen["done"], end)
    seen["undelivered"] = driving.order(
        "Deliver it", delivery=DeliveryWish(("push", "comment"), "nowhere", "group/name")
    )
    refuse_delivery(driving, seen["undelivered"])
    seen["hostile"] = driving.order(f"Goal {HOSTILE}")
    begin_and_work(driving, seen["hostile"], HOSTILE)
    seen["queued"] = driving.order("Update the dependencies")
    seen["second"] = driving.order("Write the release notes")
    return seen


def refuse_delivery(driving: Driving, session: SessionId) -> None:
    """Its end, and what a job would have recorded of it, with the words of a forge."""
    driving.begin(session)
    driving.move(session, UnattendedMoved("done", SPENT, outcome="success"))
    state = driving.state(session)
    assert state.delivery is not None
    job, bad = state.delivery.job, f"there may be secrets in it: {HOSTILE} {DESPITE_SECRETS}"
    records = (
        DeliveryRecord("push", "done", f"origin {HOSTILE}", "javascript:window.pwned=1"),
        DeliveryRecord("comment", "skipped", f"it was closed {HOSTILE}", "https://127.0.0.1:9/x"),
        DeliveryRecord("check", "refused", bad),
    )
    record_parts(driving.app, session, job, records)
    end_delivery(driving.app, session, job, "refused", f"check: {bad}")


class Crew:
    """A server over a store with unattended work in every state, and who plays the driver."""

    def __init__(self, root: Path) -> None:
        self.project = project_at(root / "bundles")
        repository_at(self.project)
        self.driving = Driving(root / "home", self.project)
        self.sessions = perform(self.driving)
        self.triggers = fire_triggers(self.driving, root)
        announce(self.driving)
        self.server = Up(root / "home")

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()
        self.driving.close()


def fire_triggers(driving: Driving, root: Path) -> TriggerScene:
    """Triggers of a project beside it, with everything that may come of one; strangers wrote it."""
    scene = TriggerScene(root)
    nightly = {"source": "cron", "schedule": "0 3 * * *", "zone": "UTC", "workflow": "hello"}
    scene.write(
        review=review_table(goal=f"Goal {HOSTILE}", authors=[f"Author {HOSTILE}"], quote=HOSTILE),
        nightly={**nightly, "goal": "Tidy up", "limits": {"turns": 9}, "enabled": False},
    )
    place = scene.path("review").removeprefix("/hooks/")
    with closing(TriggerLog(scene.home)) as log:
        for outcome in get_args(FiringOutcome):
            told = Firing(driving.app.clock.now_ms(), outcome, f"Detail {HOSTILE}", HOSTILE)
            log.record(place, told)
    return scene


def begin_and_work(driving: Driving, session: SessionId, words: str = "quietly") -> None:
    """A few turns with everything that a journal can have, and a change in the worktree."""
    answer = driving.begin(session)
    driving.step(session, answer)
    read = call("Read", "call-1", path="importer.py")
    driving.turn(
        session, f"I read the importer {words} first.", read, thinking=f"Where is it? {words}"
    )
    driving.tool(session, read, f"def unpack(data):\n    return data\n{words}")
    steer_work(
        driving.app, session, f"Mind the tests {words}", place="in a test", steer=f"steer_{session}"
    )
    said = f"A person who watches says: Mind the tests {words}"
    driving.write(session, MessageAdded(said, "steer", f"steer_{session}"))
    driving.write(session, ModelCalled("d", 100))
    driving.write(session, ModelFailed("rate_limited", f"429: slow down {words}", wait_ms=2_000))
    driving.turn(session, "Now the **tests**:\n\n- one\n- two", PYTEST)
    driving.tool(session, PYTEST, f"{words}\n" + "E   assert 1 == 2\n" * 2_000, code=1)
    driving.write(session, JournalNote("limit", f"80 % of the turns are used {words}"))
    complete = call("complete_step", "call-3", notes=f"Read it all {words}\n\n1. It is whole.")
    driving.turn(session, "", complete)
    driving.write(session, AdvanceIntended("call-3", "token", "{}"))
    driving.write(session, AdvanceAnswered("blocked", f"Say more {words}", "token"))
    running = call("Bash", "call-4", command="sleep 300")
    driving.turn(session, "I wait.", running)
    driving.write(session, ToolStarted(running.id, running.name))
    worktree = Path(driving.state(session).worktree)
    (worktree / "importer.py").write_text(
        f"def unpack(parts):\n    # {words}\n    yield from parts\n"
    )
    (worktree / "new file.txt").write_text(f"{words}\n")


def announce(driving: Driving) -> None:
    """Let it look as if a driver ran in this process."""
    started_ms = driving.app.clock.now_ms() - 120_000
    driver = RunningDriver(os.getpid(), DRIVER, "0", started_ms, "workspace", 1)
    announce_driver(driving.app.home, driver)
