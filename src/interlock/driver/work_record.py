"""The record of the work of one session: its journal, and where that says the work stands."""

from contextlib import suppress

import msgspec

from interlock.app.clock import Clock
from interlock.app.unattended.driver_files import DriverJournal
from interlock.core.canonical import Json
from interlock.core.ids import SessionId
from interlock.core.unattended import journal as journals
from interlock.core.unattended.handed_work import HandedWork
from interlock.core.unattended.journal import (
    AdvanceAnswered,
    AdvanceIntended,
    Entry,
    JournalBegun,
    JournalNote,
    ModelAnswered,
    ProofEnded,
    ToolStarted,
)
from interlock.core.unattended.order import Spent
from interlock.core.unattended.proof import ProofRun

ADVANCING_TOOL, SPAWN_AGENT = "continue_workflow", "spawn_agent"


class HandedOutput(msgspec.Struct, frozen=True, rename="camel"):
    notes_markdown: str = ""
    artifacts: Json = None


class HandedStep(msgspec.Struct, frozen=True):
    """The part of a submission that the record keeps."""

    output: HandedOutput = HandedOutput()


class WorkRecord:
    """Everything is appended before it counts."""

    def __init__(
        self, journal: DriverJournal, session: SessionId, clock: Clock, spent_before: Spent
    ) -> None:
        """`spent_before`: as the log has it, for work whose journal was lost."""
        self._journal, self._session, self._clock = journal, session, clock
        entries = journal.entries(session)
        self._next_seq = entries[-1].seq + 1 if entries else 0
        self.is_new = not entries
        self.progress = journals.fold(one.entry for one in entries)
        self._spent_before = spent_before if self.is_new else Spent()
        self.asked: dict[str, str] = {}
        """The approvals and questions that the user was asked, by the calls they are about."""
        self.proofs: dict[tuple[str, str], ProofRun] = {}
        """By the command and the commit."""
        self.handed = HandedWork()
        """The accepted submissions so far."""
        self._intended = ""
        self.spawned = 0
        """The agents that were spawned."""
        for one in entries:
            self._remember(one.entry)

    def append(self, entry: Entry) -> None:
        """Raises `StoreFailure` if it cannot be written, `LeaseLost` if it is another's journal."""
        if self._spent_before != Spent():
            before, self._spent_before = self._spent_before, Spent()
            self.append(JournalBegun(before))
        self._journal.append(self._session, self._next_seq, entry, at_ms=self._clock.now_ms())
        self._next_seq += 1
        self.progress = journals.apply_entry(self.progress, entry)
        self._remember(entry)

    @property
    def spent(self) -> Spent:
        before, own = self._spent_before, self.progress.spent
        return Spent(
            before.turns + own.turns, before.work_ms + own.work_ms, before.usage + own.usage
        )

    def _remember(self, entry: Entry) -> None:
        if isinstance(entry, JournalNote) and entry.kind in ("approval", "question"):
            self.asked[entry.call] = entry.text
        self.spawned += isinstance(entry, ToolStarted) and entry.name == SPAWN_AGENT
        if isinstance(entry, ProofEnded):
            self.proofs[entry.proof.command, entry.proof.commit] = entry.proof
        if isinstance(entry, AdvanceIntended):
            self._intended = entry.arguments
        is_accepted = isinstance(entry, AdvanceAnswered) and entry.outcome == "advanced"
        submissions = [self._intended] if is_accepted else []
        if isinstance(entry, ModelAnswered):  # a client submits by itself
            calls = entry.message.calls
            submissions = [call.arguments for call in calls if call.name.endswith(ADVANCING_TOOL)]
        for arguments in submissions:
            with suppress(msgspec.MsgspecError):  # it was written by a model
                output = msgspec.json.decode(arguments, type=HandedStep).output
                values = output.artifacts if isinstance(output.artifacts, list) else []
                self.handed = self.handed.with_output(output.notes_markdown, values)
