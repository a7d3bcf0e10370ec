"""What is decided about several agents: values in, values out."""

from typing import Any

import pytest

from interlock.core.coordination import holdings, registration
from interlock.core.coordination.board import AgentPresence, Thresholds, presence_at
from interlock.core.coordination.conflicts import (
    FilesConflict,
    WorkScope,
    find_conflicts,
    reservation_overlaps,
)
from interlock.core.coordination.identities import (
    ADJECTIVES,
    NAME_COUNT,
    NOUNS,
    ParsedId,
    choose_id,
    display_name,
    draw_base_name,
    is_base_name,
    parse_id,
)
from interlock.core.coordination.path_patterns import PathSet
from interlock.core.coordination.preflight import LocalFacts, report
from interlock.core.coordination.records import PathsReserved, ProjectChange
from interlock.core.coordination.refusals import PathsHeld, WorkHeld, WorkNotFree
from tests.core.coordination.tables import MINUTE_MS, RowsMovedInMemory, Table, messages_in

NOON_MS = 1_735_689_600_000
S, DEFAULTS = 1_000, Thresholds()


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ([], "BlueLake-1735689600"),
        (["BlueLake-1735689600"], "BlueLake-1735689601"),
        ([f"BlueLake-{1735689600 + n}" for n in range(3)], "BlueLake-1735689603"),
        ([f"BlueLake-{1735689600 + n}" for n in range(4)], "BlueLake-1735689600000"),
        (
            [*(f"BlueLake-{1735689600 + n}" for n in range(4)), "BlueLake-1735689600000"],
            "BlueLake-1735689600001",
        ),
    ],
)
def test_an_id_that_is_taken_is_followed_by_the_next_second_and_then_milliseconds(
    taken: list[str], expected: str
) -> None:
    """ID1, ID4."""
    assert choose_id("BlueLake", frozenset(taken), now_ms=NOON_MS) == expected
    assert parse_id(expected) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BlueLake-1735689600", ParsedId("BlueLake", NOON_MS)),
        ("Blue-Lake-1735689600", ParsedId("Blue-Lake", NOON_MS)),
        ("BlueLake-1735689600123", ParsedId("BlueLake", NOON_MS + 123)),
        *((text, None) for text in ("BlueLake", "BlueLake-x", "BlueLake-17356", "-1735689600")),
    ],
)
def test_an_id_is_split_at_its_last_hyphen(text: str, expected: ParsedId | None) -> None:
    """ID3."""
    assert parse_id(text) == expected


def test_no_agent_is_called_like_the_person_or_like_us() -> None:
    """LC9: its mailbox would be theirs."""
    names = ("Blue-Lake", "overseer", "Overseer", "all", "interlock", "track:shop", "", "a b")

    assert [name for name in names if is_base_name(name)] == ["Blue-Lake"]


def test_one_id_is_displayed_in_the_zone_of_who_looks() -> None:
    """ID2."""
    shown = [display_name("BlueLake-1735727400", utc_offset_s=hours * 3_600) for hours in (0, -5)]

    assert shown == ["BlueLake (session 10:30)", "BlueLake (session 05:30)"]


def test_a_name_is_drawn_that_nobody_has_and_a_full_pool_does_not_block() -> None:
    """ID8."""
    everybody = frozenset(a + n for a in ADJECTIVES for n in NOUNS)
    assert len(everybody) == NAME_COUNT == 4_278
    free = next(iter(everybody))

    assert draw_base_name(7, everybody - {free}) == free
    drawn = draw_base_name(7, everybody)
    assert drawn not in everybody
    assert draw_base_name(7, everybody | {drawn}) not in everybody | {drawn}


@pytest.mark.parametrize(
    ("silent_ms", "status", "reason"),
    [
        (0, "active", ""),
        (600 * S, "active", ""),
        (600 * S + 1, "stale", "heartbeat_timeout"),
        (1_800 * S, "stale", "heartbeat_timeout"),
        (1_800 * S + 1, "gone", "heartbeat_timeout"),
        (-120 * S, "active", ""),
        (-120 * S - 1, "stale", "clock_skew"),
    ],
)
def test_who_is_there_is_exact_to_the_millisecond(silent_ms: int, status: Any, reason: Any) -> None:
    """DE4, DE5, DE9."""
    silence = None if reason == "clock_skew" else max(0, silent_ms)

    found = presence_at(NOON_MS - silent_ms, NOON_MS, DEFAULTS)

    assert found == AgentPresence(status, silence, reason)


def test_who_was_never_seen_or_at_no_time_is_stale() -> None:
    """DE9."""
    assert presence_at(None, NOON_MS, DEFAULTS).reason == "no_heartbeat"
    assert presence_at(0, NOON_MS, DEFAULTS).reason == "invalid_timestamp"


@pytest.mark.parametrize(
    ("minutes", "is_ended", "conflicts", "default"),
    [(1, False, 1, "switch"), (11, False, 0, "take-over"), (1, True, 0, None)],
)
def test_a_track_conflicts_with_who_is_active_on_it(
    minutes: int, *, is_ended: bool, conflicts: int, default: str | None
) -> None:
    """CF1 (active), CF2 (stale: a takeover is asked for; ended: nothing)."""
    table = Table()
    ana, bo = table.join("Ana", "shop"), table.join("Bo", "shop")
    if is_ended:
        table.record(registration.end(table.board(), ana, "done", at_ms=table.now_ms))
    table.later(minutes, bo)

    found = report(table.board(), bo, WorkScope("shop"), LocalFacts())

    assert len(found.conflicts.track_conflicts) == conflicts
    assert [one.default for one in found.questions] == ([default] if default else [])
    if conflicts:
        assert found.questions[0].options == ("proceed", "switch", "wait")
        assert found.conflicts.track_conflicts[0].last_seen == "60 s ago"


def test_who_joins_a_track_is_announced_to_those_on_it() -> None:
    table = Table()
    ana = table.join("Ana", "shop")
    outcome = registration.register(table.board(), table.newcomer("Bo", "shop"), is_asked_for=True)

    assert isinstance(outcome, tuple)
    assert outcome[0]
    (told,) = messages_in(outcome[0])
    assert (told.to, told.subject.startswith("[CONFLICT] Bo")) == ((ana.id,), True)


@pytest.mark.parametrize("held", ["exclusive", "shared", "own"])
@pytest.mark.parametrize("wanted", ["exclusive", "shared"])
def test_only_what_is_exclusive_of_another_is_in_the_way(held: str, wanted: str) -> None:
    """CF8."""
    table = Table()
    ana, bo = table.join("Ana"), table.join("Bo")
    table.reserve(bo if held == "own" else ana, "src/**", is_exclusive=held != "shared")

    outcome = table.try_reserve(bo, "src/a.py", is_exclusive=wanted == "exclusive")

    is_free = held == "own" or held == wanted == "shared"
    assert isinstance(outcome, ProjectChange if is_free else PathsHeld)


def test_a_conflict_says_who_what_where_how_long_and_what_to_do() -> None:
    """CF9, CF5."""
    table = Table()
    ana, bo = table.join("Ana"), table.join("Bo")
    table.reserve(ana, "src/api/**", reason="the new endpoint")
    table.later(10, bo, ana)

    scope = WorkScope(paths=PathSet(("src/*/x.py",)))
    found = report(table.board(), bo, scope, LocalFacts())

    assert found.conflicts.file_conflicts == (
        FilesConflict(
            ana.id,
            "Ana (session 00:00)",
            "src/api/**",
            "src/*/x.py",
            "src/api/x.py",
            3_000,
            "Leave `src/api/**` alone for 50 min, or write to Ana (session 00:00).",
        ),
    )
    assert [one.options for one in found.questions] == [("proceed", "wait")]
    assert find_conflicts(table.board(), ana.id, scope).has_conflicts is False, "own are none"


def test_all_or_none_is_reserved_and_the_free_ones_are_named() -> None:
    table = Table()
    ana, bo = table.join("Ana"), table.join("Bo")
    table.reserve(ana, "src/**")

    refused = table.try_reserve(bo, "src/a.py", "src/b.py", "docs/x.md")

    assert isinstance(refused, PathsHeld)
    assert refused.free == ("docs/x.md",)
    said = refused.explain()
    assert said.code == "paths_held"
    assert "Ana (session 00:00) holds `src/**`" in said.error


@pytest.mark.parametrize("is_enforced", [False, True])
def test_who_goes_on_anyway_is_recorded_and_the_holder_is_told_unless_enforced(
    *, is_enforced: bool
) -> None:
    """CF5: never blocked in `warn` mode."""
    table = Table()
    ana, bo = table.join("Ana"), table.join("Bo")
    table.reserve(ana, "src/**")

    outcome = table.try_reserve(bo, "src/a.py", proceeds=True, is_enforced=is_enforced)

    if is_enforced:
        assert isinstance(outcome, PathsHeld)
        return
    assert isinstance(outcome, ProjectChange)
    assert [
        one.reservation.despite for one in outcome.events if isinstance(one, PathsReserved)
    ] == [(ana.id,)]
    assert [one.to for one in messages_in(outcome)] == [(ana.id,)]


def test_both_who_hold_the_same_renew_it_unasked_and_the_board_still_shows_it() -> None:
    table = Table()
    ana, bo = table.join("Ana"), table.join("Bo")
    table.reserve(ana, "src/**")
    table.reserve(bo, "src/a.py", proceeds=True)

    for holder, pattern in ((ana, "src/**"), (bo, "src/a.py")):
        table.reserve(holder, pattern)
        (overlap,) = reservation_overlaps(table.board())
        assert (overlap.witness, len(overlap.reservations)) == ("src/a.py", 2)

    assert isinstance(table.try_reserve(bo, "src/b.py"), PathsHeld), "that is another path"


def test_a_reservation_ends_at_its_time_and_can_be_had_again_by_anybody() -> None:
    """Expired iff now >= expires; the holder may be the one who renews."""
    table = Table()
    ana, bo = table.join("Ana"), table.join("Bo")
    table.reserve(ana, "src/**")
    table.now_ms += 3_600_000 - 1
    assert isinstance(table.try_reserve(bo, "src/**"), PathsHeld)
    table.now_ms += 1

    table.reserve(ana, "src/**")
    assert [one.pattern for one in table.board().reservations_of(ana.id)] == ["src/**"]
    assert table.board().live_reservations()[0].since_ms == table.now_ms
    table.now_ms += 3_600_000
    taken = table.reserve(bo, "src/a.py")

    assert [one.subject for one in messages_in(taken)] == [
        "[LEASE LOST] your reservation of `src/**` has ended"
    ]
    assert [one.value.holder for one in table.board().reservations.values()] == [bo.id]


def test_what_is_renewed_meanwhile_is_not_cleaned_up() -> None:
    table = Table()
    ana = table.join("Ana")
    table.reserve(ana, "src/**")
    table.later(60, ana)
    cleaning = registration.clean_up(table.board(), [], at_ms=table.now_ms)
    assert cleaning is not None

    table.reserve(ana, "src/**")

    with pytest.raises(RowsMovedInMemory):
        table.record(cleaning)


@pytest.mark.parametrize(
    ("silent_s", "is_held", "is_stale"),
    [(60, True, False), (601, True, True), (900, True, True), (900.06, False, False)],
)
def test_a_claim_is_kept_until_its_owner_is_silent_for_a_quarter_of_an_hour(
    silent_s: float, *, is_held: bool, is_stale: bool
) -> None:
    """CF3, and the claim lease: 900 s, renewed by whatever the owner does."""
    table = Table()
    ana, bo, item = table.join("Ana"), table.join("Bo"), table.add("Write it")
    table.claim(ana, item)
    table.later(30, ana, bo)
    table.later(silent_s / 60, bo)

    outcome = holdings.claim(table.board(), bo, item.id)

    if is_held:
        assert isinstance(outcome, WorkHeld)
        age_ms = 30 * MINUTE_MS + int(silent_s * 1_000)
        assert outcome == WorkHeld(item.id, ana.id, "Ana (session 00:00)", age_ms, is_stale)
        assert "claimed by Ana (session 00:00), " in outcome.explain().error
    else:
        assert isinstance(outcome, ProjectChange)
        table.record(outcome)
        assert table.board().claims_of(ana.id) == []


def test_who_claims_again_changes_nothing_and_what_waits_is_not_claimed() -> None:
    """CF4."""
    table = Table()
    ana, first = table.join("Ana"), table.add("First")
    second = table.add("Second", first.id)
    table.claim(ana, first)

    assert holdings.claim(table.board(), ana, first.id) is None
    waits = WorkNotFree(second.id, "open", (first.id,))
    assert holdings.claim(table.board(), ana, second.id) == waits
    assert [one.id for one in holdings.ready_items(table.board())] == []
