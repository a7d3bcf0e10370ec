"""Several agents of one project, each as in a process of its own, and the clock that they share."""

import subprocess
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.app.context import App, CoordinationCache
from interlock.app.coordination.holdings import (
    ReservedPaths,
    ReserveRequest,
    add_work,
    claim_work,
    reserve_paths,
)
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.preflight import PreflightRequest, run_preflight
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.app.coordination.takeovers import TakenOverIdentity, TakeoverWish, take_over
from interlock.core.coordination.board import Board
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.records import (
    CoordinationEvent,
    Identity,
    Message,
    WorkItem,
    decode_entry,
)
from interlock.core.coordination.work_items import WorkDraft
from tests.scenes import SettableClock

T = TypeVar("T")
START_MS = 1_735_689_600_000
MINUTE_MS = 60_000


class Team:
    def __init__(self, app: App, root: Path) -> None:
        self.clock = SettableClock(START_MS)
        self.app = msgspec.structs.replace(app, clock=self.clock, store_clock=self.clock)
        self.root, self.desk = root, open_desk(self.app, root)

    def process(self) -> App:
        """The app as another process has it, which remembers nothing of this one."""
        return msgspec.structs.replace(self.app, coordination=CoordinationCache())

    def later(self, minutes: float) -> None:
        self.clock.at_ms += int(minutes * MINUTE_MS)

    def board(self) -> Board:
        return read_board(self.app, self.desk)

    def events(self) -> list[CoordinationEvent]:
        entries = self.app.reader.project_entries(self.desk.project)
        return [event for entry in entries for event in decode_entry(entry.body).events]

    def join(self, name: str, track: str | None = None) -> Identity:
        return expect(Identity, register(self.app, self.desk, who(name, track)))

    def preflight(
        self, name: str, track: str | None = None, *paths: str, items: tuple[str, ...] = ()
    ) -> PreflightReport:
        request = PreflightRequest(paths, items)
        found = run_preflight(self.app, self.desk, who(name, track), request)
        return expect(PreflightReport, found)

    def reserve(self, name: str, *paths: str) -> ReservedPaths:
        request = ReserveRequest(paths)
        return expect(ReservedPaths, reserve_paths(self.app, self.desk, who(name), request))

    def add(self, title: str) -> WorkItem:
        return expect(WorkItem, add_work(self.app, self.desk, who("Ana"), WorkDraft(title)))

    def claim(self, name: str, item: str) -> WorkItem:
        return expect(WorkItem, claim_work(self.app, self.desk, who(name), item))

    def send(self, name: str, to: str, subject: str) -> Message:
        draft = MessageDraft((to,), subject)
        return expect(Message, send_message(self.app, self.desk, who(name), draft))

    def take_over(self, name: str, identity: str) -> TakenOverIdentity:
        wish = TakeoverWish(identity, "it is silent")
        return expect(TakenOverIdentity, take_over(self.app, self.desk, who(name), wish))


def who(name: str, track: str | None = None) -> Participant:
    return Participant(name if name.startswith("ses_") else f"ses_{name}", base_of(name), track)


def base_of(name: str) -> str:
    return "" if name.startswith("ses_") else name


def expect(kind: type[T], value: object) -> T:
    assert isinstance(value, kind), value
    return value


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
