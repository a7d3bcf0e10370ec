"""Those who are silent: what a take-over and the clean-up decide, and what is refused after it."""

from functools import partial
from typing import NamedTuple

import pytest

from interlock.core.coordination import registration, work_items
from interlock.core.coordination.records import (
    ENDED_IDENTITY,
    Identity,
    IdentityChanged,
    MessageSent,
    PathsReleased,
    ProjectChange,
    WorkItem,
    WorkItemChanged,
)
from interlock.core.coordination.refusals import AlreadyOver, IdentityLost, StillThere
from interlock.core.coordination.registration import TakeoverRequest
from interlock.core.coordination.work_items import WorkItemUpdate
from tests.core.coordination.tables import START_MS, RowsMovedInMemory, Table, messages_in


class StaleScene(NamedTuple):
    table: Table
    ana: Identity
    bo: Identity
    item: WorkItem


def stale_scene() -> StaleScene:
    """Ana holds paths and an item, and is silent; Bo is there."""
    table = Table()
    ana, bo, item = table.join("Ana"), table.join("Bo"), table.add("Write it")
    table.reserve(ana, "src/**", "docs/**")
    table.claim(ana, item)
    table.later(11, bo)
    return StaleScene(table, ana, bo, item)


def test_a_takeover_ends_releases_resets_and_tells_in_one_change() -> None:
    """ST2, AC6."""
    table, ana, bo, _ = stale_scene()
    request = TakeoverRequest(ana.id, bo.id, "it is silent")

    change = registration.take_over(table.board(), request, at_ms=table.now_ms)

    assert isinstance(change, ProjectChange)
    ended, *released, reset, told = change.events
    assert isinstance(ended, IdentityChanged)
    assert ended.identity.end
    assert (ended.identity.end.reason, ended.identity.end.by) == ("taken_over", bo.id)
    assert [type(one) for one in released] == [PathsReleased, PathsReleased]
    assert isinstance(reset, WorkItemChanged)
    assert (reset.item.status, reset.item.assignee, reset.cause) == ("open", "", "reset")
    assert messages_in(change)[0].to == (ana.session,)
    assert isinstance(told, MessageSent)
    assert "[TAKEOVER]" in told.message.subject
    table.record(change)
    board = table.board()
    assert (board.claims_of(ana.id), board.live_reservations()) == ([], [])
    assert (list(board.identities), list(board.ended)) == ([bo.id], [ana.id])


def test_of_two_takeovers_one_wins_and_the_other_is_told_who() -> None:
    """ST3; and who is active, or oneself, is not taken over."""
    table, ana, bo, _ = stale_scene()
    cy = table.join("Cy")
    take = partial(registration.take_over, at_ms=table.now_ms)
    late = take(table.board(), TakeoverRequest(ana.id, cy.id))
    first = take(table.board(), TakeoverRequest(ana.id, bo.id))
    assert isinstance(first, ProjectChange)
    assert isinstance(late, ProjectChange)
    table.record(first)

    with pytest.raises(RowsMovedInMemory):
        table.record(late)
    told = take(table.board(), TakeoverRequest(ana.id, cy.id))
    assert isinstance(told, AlreadyOver)
    assert "was taken over by Bo (session 00:00)" in told.explain().error
    assert isinstance(take(table.board(), TakeoverRequest(bo.id, cy.id)), StillThere)
    assert isinstance(
        take(table.board(), TakeoverRequest(cy.id, cy.id, is_forced=True)), StillThere
    )
    assert isinstance(
        take(table.board(), TakeoverRequest(bo.id, cy.id, is_forced=True)), ProjectChange
    )


@pytest.mark.parametrize("what", ["done", "reclaimed", "claims more", "reserves more"])
def test_a_takeover_is_decided_anew_if_what_is_held_has_moved_on(what: str) -> None:
    """ST10: what was closed or claimed by another is never reset; nothing new is left behind."""
    table, ana, bo, item = stale_scene()
    request = TakeoverRequest(ana.id, bo.id)
    more = table.add("More")
    change = registration.take_over(table.board(), request, at_ms=table.now_ms)
    assert isinstance(change, ProjectChange)
    if what == "done":
        done = work_items.update(table.board(), item.id, WorkItemUpdate("done"), ana)
        assert isinstance(done, ProjectChange)
        table.record(done)
    elif what == "reclaimed":
        table.later(5, bo)
        table.claim(bo, item)
    elif what == "claims more":
        table.claim(ana, more)
    else:
        table.reserve(ana, "more/**")

    with pytest.raises(RowsMovedInMemory):
        table.record(change)

    anew = registration.take_over(table.board(), request, at_ms=table.now_ms)
    assert isinstance(anew, ProjectChange)
    table.record(anew)
    board = table.board()
    assert (board.claims_of(ana.id), [*board.reservations]) == ([], [])
    assert item.id not in {
        one.item.id for one in anew.events if isinstance(one, WorkItemChanged)
    } or (what in ("claims more", "reserves more"))


def test_who_was_taken_over_is_told_so_until_it_registers_anew_with_a_higher_epoch() -> None:
    """ST6."""
    table, ana, bo, _ = stale_scene()
    change = registration.take_over(table.board(), TakeoverRequest(ana.id, bo.id), at_ms=1)
    assert isinstance(change, ProjectChange)
    old = table.try_reserve(ana, "lib/**")
    table.record(change)
    assert isinstance(old, ProjectChange)

    with pytest.raises(RowsMovedInMemory):
        table.record(old)
    lost = registration.register(table.board(), table.newcomer("Ana"), is_asked_for=False)
    assert isinstance(lost, IdentityLost)
    assert lost.explain().code == "lease_lost"
    assert "Bo (session 00:00) has taken over" in lost.explain().error
    again = table.join("Ana")
    assert (again.epoch, again.id) == (2, f"Ana-{START_MS // 1_000 + 660}")


def test_the_gone_are_cleaned_up_once_and_what_they_held_is_free() -> None:
    """ST9; ended identities are forgotten after a week."""
    table, ana, bo, item = stale_scene()
    table.later(20, bo)
    gone = registration.orphans(table.board(), bo.id, frozenset())
    assert [one.id for one in gone] == [ana.id]

    change = registration.clean_up(table.board(), gone, at_ms=table.now_ms)

    assert change is not None
    table.record(change)
    assert table.board().work[item.id].value.status == "open"
    assert [*table.board().reservations] == []
    again = registration.orphans(table.board(), bo.id, frozenset())
    assert registration.clean_up(table.board(), again, at_ms=table.now_ms) is None
    table.later(7 * 24 * 60 + 1, bo)
    forgetting = registration.clean_up(table.board(), [], at_ms=table.now_ms)
    assert forgetting is not None
    table.record(forgetting)
    assert [key for kind, key in table.rows if kind == ENDED_IDENTITY] == []
