"""Rows without an entry, the newest of many, and what hooks are told of reservations."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from interlock.core.coordination.foreign_reservation import ForeignReservation
from interlock.core.gate.state import GateRow
from interlock.core.ids import ProjectId
from interlock.core.project_stream import ProjectPlan, RowChange
from interlock.store import gate_reservations, gate_rows
from interlock.store.gate_rows import PublishedRow
from interlock.store.log import Log

SHOP = ProjectId("shop")


def write(log: Log, key: str, *rows: tuple[str, str]) -> None:
    changes = tuple(RowChange(kind, name, key.encode()) for kind, name in rows)
    assert log.append_to_project(ProjectPlan(SHOP, key, b"{}", 1, changes))


def test_a_row_is_replaced_only_by_who_knows_it_and_leaves_no_entry(log: Log) -> None:
    row = RowChange("seen", "ana", b"1")
    assert log.replace_row(SHOP, row, old=None) is False, "there is no such project yet"
    write(log, "one", ("work", "a"))
    end = log.project_end(SHOP)

    assert log.replace_row(SHOP, row, old=None)
    assert log.replace_row(SHOP, RowChange("seen", "ana", b"2"), old=None) is False
    assert log.replace_row(SHOP, RowChange("seen", "ana", b"2"), old=b"0") is False
    assert log.replace_row(SHOP, RowChange("seen", "ana", b"2"), old=b"1")

    assert [one.content for one in log.project_rows(SHOP, ("seen",)).rows] == [b"2"]
    assert log.project_end(SHOP) == end


def test_rows_of_some_kinds_come_oldest_first_from_either_end(log: Log) -> None:
    for number in range(1, 6):
        write(log, str(number), (f"mail/{'ab'[number % 2]}", str(number)))
    write(log, "6", ("mailbox", "other"))

    kinds = ("mail/a", "mail/b")
    newest = log.newest_rows(SHOP, kinds, limit=3)

    assert [(row.kind, row.key, row.seq) for row in newest] == [
        ("mail/b", "3", 3),
        ("mail/a", "4", 4),
        ("mail/b", "5", 5),
    ]
    assert log.oldest_rows(SHOP, kinds, after=2) == newest
    assert [row.seq for row in log.oldest_rows(SHOP, kinds, after=1, limit=2)] == [2, 3]
    assert log.oldest_rows(SHOP, ("mail/a",), after=4) == []
    assert sorted(log.row_kinds(SHOP, "mail/")) == ["mail/a", "mail/b"]


def test_hooks_see_the_reservations_of_others_as_of_the_latest_entry(tmp_path: Path) -> None:
    src, docs = (ForeignReservation("ses_a", "Ana", name, 1_000) for name in ("src", "docs"))
    gate_reservations.publish_reservations(tmp_path, SHOP, [src], seq=5)
    gate_reservations.publish_reservations(tmp_path, SHOP, [docs], seq=4)

    def seen(session: str, now_ms: int = 1) -> list[ForeignReservation]:
        return gate_reservations.reservations_of_others(tmp_path, SHOP, session, now_ms=now_ms)

    assert (seen("ses_b"), seen("ses_a"), seen("ses_b", 1_000)) == ([src], [], [])
    gate_reservations.publish_reservations(tmp_path, SHOP, [], seq=6)
    assert seen("ses_b") == []


def publish_session(home: Path, session: str) -> None:
    row = GateRow(session, "coding", is_started=True)
    published = PublishedRow(host="claude-code", host_session=session, row=row, is_simple=True)
    gate_rows.publish_rows(home, [published])


def test_of_hooks_that_warn_at_the_same_moment_one_is_the_first(tmp_path: Path) -> None:
    publish_session(tmp_path, "ses_a")
    start = Barrier(3)

    def warn(_: int) -> list[bool]:
        found: list[bool] = []
        for subject in "abcde":
            start.wait()
            subjects = [subject, "in every round"]
            found.append(gate_reservations.record_warning(tmp_path, "ses_a", subjects))
        return found

    with ThreadPoolExecutor(3) as pool:
        rounds = list(zip(*pool.map(warn, range(3)), strict=True))

    assert [answers.count(True) for answers in rounds] == [1] * 5


def test_what_a_session_was_warned_of_goes_with_it(tmp_path: Path) -> None:
    publish_session(tmp_path, "ses_a")
    publish_session(tmp_path, "ses_b")
    assert gate_reservations.record_warning(tmp_path, "ses_a", ["src"])

    gate_rows.withdraw_session(tmp_path, "ses_a")
    assert gate_reservations.record_warning(tmp_path, "ses_b", ["src"])

    publish_session(tmp_path, "ses_a")
    assert gate_reservations.record_warning(tmp_path, "ses_a", ["src"])
    assert not gate_reservations.record_warning(tmp_path, "ses_a", ["src"])
