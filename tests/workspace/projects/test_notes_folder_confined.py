"""No path and no link leads out of a notes folder."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileConflict, WrittenFile
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects.notes_folder import NotesFolder
from tests.workspace.projects.note_files import found, tree, written

SECRET = "what lies outside"


@pytest.fixture
def folder(tmp_path: Path) -> NotesFolder:
    (tmp_path / "notes").mkdir()
    return NotesFolder(tmp_path / "notes")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the folder, with a note in it that is none of ours."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "n.md").write_text(SECRET)
    return tmp_path / "outside"


NOT_IN_IT = [
    "",
    "/etc/passwd.md",
    "../n.md",
    "a/../n.md",
    "./n.md",
    "a//n.md",
    "a/",
    "n.md\0.md",
    "a\x1b[2Jb.md",
    "a\u202etxt.md",
    "..\\n.md",
    ".git/n.md",
    ".md",
    "n",
    "n.MD",
    "a/AUX.md",
    "nul .md",
    "lpt1.old.md",
    "com¹/n.md",
    "\udc80.md",
    "a\u200b.md",
    "م\u200c\u200cن.md",
    "d\ufeff/n.md",
    "a\U000e0000\U000e0041.md",
    "x" * 253 + ".md",
    "ä" * 127 + ".md",
    "/".join(["d"] * 40) + "/n.md",
]


@pytest.mark.parametrize("path", NOT_IN_IT, ids=ascii)
def test_a_path_that_is_not_one_of_a_note_in_the_folder_is_refused(
    folder: NotesFolder, outside: Path, path: str
) -> None:
    digest = found(NotesFolder(outside), "n.md").digest
    written(folder, "ours.md", "ours")
    before = tree(folder.root.parent)

    assert isinstance(folder.locate(path), InvalidNotePath)
    assert isinstance(folder.read(path), InvalidNotePath)
    assert isinstance(folder.write(path, "x", expected=None), InvalidNotePath)
    assert isinstance(folder.write(path, "x", expected=digest), InvalidNotePath)
    assert isinstance(folder.delete(path, expected=digest), InvalidNotePath)
    assert isinstance(folder.move(path, "new.md", expected=digest), InvalidNotePath)
    mine = found(folder, "ours.md").digest
    assert isinstance(folder.move("ours.md", path, expected=mine), InvalidNotePath)
    assert tree(folder.root.parent) == before
    assert (outside / "n.md").read_text() == SECRET


@pytest.mark.parametrize(
    "path", ["Ω/你好 мир.md", "a b/c-d_e.f.md", "👩‍💻.md", "می\u200cشد.md", "x" * 252 + ".md"]
)
def test_a_name_in_any_script_is_a_name(folder: NotesFolder, path: str) -> None:
    written(folder, path, "text")

    assert found(folder, path).text == "text"
    assert set(folder.scan().files) == {path}


class Trusting(NotesFolder):
    """As if every link was put there just after the look at the path."""

    def locate(self, path: str) -> Path | InvalidNotePath:
        return self.root / path


def link_the_file(root: Path, outside: Path) -> None:
    (root / "a").mkdir()
    (root / "a" / "n.md").symlink_to(outside / "n.md")


def link_the_directory(root: Path, outside: Path) -> None:
    (root / "a").symlink_to(outside)


def link_relatively(root: Path, outside: Path) -> None:
    (root / "a").symlink_to(Path("..") / outside.name)


def link_within_the_folder(root: Path, outside: Path) -> None:
    (root / "b").mkdir()
    shutil.copy(outside / "n.md", root / "b" / "n.md")
    (root / "a").symlink_to("b")


def link_to_nothing(root: Path, outside: Path) -> None:
    (root / "a").mkdir()
    (root / "a" / "n.md").symlink_to(outside / "new.md")


LINKS = [
    link_the_file,
    link_the_directory,
    link_relatively,
    link_within_the_folder,
    link_to_nothing,
]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_is_refused(
    folder: NotesFolder, outside: Path, link: Callable[[Path, Path], None]
) -> None:
    digest = found(NotesFolder(outside), "n.md").digest
    written(folder, "ours.md", "ours")
    mine = found(folder, "ours.md").digest
    link(folder.root, outside)
    before = tree(folder.root.parent)

    assert isinstance(folder.read("a/n.md"), InvalidNotePath)
    assert isinstance(folder.write("a/n.md", "x", expected=digest), InvalidNotePath)
    assert isinstance(folder.write("a/n.md", "x", expected=None), InvalidNotePath)
    assert isinstance(folder.delete("a/n.md", expected=digest), InvalidNotePath)
    assert isinstance(folder.move("a/n.md", "c.md", expected=digest), InvalidNotePath)
    assert isinstance(folder.move("ours.md", "a/n.md", expected=mine), InvalidNotePath)
    assert tree(folder.root.parent) == before
    assert set(folder.scan().files) <= {"ours.md", "b/n.md"}


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_is_put_there_between_the_look_and_the_use_leads_nowhere(
    folder: NotesFolder, outside: Path, link: Callable[[Path, Path], None]
) -> None:
    digest = found(NotesFolder(outside), "n.md").digest
    trusting = Trusting(folder.root)
    written(folder, "ours.md", "ours")
    mine = found(folder, "ours.md").digest
    link(folder.root, outside)

    for act in (
        lambda: trusting.read("a/n.md"),
        lambda: trusting.write("a/n.md", "x", expected=digest),
        lambda: trusting.write("a/n.md", "x", expected=None),
        lambda: trusting.write("a/new.md", "x", expected=None),
        lambda: trusting.delete("a/n.md", expected=digest),
        lambda: trusting.move("a/n.md", "c.md", expected=digest),
        lambda: trusting.move("ours.md", "a/n.md", expected=mine),
    ):
        try:
            done = act()
        except FolderFailure:
            continue
        assert done is None or done == FileConflict(None) or isinstance(done, WrittenFile), done
    assert tree(outside) == {"n.md"}
    assert (outside / "n.md").read_text() == SECRET


def test_no_link_above_the_folder_is_followed(folder: NotesFolder, outside: Path) -> None:
    """A project cannot lead its notes elsewhere after the folder was looked at."""
    above = folder.root.parent / "above"
    vault = NotesFolder(above / "notes")
    written(vault, "n.md", "ours")
    digest = found(vault, "n.md").digest
    above.rename(above.with_name("moved"))
    (outside / "notes").mkdir()
    shutil.copy(above.with_name("moved") / "notes" / "n.md", outside / "notes" / "n.md")
    above.symlink_to(outside)
    before = tree(outside)

    for act in (
        lambda: vault.write("n.md", "x", expected=digest),
        lambda: vault.write("new/n.md", "x", expected=None),
        lambda: vault.delete("n.md", expected=digest),
    ):
        with suppress(FolderFailure):
            assert act() == FileConflict(None)
    assert tree(outside) == before
    assert (outside / "notes" / "n.md").read_text() == "ours"
    assert vault.scan().files == {}
