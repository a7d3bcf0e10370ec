"""An index as a file: shared by processes, thrown away when it is damaged."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from interlock.core.notes.stamp import FileStamp
from interlock.store.failures import StoreDamaged
from interlock.store.lock import WriteLock
from interlock.store.notes.index import NoteIndex
from interlock.store.notes.rows import NoteChangeRequest
from tests.store.notes.note_rows import dump, opened, put
from tests.store.processes import run_together


def test_the_mark_moves_with_every_change_that_shows_whoever_makes_it(
    index: NoteIndex, tmp_path: Path
) -> None:
    other = opened(tmp_path)
    marks = [other.change_mark()]
    put(index, "n.md", "text")
    marks.append(other.change_mark())
    put(other, "m.md", "text")
    marks.append(other.change_mark())
    index.remove(["n.md"])
    marks.append(other.change_mark())
    index.restamp("m.md", FileStamp(8_000_000, 0, 4, 0), digest="text", is_racy=False)
    marks.append(other.change_mark())

    assert len(set(marks)) == 5
    index.restamp("m.md", FileStamp(8_000_000, 1, 4, 0), digest="text", is_racy=False)
    index.remove(["n.md"])
    index.put_request(NoteChangeRequest("k", "a", 1, "a.md", "", b"", ""))
    assert other.change_mark() == marks[-1] == index.change_mark()
    other.close()


def test_a_transaction_that_fails_leaves_nothing(index: NoteIndex) -> None:
    put(index, "n.md", "text")
    before, mark = dump(index), index.change_mark()

    def fail() -> None:
        with index.transaction():
            put(index, "n.md", "other")
            put(index, "m.md", "more")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert (dump(index), index.change_mark()) == (before, mark)


def test_what_is_erased_is_in_no_file_any_more(index: NoteIndex, tmp_path: Path) -> None:
    for number in range(20):
        put(index, f"{number}.md", f"# Title {number}\n\n- [fact] other{number} words\n")
    put(
        index,
        "secret.md",
        "# Wyvernry\n\n- [zephyr] quokkadom #mugwumpish\n- xylograph [[Jabberwock]]\n",
    )
    for number in range(20):
        put(index, f"later{number}.md", f"# Later {number}\n")

    index.erase("secret.md")

    left = b"".join(found.read_bytes() for found in tmp_path.iterdir()).lower()
    for word in (b"wyvernry", b"zephyr", b"quokkadom", b"mugwumpish", b"xylograph", b"jabberwock"):
        assert word not in left
    assert b"secret.md" not in left
    assert index.counts().notes == 40


def test_a_call_is_remembered_until_it_is_forgotten(index: NoteIndex) -> None:
    named = NoteChangeRequest("named", "arguments", 5, "a.md", "", b"answer", "")
    unnamed = NoteChangeRequest("unnamed", "arguments", 5, "a.md", "", b"answer", "somebody")
    index.put_request(named)
    index.put_request(unnamed)
    index.finish_request("named")

    index.forget_requests(before_ms=5, caller="another", path="a.md")
    index.forget_requests(before_ms=5, caller="somebody", path="b.md")
    assert index.find_request("unnamed") == unnamed
    index.forget_requests(before_ms=5, caller="somebody", path="a.md")
    assert index.find_request("unnamed") is None
    assert index.find_request("named") == msgspec.structs.replace(named, is_done=True)
    index.forget_requests(before_ms=6, caller="another", path="a.md")
    assert index.find_request("named") is None


def test_a_file_of_another_version_or_none_at_all_gives_way(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    for content in (b"", b"this is no database, and has never been one\n" * 99):
        path.write_bytes(content)
        index = opened(tmp_path)
        put(index, "n.md", "text")
        index.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()

    index = opened(tmp_path)

    assert index.indexed_files() == {}
    put(index, "n.md", "text")
    index.close()
    again = opened(tmp_path)
    assert set(again.indexed_files()) == {"n.md"}
    again.close()


def test_damage_that_shows_later_is_told_and_mended_by_beginning_again(tmp_path: Path) -> None:
    index = opened(tmp_path)
    for number in range(300):
        put(index, f"n{number}.md", f"text {number}")
    index.close()
    content = bytearray((tmp_path / "k.db").read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    (tmp_path / "k.db").write_bytes(content)
    index, other = opened(tmp_path), opened(tmp_path)

    with pytest.raises(StoreDamaged):
        index.indexed_files()
    index.renew()

    assert index.indexed_files() == {}
    put(index, "n.md", "text")
    assert index.is_current
    assert not other.is_current
    other.reopen()
    assert other.is_current
    assert set(other.indexed_files()) == {"n.md"}
    other.close()
    index.close()


def open_and_put(directory: Path, number: int) -> None:
    lock = WriteLock(directory / "k.lock")
    index = NoteIndex(directory / "k.db", lock)
    for round_ in range(20):
        with lock.hold():
            put(index, f"{number}-{round_}.md", "text")
            put(index, "shared.md", f"- [fact] {number}")
    index.close()


@pytest.mark.slow
def test_processes_that_begin_at_once_share_one_index(tmp_path: Path) -> None:
    (tmp_path / "k.db").write_bytes(b"damaged" * 999)

    run_together(open_and_put, [(tmp_path, number) for number in range(4)])

    index = opened(tmp_path)
    assert index.counts().notes == 81
    assert index.counts().observations == 1
    assert dump(index)["stray"] == []
    index.close()
