"""The stream of a project: many write to it at once, and each only on what it has seen."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.core import canonical
from interlock.core.ids import ProjectId
from interlock.core.project_stream import (
    LeaseCondition,
    OutboxMessage,
    ProjectPlan,
    ProjectRow,
    RowChange,
    RowCondition,
    find_damage,
)
from interlock.store.failures import LeaseLost, RowsMoved
from interlock.store.log import Log
from tests.effort import scale
from tests.scenes import RUN, SESSION, after, noting, opening, random_session
from tests.store.processes import run_together
from tests.stores import Place

PROJECT = ProjectId("shop")
WRITERS, ENTRIES = 6, scale(15, at_least=10)


def entry(key: str, *changes: RowChange, **more: Any) -> ProjectPlan:
    return ProjectPlan(PROJECT, key, canonical.encode({"is": key}), 1_000, changes, **more)


def set_row(key: str, content: str = "x", kind: str = "claim") -> RowChange:
    return RowChange(kind, key, content.encode())


def held(log: Log, kind: str = "claim") -> dict[str, tuple[int, str]]:
    rows = log.project_rows(PROJECT, [kind]).rows
    return {row.key: (row.seq, row.content.decode()) for row in rows}


def is_sound(log: Log) -> bool:
    version, end = log.project_end(PROJECT)
    return not find_damage(log.project_entries(PROJECT), version=version, end=end)


def test_entries_and_rows_are_read_back(log: Log) -> None:
    assert (log.projects(), log.project_rows(PROJECT, ["claim"]).seq) == ([], 0)
    first = entry("one", set_row("a", "ana"), set_row("b", "bo", "path"))

    assert log.append_to_project(first)
    assert log.append_to_project(entry("two", set_row("a", "bo"), RowChange("path", "b", None)))

    assert log.projects() == [PROJECT]
    assert [(e.seq, e.key, e.body) for e in log.project_entries(PROJECT)] == [
        (1, "one", first.body),
        (2, "two", canonical.encode({"is": "two"})),
    ]
    assert [e.key for e in log.project_entries(PROJECT, after=1, limit=5)] == ["two"]
    rows = log.project_rows(PROJECT, ["claim", "path"])
    assert (rows.seq, rows.rows) == (2, (ProjectRow("claim", "a", 2, b"bo"),))
    assert log.project_rows(ProjectId("other"), ["claim"]).rows == ()
    assert is_sound(log)


@pytest.mark.parametrize("place", ["sqlite", "postgres", "pooled"], indirect=True)
def test_what_may_happen_once_happens_once(log: Log) -> None:
    plan = entry("one", set_row("a"), outbox=(OutboxMessage("m", "t", b"x"),))
    assert log.append_to_project(plan)
    log.append_to_project(entry("two", set_row("a", "other")))

    assert log.append_to_project(plan) is False, "also after others have written"

    assert held(log) == {"a": (2, "other")}
    assert log.append_to_project(replace(plan, project=ProjectId("other")))


@pytest.mark.invariant("append-refuses-stale")
@pytest.mark.parametrize(
    ("condition", "is_written"),
    [
        (RowCondition("claim", "a", 1), True),
        (RowCondition("claim", "a", 0), False),
        (RowCondition("claim", "a", 2), False),
        (RowCondition("claim", "none", 0), True),
        (RowCondition("claim", "none", 1), False),
        (RowCondition("path", "a", 0), True),
        (RowCondition("claim", None, 2), True),
        (RowCondition("claim", None, 1), False),
        (RowCondition("path", None, 0), True),
    ],
)
def test_an_entry_is_written_only_if_the_rows_are_as_they_were(
    log: Log, condition: RowCondition, *, is_written: bool
) -> None:
    log.append_to_project(entry("one", set_row("a")))
    log.append_to_project(entry("two", set_row("b")))
    plan = entry(
        "three",
        set_row("c"),
        conditions=(RowCondition("claim", "b", 2), condition),
        outbox=(OutboxMessage("m", "t", b"x"),),
    )

    if is_written:
        assert log.append_to_project(plan)
    else:
        with pytest.raises(RowsMoved):
            log.append_to_project(plan)

    assert ("c" in held(log), len(log.outbox(limit=9))) == (is_written, is_written)
    assert log.project_end(PROJECT)[0] == 2 + is_written
    assert is_sound(log)


def test_a_row_that_was_removed_and_made_again_is_not_the_one_before(log: Log) -> None:
    log.append_to_project(entry("taken", set_row("a")))
    log.append_to_project(entry("given back", RowChange("claim", "a", None)))
    log.append_to_project(entry("taken again", set_row("a")))

    with pytest.raises(RowsMoved):
        log.append_to_project(entry("late", conditions=(RowCondition("claim", "a", 1),)))


def test_the_same_kind_and_key_in_another_project_is_another_row(log: Log) -> None:
    log.append_to_project(entry("one", set_row("a")))
    other = replace(entry("one", set_row("a", "theirs")), project=ProjectId("other"))

    assert log.append_to_project(replace(other, conditions=(RowCondition("claim", "a", 0),)))

    assert held(log) == {"a": (1, "x")}


def test_an_entry_that_is_refused_leaves_the_others_of_a_group_alone(log: Log) -> None:
    log.append(opening())
    with log.group_commit():
        assert log.append(noting(after(opening()), "one"))
        assert log.append_to_project(entry("one", set_row("a")))
        with pytest.raises(RowsMoved):
            log.append_to_project(entry("two", conditions=(RowCondition("claim", "a", 0),)))
        assert log.append_to_project(entry("three", set_row("b")))
        assert log.append_to_project(entry("three")) is False

    assert held(log) == {"a": (1, "x"), "b": (2, "x")}
    assert log.stream(SESSION, RUN) == after(noting(after(opening()), "one"))


def test_whoever_looks_for_changes_notices(place: Place) -> None:
    log, watcher = place.log(), place.log()
    before = watcher.change_marker()

    log.append_to_project(entry("one"))

    for _ in range(1_000):
        if watcher.change_marker() != before:
            break
    assert watcher.change_marker() != before
    log.close()
    watcher.close()


def test_damage_is_found_and_located(place: Place) -> None:
    log = place.log()
    for key in ("one", "two", "three"):
        log.append_to_project(entry(key))
    place.run("UPDATE project_entry SET body = ? WHERE key = 'two'", b"forged")

    version, end = log.project_end(PROJECT)
    entries = list(log.project_entries(PROJECT))
    assert find_damage(entries, version=version, end=end) == "entry 2 does not match its digest"
    assert find_damage(entries[:1], version=3, end=end) == "2 entries are missing at the end"
    assert find_damage(entries[1:], version=3, end=end) == "entry 1 is missing"
    assert find_damage(entries[:1], version=1, end=end) == (
        "the last digest is not the recorded one"
    )
    log.close()


@pytest.mark.parametrize("holds", [True, False])
def test_what_rests_on_a_lease_is_written_only_while_that_is_ours(log: Log, *, holds: bool) -> None:
    lease = log.acquire_lease("driver", "ana", ttl_ms=60_000)
    log.append(opening())
    if not holds:
        log.release_lease(lease)
        assert log.acquire_lease("driver", "bo", ttl_ms=60_000).epoch == 2
    rests = LeaseCondition("driver", lease.epoch)
    message = (OutboxMessage("m", "t", b"x"),)
    in_project = entry("one", set_row("a"), lease=rests)
    in_session = replace(noting(after(opening()), "one"), lease=rests, outbox=message)

    for append in (lambda: log.append_to_project(in_project), lambda: log.append(in_session)):
        if holds:
            assert append()
        else:
            with pytest.raises(LeaseLost):
                append()

    assert (held(log) != {}, len(log.outbox(limit=9))) == (holds, holds)
    stream = log.stream(SESSION)
    assert stream is not None
    assert stream.version == 2 + holds
    if holds:
        log.acquire_lease("driver", "ana", ttl_ms=60_000)
        assert log.append(in_session) is False, "what is there stays there"


def test_what_was_recorded_under_a_lease_that_is_lost_is_recorded(log: Log) -> None:
    """Whoever repeats a call whose answer was lost is not told that nothing was written."""
    lease = log.acquire_lease("driver", "ana", ttl_ms=60_000)
    condition = LeaseCondition("driver", lease.epoch)
    plan = replace(opening(), lease=condition)
    shared = entry("one", set_row("a"), lease=condition)
    assert log.append(plan)
    assert log.append_to_project(shared)
    log.release_lease(lease)
    log.acquire_lease("driver", "bo", ttl_ms=60_000)

    assert log.append(plan) is False
    assert log.append_to_project(shared) is False


def test_a_plan_changes_a_row_once() -> None:
    with pytest.raises(AssertionError, match="changes a row once"):
        entry("one", set_row("a"), set_row("a", "y"))


def test_a_lease_that_nobody_ever_held_is_nobodys(log: Log) -> None:
    with pytest.raises(LeaseLost):
        log.append_to_project(entry("one", lease=LeaseCondition("none", 1)))
    with pytest.raises(LeaseLost):
        log.append(replace(opening(random_session()), lease=LeaseCondition("none", 1)))

    assert log.all_sessions() == []


def test_a_message_is_there_until_it_is_acknowledged(log: Log) -> None:
    messages = tuple(OutboxMessage(f"m{n}", "notes/publish", b"%d" % n) for n in range(4))
    log.append(replace(opening(), outbox=messages[:2]))
    log.append_to_project(entry("one", outbox=messages[2:]))
    log.append_to_project(entry("again", outbox=messages[1:3]))
    assert log.outbox(limit=9) == [*messages]
    assert log.outbox(limit=1) == [messages[0]]

    log.acknowledge(messages[1:3])
    log.acknowledge(messages[1:3])

    assert log.outbox(limit=9) == [messages[0], messages[3]]


ROWS = st.sampled_from(["a", "b", "c"])
MOVES = st.lists(
    st.tuples(
        ROWS,
        st.sampled_from(["set", "remove"]),
        st.sampled_from(["fresh", "stale", "kind"]),
        st.integers(0, 3),
    ),
    max_size=12,
)


@settings(max_examples=scale(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MOVES)
def test_whatever_is_tried_the_rows_are_what_the_entries_add_up_to(
    log: Log, moves: list[tuple[str, str, str, int]]
) -> None:
    """Against a model: a dict of rows, each with the number of the entry that wrote it."""
    project = ProjectId(random_session())
    model, seq = dict[str, int](), 0
    for number, (key, change, guard, behind) in enumerate(moves):
        condition = {
            "fresh": RowCondition("claim", key, model.get(key, 0)),
            "stale": RowCondition("claim", key, max(0, model.get(key, 0) - behind)),
            "kind": RowCondition("claim", None, max(0, seq - behind)),
        }[guard]
        holds = (
            max(model.values(), default=0) <= condition.seq
            if condition.key is None
            else model.get(key, 0) == condition.seq
        )
        content = b"x" if change == "set" else None
        changes = (RowChange("claim", key, content),)
        plan = ProjectPlan(project, str(number), b"{}", 1, changes, (condition,))
        if not holds:
            with pytest.raises(RowsMoved):
                log.append_to_project(plan)
            continue
        assert log.append_to_project(plan)
        seq += 1
        model.pop(key, None)
        if content:
            model[key] = seq

    rows = log.project_rows(project, ["claim"])
    assert (rows.seq, {row.key: row.seq for row in rows.rows}) == (seq, model)


def test_rows_are_read_across_projects_and_without_those_that_have_an_answer(log: Log) -> None:
    other = ProjectId("shed")
    assert (log.rows_of_projects(["claim"]), log.rows_without_answer("mail", "ack", limit=9)) == (
        {},
        [],
    )
    mail = (set_row("1", kind="mail"), set_row("2", kind="mail"), set_row("a"))
    log.append_to_project(entry("one", *mail))
    log.append_to_project(replace(entry("two", set_row("1", kind="mail")), project=other))
    log.append_to_project(entry("three", set_row("1", kind="ack")))

    found = log.rows_of_projects(["claim", "ack"])
    unanswered = log.rows_without_answer("mail", "ack", limit=9)

    assert log.count_without_answer("mail", "ack") == len(unanswered)
    assert list(found) == [PROJECT], "the others have none of these"
    assert found[PROJECT] == log.project_rows(PROJECT, ["claim", "ack"])
    assert [(project, row.key) for project, row in unanswered] == [(PROJECT, "2"), (other, "1")]


def write_many(place: Place, writer: int) -> None:
    log = place.log()
    for number in range(ENTRIES):
        name = f"{writer}-{number}"
        message = OutboxMessage(name, "t", msgspec.json.encode(number))
        assert log.append_to_project(entry(name, set_row(name), outbox=(message,)))
    log.close()


@pytest.mark.slow
def test_many_who_write_about_different_things_all_get_through(place: Place) -> None:
    place.log().close()

    run_together(write_many, [(place, writer) for writer in range(WRITERS)])

    log = place.log()
    names = {f"{writer}-{number}" for writer in range(WRITERS) for number in range(ENTRIES)}
    assert [e.seq for e in log.project_entries(PROJECT)] == list(range(1, len(names) + 1))
    assert set(held(log)) == {message.key for message in log.outbox(limit=10_000)} == names
    assert is_sound(log)
    log.close()
