"""The files of a notes folder: whole, where they belong, and never behind anybody's back."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.core.notes.stamp import FileStamp
from interlock.workspace.failures import FolderFailure, NoteTooLarge
from interlock.workspace.files import atomic_file, sandboxed_path
from interlock.workspace.files.atomic_file import BYTES_MAX, FileConflict, FileContent, WrittenFile
from interlock.workspace.projects.notes_folder import CaseCollision, DeletedFile, NotesFolder
from tests.unprivileged import nobody
from tests.workspace.projects.note_files import found, tree, written


@pytest.fixture
def folder(tmp_path: Path) -> NotesFolder:
    (tmp_path / "notes").mkdir()
    return NotesFolder(tmp_path / "notes")


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that others may look into, as they may not into pytest's."""
    made = Path(tempfile.mkdtemp(prefix="interlock-notes-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.invariant("notes-byte-for-byte")
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"a\r\nb\rc\n", b"\xef\xbb\xbf# x", "你好\n".encode()]
)
def test_every_file_comes_back_byte_for_byte(folder: NotesFolder, content: bytes) -> None:
    (folder.root / "n.md").write_bytes(content)
    read = found(folder, "n.md")

    written(folder, "copy.md", read.text)
    done = written(folder, "n.md", read.text, expected=read.digest)

    assert (folder.root / "n.md").read_bytes() == content
    assert (folder.root / "copy.md").read_bytes() == content
    assert done.digest == read.digest == found(folder, "n.md").digest


def test_what_is_too_large_for_a_note_is_neither_read_nor_written(folder: NotesFolder) -> None:
    (folder.root / "n.md").write_bytes(b"x" * (BYTES_MAX + 1))
    written(folder, "most.md", "x" * BYTES_MAX)

    with pytest.raises(NoteTooLarge):
        folder.read("n.md")
    with pytest.raises(NoteTooLarge):
        folder.write("other.md", "x" * (BYTES_MAX + 1), expected=None)
    assert set(folder.scan().files) == {"most.md", "n.md"}


def test_half_a_character_cannot_be_written(folder: NotesFolder) -> None:
    with pytest.raises(FolderFailure, match="half"):
        folder.write("n.md", "\ud800", expected=None)


@pytest.mark.timeout(10)
def test_what_is_not_a_file_is_not_read(folder: NotesFolder) -> None:
    os.mkfifo(folder.root / "pipe.md")
    (folder.root / "directory.md").mkdir()

    for path in ("pipe.md", "directory.md"):
        with pytest.raises(FolderFailure, match="not a file"):
            folder.read(path)
    assert folder.scan().files == {}
    assert folder.read("directory.md/n.md") is None


def test_a_note_is_made_once(folder: NotesFolder) -> None:
    first = written(folder, "a/b/n.md", "one")

    again = folder.write("a/b/n.md", "two", expected=None)

    assert again == FileConflict(FileContent("one", first.digest, first.stamp))
    assert found(folder, "a/b/n.md").text == "one"
    assert tree(folder.root) == {"a", "a/b", "a/b/n.md"}


def test_who_has_read_something_else_is_told_what_is_there(folder: NotesFolder) -> None:
    first = written(folder, "n.md", "one")
    second = written(folder, "n.md", "two", expected=first.digest)

    for done in (
        folder.write("n.md", "three", expected=first.digest),
        folder.delete("n.md", expected=first.digest),
        folder.move("n.md", "m.md", expected=first.digest),
    ):
        assert done == FileConflict(FileContent("two", second.digest, second.stamp))
    for path in ("gone.md", "gone/n.md"):
        assert folder.write(path, "three", expected=first.digest) == FileConflict(None)
        assert folder.delete(path, expected=first.digest) == FileConflict(None)
        assert folder.move(path, "m.md", expected=first.digest) == FileConflict(None)
    assert tree(folder.root) == {"n.md"}


@pytest.mark.parametrize("before", ["one", None])
def test_what_an_editor_saves_while_ours_is_on_its_way_to_the_disk_is_kept(
    folder: NotesFolder, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    first = written(folder, "n.md", before) if before else None
    sync = os.fsync

    def slowly(file: int) -> None:
        (folder.root / "n.md").write_text("by hand")
        sync(file)

    monkeypatch.setattr(os, "fsync", slowly)
    done = folder.write("n.md", "two", expected=first.digest if first else None)

    assert isinstance(done, FileConflict)
    assert done.current == found(folder, "n.md")
    assert found(folder, "n.md").text == "by hand"
    assert tree(folder.root) == {"n.md"}


def test_the_stamp_of_what_was_written_is_the_one_that_a_scan_finds(folder: NotesFolder) -> None:
    made = written(folder, "n.md", "one")
    assert folder.scan().files == {"n.md": made.stamp}

    changed = written(folder, "n.md", "two", expected=made.digest)
    assert folder.scan().files == {"n.md": changed.stamp} == {"n.md": folder.stamp("n.md")}

    moved = folder.move("n.md", "a/m.md", expected=changed.digest)
    assert isinstance(moved, WrittenFile)
    assert folder.scan().files == {"a/m.md": moved.stamp}


@pytest.mark.parametrize(
    ("there", "wanted", "twin"),
    [
        ("a/Note.md", "a/note.md", "a/Note.md"),
        ("Specs/a.md", "specs/b.md", "Specs"),
        ("é.md", "E\u0301.md", "é.md"),
        ("straße.md", "STRASSE.md", "straße.md"),
    ],
)
def test_names_that_many_disks_cannot_tell_apart_are_not_both_given(
    folder: NotesFolder, there: str, wanted: str, twin: str
) -> None:
    written(folder, there, "one")
    other = written(folder, "other.md", "two")

    assert folder.write(wanted, "x", expected=None) == CaseCollision(twin)
    assert folder.move("other.md", wanted, expected=other.digest) == CaseCollision(twin)
    assert set(folder.scan().files) == {there, "other.md"}


def test_a_note_may_change_the_case_of_its_own_name(folder: NotesFolder) -> None:
    made = written(folder, "a/Note.md", "one")

    assert isinstance(folder.move("a/Note.md", "a/note.md", expected=made.digest), WrittenFile)
    assert tree(folder.root) == {"a", "a/note.md"}


def test_a_note_keeps_its_mode_and_a_read_only_one_its_content(folder: NotesFolder) -> None:
    first = written(folder, "n.md", "one")
    (folder.root / "n.md").chmod(0o640)
    second = written(folder, "n.md", "two", expected=first.digest)
    assert (folder.root / "n.md").stat().st_mode & 0o7777 == 0o640

    (folder.root / "n.md").chmod(0o444)
    with pytest.raises(FolderFailure, match="read-only"):
        folder.write("n.md", "three", expected=second.digest)
    assert found(folder, "n.md").text == "two"


def test_a_move_never_replaces_what_is_there(folder: NotesFolder) -> None:
    one = written(folder, "a/one.md", "one")
    two = written(folder, "two.md", "two")

    assert folder.move("a/one.md", "two.md", expected=one.digest) == FileConflict(
        FileContent("two", two.digest, two.stamp)
    )
    assert set(folder.scan().files) == {"a/one.md", "two.md"}


def test_directories_that_are_left_empty_go_and_others_stay(folder: NotesFolder) -> None:
    one = written(folder, "a/b/c/one.md", "one")
    two = written(folder, "a/two.md", "two")

    assert isinstance(folder.move("a/b/c/one.md", "one.md", expected=one.digest), WrittenFile)
    assert tree(folder.root) == {"a", "a/two.md", "one.md"}
    assert folder.delete("a/two.md", expected=two.digest) == DeletedFile(two.digest)
    assert folder.delete("one.md", expected=one.digest) == DeletedFile(one.digest)
    assert tree(folder.root) == set()
    assert folder.root.is_dir()


def test_a_scan_leaves_out_what_is_hidden_and_names_what_it_skips(folder: NotesFolder) -> None:
    written(folder, "a/n.md", "one")
    for directory in (".git", ".obsidian", "a/.trash"):
        (folder.root / directory).mkdir()
        (folder.root / directory / "x.md").touch()
    (folder.root / "picture.png").touch()
    (folder.root / "aux.md").touch()
    (folder.root / "link.md").symlink_to("a/n.md")
    (folder.root / "around").symlink_to(".")
    os.close(os.open(os.fsencode(folder.root) + b"/\xff.md", os.O_CREAT))

    scan = folder.scan()

    assert set(scan.files) == {"a/n.md"}
    assert scan.unreadable == ()
    assert set(scan.skipped) == {"aux.md", "link.md", "\udcff.md"}


@pytest.mark.parametrize("bits", [0o000, 0o444, 0o111])
def test_a_directory_that_cannot_be_looked_into_is_said_and_stops_nothing(
    public: Path, bits: int
) -> None:
    folder = NotesFolder(public / "notes")
    for path in ("a/one.md", "b/two.md", "b/c/three.md", "d/four.md"):
        written(folder, path, path)
    (folder.root / "b").chmod(bits)

    with nobody():
        scan = folder.scan()
        lacking = [
            path
            for path in ("b/two.md", "b/c/three.md", "b/no.md")
            if folder.is_surely_missing(path)
        ]

    assert set(scan.files) == {"a/one.md", "d/four.md"}
    if bits == 0o444:  # the names are known, and nothing else
        assert scan.unreadable == ("b/c", "b/two.md")
    else:
        assert scan.unreadable == ("b",)
    assert lacking == []
    (folder.root / "b").chmod(0o755)


def test_a_file_that_cannot_be_read_is_a_failure_and_not_an_absence(public: Path) -> None:
    folder = NotesFolder(public)
    written(folder, "n.md", "one")
    (public / "n.md").chmod(0)

    with nobody(), pytest.raises(FolderFailure, match="Permission denied"):
        folder.read("n.md")


def test_a_folder_that_is_not_there_is_empty_only_if_that_can_be_known(public: Path) -> None:
    absent = NotesFolder(public / "notes").scan()
    assert (absent.files, absent.unreadable, absent.is_absent) == ({}, (), True)

    unmounted = NotesFolder(public / "disk" / "notes").scan()
    assert (unmounted.unreadable, unmounted.is_absent) == (("",), True)
    assert not NotesFolder(public / "disk" / "notes").is_surely_missing("n.md")
    assert NotesFolder(public / "notes").is_surely_missing("n.md")

    (public / "notes").symlink_to("nowhere")
    assert NotesFolder(public / "notes").scan().unreadable == ("",)
    (public / "locked").mkdir()
    (public / "locked").chmod(0)
    with nobody():
        assert NotesFolder(public / "locked" / "notes").scan().unreadable == ("",)
        assert NotesFolder(public / "locked").scan().unreadable == ("",)
    (public / "locked").chmod(0o755)


def test_what_took_the_place_of_a_note_is_no_note(folder: NotesFolder) -> None:
    for path in ("file.md", "directory.md", "link.md", "a/n.md", "b/n.md"):
        written(folder, path, "one")
    (folder.root / "directory.md").unlink()
    (folder.root / "directory.md").mkdir()
    (folder.root / "link.md").unlink()
    (folder.root / "link.md").symlink_to("file.md")
    shutil.rmtree(folder.root / "a")
    (folder.root / "a").symlink_to("b")

    lacking = {
        path
        for path in ("file.md", "directory.md", "link.md", "a/n.md", "b/n.md", "c/n.md")
        if folder.is_surely_missing(path)
    }

    assert lacking == {"directory.md", "link.md", "a/n.md", "c/n.md"}


def test_the_draft_of_a_writer_that_lives_is_left_alone(folder: NotesFolder) -> None:
    with sandboxed_path.opened_directory(folder.root, ()) as place:
        with atomic_file.draft_file(place, b"text", None) as (draft, _):
            assert folder.scan().drafts == (draft,)
            assert folder.remove_dead_drafts((draft,)) == 0
            assert tree(folder.root) == {draft}
        (folder.root / draft).touch()
        assert folder.remove_dead_drafts((draft,)) == 1
        assert tree(folder.root) == set()


def test_a_stamp_is_relied_on_only_when_it_is_old_enough() -> None:
    second = 1_000_000_000

    assert FileStamp(0, 0, 0, 0).is_racy(1_000)
    assert not FileStamp(7 * second, 8 * second, 0, 0).is_racy(10_000)
    assert FileStamp(0, 8 * second + 1, 0, 0).is_racy(10_000), "people set mtime back"
    assert FileStamp(8 * second + 1, 0, 0, 0).is_racy(10_000)
    assert FileStamp(99 * second, 0, 0, 0).is_racy(10_000), "another clock"
