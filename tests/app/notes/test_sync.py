"""Syncing notices what changed, believes nothing it cannot see, and stops when it must."""

import multiprocessing
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any

import pytest

from interlock.app.notes.sync import BATCH_SIZE, SyncReport, sync
from interlock.core.notes import grammar
from interlock.core.notes import stamp as stamps
from interlock.store.notes.index import NoteIndex
from interlock.store.notes.rows import NoteFilter
from interlock.workspace.files.atomic_file import BYTES_MAX, FileConflict, FileContent, WrittenFile
from interlock.workspace.projects.notes_folder import NotesFolder
from tests.app.notes.vault import Unprivileged, Vault, now_ms
from tests.store.notes.note_rows import dump

SPAWN: SpawnContext = multiprocessing.get_context("spawn")


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(tmp_path)
    yield made
    made.close()


@pytest.fixture
def public() -> Iterator[Vault]:
    """One that others may look into, as they may not into pytest's directories."""
    base = Path(tempfile.mkdtemp(prefix="interlock-sync-"))
    base.chmod(0o755)
    made = Vault(base)
    yield made
    made.close()
    shutil.rmtree(base)


def test_what_changed_is_read_and_the_rest_is_left_alone(vault: Vault) -> None:
    for path in ("a.md", "b/c.md", "b/d.md"):
        vault.put(path, f"see [[{path}]]")
    assert vault.sync() == SyncReport(3, 0, 0, ())
    mark = vault.index.change_mark()
    assert vault.sync() == SyncReport(0, 0, 0, ())
    assert vault.index.change_mark() == mark

    vault.put("a.md", "other")
    (vault.root / "b" / "c.md").unlink()
    (vault.root / "b" / "d.md").rename(vault.root / "e.md")

    assert vault.sync() == SyncReport(2, 2, 0, ())
    assert vault.paths() == {"a.md", "e.md"}
    assert vault.index.change_mark() != mark
    assert dump(vault.index) == vault.rebuilt()


def test_a_file_that_was_only_touched_is_not_read_into_the_index_again(vault: Vault) -> None:
    vault.put("a.md", "text")
    vault.sync()
    os.utime(vault.root / "a.md", ns=(5_000_000_000, 5_000_000_000))

    assert vault.sync() == SyncReport(0, 0, 0, ())
    assert vault.index.newest_notes(NoteFilter(), limit=1)[0].modified_ms == 5_000
    assert dump(vault.index) == vault.rebuilt()


def test_a_new_file_is_read_once_more_and_then_relied_on(vault: Vault) -> None:
    vault.put("a.md", "text")
    vault.sync()
    assert vault.index.indexed_files()["a.md"].is_racy
    later = now_ms() + stamps.GRACE_NS // 1_000_000 + 1_000

    sync(vault.folder, vault.index, vault.lock, now_ms=later)

    assert not vault.index.indexed_files()["a.md"].is_racy


def test_what_is_no_text_or_too_large_has_a_problem_and_no_words(vault: Vault) -> None:
    vault.put("large.md", "")
    os.truncate(vault.root / "large.md", BYTES_MAX + 1)
    vault.put("binary.md", "kestrel \0 kestrel")
    (vault.root / "latin.md").write_bytes(b"caf\xe9 kestrel")
    vault.put("---.md", "---\n- [" * 1_000)

    assert vault.sync().changed == 4
    problems = {
        row.path: bool(row.problem) for row in vault.index.newest_notes(NoteFilter(), limit=9)
    }
    assert problems | {"---.md": False} == {
        "large.md": True,
        "binary.md": True,
        "latin.md": False,
        "---.md": False,
    }
    assert [hit.row.path for hit in vault.index.search('"kestrel"', NoteFilter(), limit=9)] == [
        "latin.md"
    ]
    assert dump(vault.index) == vault.rebuilt()
    vault.put("large.md", "kestrel")
    vault.sync()
    assert dump(vault.index) == vault.rebuilt()


@pytest.mark.invariant("notes-scan-takes-nothing")
@pytest.mark.parametrize("bits", [0o000, 0o444, 0o111])
def test_a_directory_that_cannot_be_looked_into_takes_nothing_from_the_index(
    public: Vault, bits: int
) -> None:
    for path in ("a/one.md", "b/two.md", "b/c/three.md", "d.md"):
        public.put(path, path)
    public.sync()
    before = dump(public.index)
    (public.root / "b").chmod(bits)
    public.folder = Unprivileged(public.root)

    outcome = public.sync()

    assert outcome.removed == 0
    assert outcome.unreadable
    assert dump(public.index) == before
    (public.root / "b").chmod(0o755)
    (public.root / "b" / "two.md").unlink()
    assert public.sync().removed == 1
    assert dump(public.index) == public.rebuilt()


def test_a_file_that_cannot_be_read_keeps_its_row(public: Vault) -> None:
    public.put("a.md", "first")
    public.sync()
    before = dump(public.index)
    public.put("a.md", "another")
    (public.root / "a.md").chmod(0)
    public.folder = Unprivileged(public.root)

    assert public.sync() == SyncReport(0, 0, 0, ("a.md",))
    assert dump(public.index) == before
    (public.root / "a.md").chmod(0o644)
    assert public.sync() == SyncReport(1, 0, 0, ())


def test_a_disk_that_is_not_there_takes_nothing_from_the_index(vault: Vault) -> None:
    disk = vault.base / "disk"
    vault.folder = NotesFolder(disk / "notes")
    assert vault.sync() == SyncReport(0, 0, 0, ()), "a folder that was never made is no trouble"
    (disk / "notes").mkdir(parents=True)
    (disk / "notes" / "a.md").write_text("text")
    vault.sync()

    disk.rename(vault.base / "elsewhere")
    assert vault.sync() == SyncReport(0, 0, 0, ("",))
    assert vault.paths() == {"a.md"}
    (vault.base / "elsewhere").rename(disk)
    assert vault.sync() == SyncReport(0, 0, 0, ())
    shutil.rmtree(disk / "notes")
    assert vault.sync() == SyncReport(0, 1, 0, ())


def test_a_deadline_ends_it_early_and_the_next_call_goes_on(vault: Vault) -> None:
    count = 2 * BATCH_SIZE + 1
    for number in range(count):
        vault.put(f"{number}.md", "text")
    seen: list[tuple[int, int]] = []

    first = vault.sync(deadline=time.monotonic())
    assert (first.changed, first.pending) == (1, count - 1)

    def tell(done: int, total: int) -> None:
        seen.append((done, total))

    second = vault.sync(progress=tell)

    assert (second.changed, second.pending) == (count - 1, 0)
    assert seen == [(BATCH_SIZE, count), (2 * BATCH_SIZE, count), (count, count)]
    assert dump(vault.index) == vault.rebuilt()


def test_a_note_that_changes_while_it_is_read_is_left_for_the_next_time(vault: Vault) -> None:
    class Hasty(NotesFolder):
        def read(self, path: str) -> Any:
            found = super().read(path)
            (self.root / path).write_text("changed since, and longer")
            return found

    vault.put("a.md", "text")
    vault.folder = Hasty(vault.root)
    assert vault.sync() == SyncReport(0, 0, 1, ())
    vault.folder = NotesFolder(vault.root)
    assert vault.sync() == SyncReport(1, 0, 0, ())
    assert dump(vault.index) == vault.rebuilt()


def test_a_damaged_index_is_made_anew(vault: Vault) -> None:
    for number in range(300):
        vault.put(f"{number}.md", f"text {number}")
    vault.sync()
    vault.index.close()
    path = vault.base / "k.db"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    vault.index = NoteIndex(path, vault.lock)

    assert vault.sync().changed == 300
    assert dump(vault.index) == vault.rebuilt()


def test_an_index_that_was_deleted_under_a_running_process_is_made_anew(vault: Vault) -> None:
    vault.put("a.md", "text")
    vault.sync()
    for file in vault.base.glob("k.db*"):
        file.unlink()

    assert vault.sync().changed == 1
    other = NoteIndex(vault.base / "k.db", vault.lock)
    assert set(other.indexed_files()) == {"a.md"}
    other.close()


def work(base: Path, writer: int) -> None:
    """Write notes of one's own and a line to a shared one, and sync in between."""
    vault = Vault(base)
    chance = random.Random(writer)
    for number in range(15):
        path = f"w{writer}/{number}.md"
        text = f"- [fact] by {writer} #t{number}\n- relates_to [[shared]]\n"
        with vault.lock.hold():
            done = vault.folder.write(path, text, expected=None)
            assert isinstance(done, WrittenFile)
            vault.index.put(
                path,
                grammar.parse_note(text, path=path),
                digest=done.digest,
                stamp=done.stamp,
                is_racy=True,
            )
        while True:
            found = vault.folder.read("shared.md")
            assert isinstance(found, FileContent)
            with vault.lock.hold():
                text = f"{found.text}- [fact] {writer} {number}\n"
                done = vault.folder.write("shared.md", text, expected=found.digest)
            if isinstance(done, WrittenFile):
                break
            assert isinstance(done, FileConflict)
        if chance.random() < 0.5:
            vault.sync()
        if number % 5 == 4:
            (vault.root / path).unlink()
    vault.close()


@pytest.mark.slow
def test_processes_that_write_and_sync_at_once_lose_and_double_nothing(vault: Vault) -> None:
    vault.put("shared.md", "")

    workers = [SPAWN.Process(target=work, args=(vault.base, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        vault.sync()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 3
    assert vault.sync().pending == 0
    assert vault.paths() == {"shared.md"} | {
        f"w{writer}/{number}.md" for writer in range(3) for number in range(15) if number % 5 != 4
    }
    lines = vault.index.observations(NoteFilter(prefix="shared"), limit=999)
    assert len(lines) == len({line.text for line in lines}) == 45
    assert dump(vault.index) == vault.rebuilt()
