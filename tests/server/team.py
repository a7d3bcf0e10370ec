"""Several agents in one project: a store in which they have registered, made by the use cases."""

import subprocess
from pathlib import Path
from typing import Any, Self

import msgspec

from interlock.app.context import App, open_app
from interlock.app.coordination.holdings import (
    ReservedPaths,
    ReserveRequest,
    add_work,
    claim_work,
    reserve_paths,
)
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.app.gate import opt_in
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import (
    CoordinationEvent,
    Identity,
    Message,
    WorkItem,
    decode_entry,
)
from interlock.core.coordination.work_items import WorkDraft
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.workspace.machine import clients, processes
from tests.scenes import SettableClock
from tests.sessions import begin_recorded

MINUTE_MS = 60_000


class Team:
    """Agents at work. Each one's call can be some time ago, by the clock of the store."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home, self.project = home, project
        project.mkdir(parents=True, exist_ok=True)
        git = ["git", "-C", str(project)]
        subprocess.run(["git", "init", "-q", "-b", "main", str(project)], check=True)
        subprocess.run([*git, "config", "user.email", "a@b.c"], check=True)
        subprocess.run([*git, "config", "user.name", "A"], check=True)
        opt_in.opt_in(project, "standard")
        self.app = open_app(home)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.app.close()

    def app_at(self, ago_ms: int = 0) -> App:
        """As it was then."""
        clock = SettableClock(self.app.store_clock.now_ms() - ago_ms)
        return msgspec.structs.replace(self.app, store_clock=clock)

    @property
    def desk(self) -> ProjectDesk:
        return open_desk(self.app, self.project)

    def join(
        self, name: str, *, track: str | None = None, ago_ms: int = 0, pid: int | None = None
    ) -> SessionId:
        """An agent with a session of its own; `pid` is its process, which runs."""
        conversation = Conversation("claude-code", f"talk-{name}")
        session = begin_recorded(self.app, self.project, conversation).session
        if pid is not None:
            (process,) = processes.running_processes([pid])
            clients.remember(self.home, process, "claude-code", f"talk-{name}", now_ms=1)
        self.registered(session, name, track=track, ago_ms=ago_ms)
        return session

    def registered(
        self, session: str, name: str, *, track: str | None = None, ago_ms: int = 0
    ) -> Identity:
        who = Participant(session, name, track, "claude-code")
        identity = register(self.app_at(ago_ms), self.desk, who)
        assert isinstance(identity, Identity)
        return identity

    def reserve(
        self, session: str, *paths: str, minutes: float = 60, ago_ms: int = 0, reason: str = ""
    ) -> ReservedPaths:
        """Whoever else holds them: it goes on all the same."""
        request = ReserveRequest(paths, round(minutes * MINUTE_MS), reason=reason, proceeds=True)
        outcome = reserve_paths(self.app_at(ago_ms), self.desk, Participant(session), request)
        assert isinstance(outcome, ReservedPaths)
        return outcome

    def write(self, session: str, *to: str, subject: str, body: str = "", **more: Any) -> Message:
        draft = MessageDraft(to, subject, body, **more)
        outcome = send_message(self.app_at(), self.desk, Participant(session), draft)
        assert isinstance(outcome, Message)
        return outcome

    def add(self, title: str, *depends_on: str, priority: int = 2) -> WorkItem:
        draft = WorkDraft(title, depends_on=depends_on, priority=priority)
        outcome = add_work(self.app_at(), self.desk, Participant("person:ana"), draft)
        assert isinstance(outcome, WorkItem)
        return outcome

    def claim(self, session: str, item: WorkItem, *, ago_ms: int = 0) -> None:
        outcome = claim_work(self.app_at(ago_ms), self.desk, Participant(session), item.id)
        assert isinstance(outcome, WorkItem)

    def events(self) -> list[CoordinationEvent]:
        """All that was recorded, in order."""
        entries = self.app.reader.project_entries(self.desk.project)
        return [event for entry in entries for event in decode_entry(entry.body).events]
