"""One session that is worked on: what the user wants of it, where it works, what it may use."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from interlock.app.clock import Clock
from interlock.app.unattended.driver_briefing import DriverBriefing
from interlock.app.unattended.driver_desk import WorkSheet
from interlock.app.unattended.driver_files import DriverJournal
from interlock.app.unattended.driver_settings import DriverSettings
from interlock.core.ids import SessionId
from interlock.core.session.answer import Answer
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.journal import Entry, JournalNote, MessageAdded, StepBegun
from interlock.core.unattended.order import (
    NOTICE_SHARE,
    LimitName,
    Outcome,
    ParkReason,
    Spent,
    UnattendedStatus,
    limit_shares,
    limits_in_words,
)
from interlock.core.unattended.proof import ProofRun
from interlock.driver.model_shelf import ModelShelf
from interlock.driver.server_client import ServerClient
from interlock.driver.tools.tool import Level, Workplace
from interlock.driver.work_record import WorkRecord

DETAIL_CHARS_MAX = 2_000
WRAP_UP = (
    "Wrap up now: finish or undo what is half done, submit the step with what you have, and say in"
    " the notes what is left. At a limit the work stops until the user raises it."
)

WAIVE = "`interlock session waive REQUIREMENT --reason … --session {}`"


class Standstill(Exception):
    """The work stands still until somebody does something about it."""

    def __init__(self, reason: ParkReason, detail: str, *, resume_ms: int = 0) -> None:
        """`resume_ms`: the time at which it continues by itself."""
        super().__init__(detail)
        self.resume_ms = resume_ms
        self.reason: ParkReason = reason
        self.detail = detail


class PauseWanted(Exception):
    """The user wants it to pause, or the driver is shut down."""


class DriverResources(msgspec.Struct, frozen=True):
    """Everything that the sessions of a driver share."""

    home: Path
    settings: DriverSettings
    client: ServerClient
    journal: DriverJournal
    shelf: ModelShelf
    clock: Clock
    contexts: "dict[SessionId, SessionContext]"
    """The sessions that are worked on, spawned ones too."""
    confirm_lease: Callable[[], Awaitable[None]]
    """Waits until no other driver can have taken over."""
    worktree_lock: asyncio.Lock
    """Git cannot make two worktrees of a repository at the same moment."""
    stop: asyncio.Event
    """Set when the driver is shut down."""


class SessionContext:
    def __init__(
        self,
        resources: DriverResources,
        sheet: WorkSheet,
        parent: "SessionContext | None" = None,
    ) -> None:
        self.resources, self.sheet, self.parent = resources, sheet, parent
        self.session, self.order = sheet.session, sheet.state.order
        self.record = WorkRecord(
            resources.journal, sheet.session, resources.clock, sheet.state.spent
        )
        self.worktree, self.branch = Path(sheet.state.worktree or "."), sheet.state.branch
        self.others = sheet.state.others
        self.bases: dict[str, str] = {}
        """The commits that were fetched and not reported yet, by the names of repositories."""
        self.level: Level = "off"
        self.workplace: Workplace | None = None
        self._is_recovered = sheet.state.status == "working"
        """Whether a driver was ended during the work, rather than the work being resumed."""
        self._told: set[str] = set()

    @property
    def settings(self) -> DriverSettings:
        return self.resources.settings

    @property
    def spent(self) -> Spent:
        return self.record.spent

    def append(self, entry: Entry) -> None:
        self.record.append(entry)

    def require_workplace(self) -> Workplace:
        assert self.workplace is not None, "it is made before the work begins"
        return self.workplace

    @property
    def worktrees(self) -> dict[str, str]:
        """All worktrees by the names of their repositories; that of the first is empty."""
        return {"": str(self.worktree), **{place.name: place.worktree for place in self.others}}

    @property
    def checkouts(self) -> dict[Path, Path]:
        """The user's checkouts, by the worktrees in which the work on them is done."""
        found = {self.worktree: Path(self.order.repository)}
        for place in self.others:
            other = self.order.find_repository(place.name)
            assert other is not None, "a worktree is made for what was ordered"
            found[Path(place.worktree)] = Path(other.path)
        return found

    @property
    def step_workplace(self) -> Workplace:
        """Where the tools of the step work that was begun, whoever has begun it."""
        step = self.record.progress.step
        return self.workplace_for(only_reads=step is not None and step.level == "read-only")

    def workplace_for(self, *, only_reads: bool) -> Workplace:
        """Where the tools of a step work: where they are confined, one that reads has its level."""
        workplace = self.require_workplace()
        if not only_reads or workplace.level != "workspace":
            return workplace
        return msgspec.structs.replace(workplace, level="read-only")

    def is_first(self, mark: str) -> bool:
        """Whether something is said for the first time since this driver works on it."""
        is_new = mark not in self._told
        self._told.add(mark)
        return is_new

    def name_call(self, call: str) -> str:
        """The name of a tool call in the whole session: models count anew in each step."""
        step = self.record.progress.step
        return f"{step.token[-12:]}:{call}" if step else call

    @property
    def is_shut_down(self) -> bool:
        return self.resources.stop.is_set()

    def require_no_shutdown(self) -> None:
        """Raise `PauseWanted` if nothing more is to be begun, not even within a turn."""
        if self.is_shut_down:
            raise PauseWanted

    def require_no_pause(self) -> None:
        """Raise `PauseWanted` if it is to pause, here where a turn has ended."""
        self.require_no_shutdown()
        if self.sheet.state.wish == "cancel":  # it has come with the answer to a report
            raise asyncio.CancelledError
        if self.sheet.state.wish in ("pause", "pause_now"):
            raise PauseWanted

    async def require_limits(self, *, warns_model: bool = False) -> None:
        """Raise `Standstill` if a limit is reached, or would be by one more call.

        The user is told once of each limit that comes near, and the model of the first.
        """
        limits, progress = self.sheet.state.limits, self.record.progress
        words = limits_in_words(limits)
        shares = limit_shares(limits, self.spent, next_cost_micros=progress.last_cost_micros)
        for name, share in shares.items():
            if share >= 1:
                raise self.limit_reached(name)
            if share >= NOTICE_SHARE and words[name] not in self.record.progress.warned:
                near = f"{share:.0%} of {words[name]} are used"
                is_model_warned = not {*words.values()}.isdisjoint(self.record.progress.warned)
                if warns_model and not is_model_warned:
                    self.append(MessageAdded(f"{near}. {WRAP_UP}", "driver", limit=words[name]))
                self.append(JournalNote("limit", near, call=words[name]))
                await self.report("working", detail=near)

    def limit_reached(self, name: LimitName) -> Standstill:
        words = limits_in_words(self.sheet.state.limits)
        return Standstill("limit", f"the limit of {words[name]} is reached")

    def require_workable(self, answer: Answer) -> None:
        """Raise `Standstill` where the run waits for a person."""
        if answer.approval:
            raise Standstill("approval", answer.approval.question)
        assert answer.pending is not None, "it waits for nothing else"
        title = answer.pending.title
        if answer.next_intent == "rehydrate_only":
            raise Standstill("stuck", f"ten attempts at “{title}” were not accepted")
        if answer.next_intent == "await_user_confirmation":
            question = f"“{title}” needs something that only you can give"
            self.require_answer(f"question:{answer.continue_token}", question)

    async def brief(self) -> DriverBriefing:
        """Return what the model must know of the project.

        Raises:
            Standstill: the project does not allow changes before a person has done something.
        """
        briefing = await self.resources.client.brief(self.session, self.worktree)
        if briefing.blockers and not self.order.is_read_only:
            lines = " ".join(briefing.blockers)
            why = f"The project requires before any change: {lines} Fix it, or waive it: {WAIVE}"
            raise Standstill("protocol", why.format(self.session))
        return briefing

    def require_answer(self, mark: str, question: str) -> None:
        """Raise `Standstill` until the user has answered, or resumed the work without an answer."""
        is_asked = mark in self.record.asked
        if self.unheard_steers or (is_asked and not self._is_recovered):
            return
        if not is_asked:
            self.append(JournalNote("question", question, call=mark))
        raise Standstill("question", question)

    @property
    def unheard_steers(self) -> list[tuple[str, str]]:
        """The messages of people that the model was not told yet, each with its id."""
        return [one for one in self.sheet.steers if one[0] not in self.record.progress.steered]

    def begin_step(
        self,
        answer: Answer,
        *,
        system: str,
        message: str,
        model: str,
        tools: tuple[str, ...],
        level: Level,
        proof: str = "",
    ) -> None:
        """Write down that the model begins with the pending step, and what it is told first."""
        step = answer.pending
        assert step is not None, "a run that is not complete has a step"
        self.append(
            StepBegun(
                run=answer.introduction.run if answer.introduction else "",
                step=step.step_id,
                title=step.title,
                number=step.number,
                token=answer.continue_token,
                system=system,
                message=message,
                model=model,
                tools=tools,
                level=level,
                proof=proof,
            )
        )

    def pass_on_steers(self) -> list[str]:
        """Write down what a person has said to the model since; each is said once."""
        texts: list[str] = []
        for name, text in self.unheard_steers:
            if self.is_first(name):
                texts.append(f"A person who watches over this work says: {text}")
                self.append(MessageAdded(texts[-1], "steer", name))
        return texts

    async def report(
        self,
        status: UnattendedStatus,
        *,
        reason: ParkReason | None = None,
        detail: str = "",
        outcome: Outcome | None = None,
        commit: str = "",
        proofs: tuple[ProofRun, ...] = (),
        resume_ms: int = 0,
    ) -> None:
        """Tell the server how it stands.

        Raises:
            CallRefused: it is over, or paused, by the user.
            LeaseLost: another driver has taken over.
        """
        moved = UnattendedMoved(
            status=status,
            spent=self.spent,
            reason=reason,
            detail=detail[:DETAIL_CHARS_MAX],
            outcome=outcome,
            steered=self.record.progress.steered,
            worktree=str(self.worktree),
            branch=self.branch,
            level=self.level,
            summary=self.record.handed.notes[:DETAIL_CHARS_MAX] if outcome else "",
            commit=commit,
            others=self.others,
            proofs=proofs,
            resume_ms=resume_ms,
            bases=self.bases,
            merge_base=self.order.merge_base,
        )
        state = await self.resources.client.report(self.session, moved)
        self.sheet, self.bases = msgspec.structs.replace(self.sheet, state=state), {}
