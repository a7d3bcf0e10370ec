"""The rows of a project in memory: what is decided is recorded here as a store would."""

import msgspec

from interlock.core import canonical
from interlock.core.coordination import registration
from interlock.core.coordination.board import Board, Thresholds, board_of
from interlock.core.coordination.holdings import PathRules, ReservationRequest, claim, reserve
from interlock.core.coordination.path_patterns import PathSet
from interlock.core.coordination.records import (
    SEEN,
    Identity,
    Message,
    MessageSent,
    ProjectChange,
    WorkItem,
    plan_change,
)
from interlock.core.coordination.registration import Newcomer
from interlock.core.coordination.work_items import WorkDraft, add
from interlock.core.ids import ProjectId
from interlock.core.project_stream import ProjectRow

START_MS = 1_735_689_600_000
MINUTE_MS = 60_000


class RowsMovedInMemory(Exception):
    """A condition does not hold any more."""


class Table:
    """`later` moves the clock; who is not seen meanwhile grows stale."""

    def __init__(self) -> None:
        self.now_ms, self.seq = START_MS, 0
        self.rows: dict[tuple[str, str], ProjectRow] = {}
        self.thresholds = Thresholds()

    def board(self) -> Board:
        kinds = {"identity", "identity/ended", "reservation", "work", SEEN}
        rows = [row for row in self.rows.values() if row.kind in kinds]
        return board_of(rows, seq=self.seq, now_ms=self.now_ms, thresholds=self.thresholds)

    def record(self, change: ProjectChange) -> None:
        plan = plan_change(ProjectId("p"), change, key=str(self.seq), at_ms=self.now_ms)
        for one in plan.conditions:
            newest = max((row.seq for row in self.rows.values() if row.kind == one.kind), default=0)
            row = self.rows.get((one.kind, one.key or ""))
            is_held = newest <= one.seq if one.key is None else (row.seq if row else 0) == one.seq
            if not is_held:
                raise RowsMovedInMemory(str(one))
        self.seq += 1
        for row in plan.changes:
            self.rows.pop((row.kind, row.key), None)
            if row.content is not None:
                self.rows[row.kind, row.key] = ProjectRow(row.kind, row.key, self.seq, row.content)

    def later(self, minutes: float, *seen: Identity) -> None:
        self.now_ms += int(minutes * MINUTE_MS)
        self.see(*seen)

    def see(self, *identities: Identity) -> None:
        for one in identities:
            content = canonical.encode(self.now_ms)
            self.rows[SEEN, one.id] = ProjectRow(SEEN, one.id, self.seq, content)

    def newcomer(self, base: str, track: str | None = None) -> Newcomer:
        return Newcomer(f"ses_{base}", f"/work/{base}", self.now_ms, 0, base, track)

    def join(self, base: str, track: str | None = None) -> Identity:
        outcome = registration.register(self.board(), self.newcomer(base, track), is_asked_for=True)
        assert isinstance(outcome, tuple)
        change, identity = outcome
        if change:
            self.record(change)
        self.see(identity)
        return identity

    def reserve(self, holder: Identity, *patterns: str, **more: object) -> ProjectChange:
        outcome = self.try_reserve(holder, *patterns, **more)
        assert isinstance(outcome, ProjectChange), outcome
        self.record(outcome)
        return outcome

    def try_reserve(self, holder: Identity, *patterns: str, **more: object) -> object:
        wish = ReservationRequest(PathSet(patterns), 3_600_000)
        rules = PathRules(is_enforced=bool(more.pop("is_enforced", False)))
        wish = msgspec.structs.replace(wish, **more)
        return reserve(self.board(), holder, wish, rules, at_ms=self.now_ms)

    def claim(self, holder: Identity, item: WorkItem) -> None:
        change = claim(self.board(), holder, item.id)
        assert isinstance(change, ProjectChange)
        self.record(change)

    def add(self, title: str, *depends_on: str) -> WorkItem:
        outcome = add(self.board(), WorkDraft(title, depends_on=depends_on), "", frozenset())
        assert isinstance(outcome, tuple)
        change, item = outcome
        if change:
            self.record(change)
        return item


def messages_in(change: ProjectChange) -> list[Message]:
    return [event.message for event in change.events if isinstance(event, MessageSent)]
