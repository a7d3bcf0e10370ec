"""The index kept by syncing is the one that is made anew, whatever happens to the files."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from interlock.core.notes import grammar
from interlock.workspace.files.atomic_file import FileContent, WrittenFile
from interlock.workspace.projects.notes_folder import NotesFolder
from tests.app.notes.vault import Coarse, CoarseUnprivileged, Unprivileged, Vault, now_ms
from tests.effort import scale
from tests.store.notes.note_rows import dump

EXAMPLES = scale(25)
NAMES = ["a", "Note One", "笔记"]
places = st.sampled_from(["x", "y", "y/z", "w"])
numbers = st.integers(0, 99)


@st.composite
def paths(draw: st.DrawFn) -> str:
    place = draw(st.sampled_from(["", "x/", "y/z/"]))
    return f"{place}{draw(st.sampled_from(NAMES))}.md"


@st.composite
def texts(draw: st.DrawFn) -> str:
    front = draw(
        st.sampled_from(
            ["", "---\ntitle: A\n---\n", "---\npermalink: x/b\ntags: [q]\n---\n", "---\n: [\n---\n"]
        )
    )
    fact = draw(st.integers(0, 3))
    link = draw(st.sampled_from(["a", "x/b", "Note One", "A", "笔记", "nothing"]))
    word = draw(st.sampled_from(["kestrel", "пустельга", "红隼", "caf\udce9"]))
    return f"{front}# Title\n- [fact] {fact} #t{fact}\n[[{link}]] {word}\n"


class Edits(RuleBasedStateMachine):
    """People, git and other processes at work, and syncs whenever they please."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="interlock-edits-"))
        self.base.chmod(0o755)
        self.vault = Vault(self.base)
        self.root = self.vault.root
        self.root.mkdir()
        self.has_git = False

    @initialize(kinds=st.sampled_from([(NotesFolder, Unprivileged), (Coarse, CoarseUnprivileged)]))
    def begin(self, kinds: tuple[type[NotesFolder], type[NotesFolder]]) -> None:
        self.kind, self.kind_locked = kinds
        self.vault.folder = self.kind(self.root)
        for path in ("a.md", "x/a.md", "x/Note One.md", "y/z/笔记.md"):
            self.vault.put(path, f"[[x/b]] {path}")

    def clear(self, path: str) -> None:
        """Make room, whatever is there or in the way."""
        for place in [path, *(str(parent) for parent in Path(path).parents if parent.name)]:
            found = self.root / place
            if found.is_symlink() or found.is_file():
                found.unlink()
            elif found.is_dir() and place == path:
                shutil.rmtree(found)

    @rule(path=paths(), text=texts())
    def write(self, path: str, text: str) -> None:
        self.clear(path)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(text.encode("utf-8", "surrogateescape"))

    def one_of(self, number: int, *, among: tuple[str, ...]) -> Path | None:
        """A file, or a directory, that is really there."""
        found: list[Path] = []
        for place, directories, files in os.walk(self.root):
            directories[:] = sorted(name for name in directories if name != ".git")
            for kind, listed in (("directory", directories), ("file", sorted(files))):
                paths = [Path(place) / name for name in listed if kind in among]
                found += [path for path in paths if not path.is_symlink()]
        return found[number % len(found)] if found else None

    @rule(number=numbers)
    def edit_just_after_a_look(self, number: int) -> None:
        self.vault.sync()
        self.edit_in_place_with_the_same_size(number)

    @rule(number=numbers)
    def edit_in_place_with_the_same_size(self, number: int) -> None:
        if file := self.one_of(number, among=("file",)):
            before = file.stat()
            content = file.read_bytes()
            with file.open("r+b") as opened:
                opened.write(content.swapcase())
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(number=numbers, to=paths())
    def move(self, number: int, to: str) -> None:
        if file := self.one_of(number, among=("file",)):
            kept = file.rename(self.base / "kept")
            self.clear(to)
            (self.root / to).parent.mkdir(parents=True, exist_ok=True)
            kept.rename(self.root / to)

    @rule(path=paths())
    def delete(self, path: str) -> None:
        self.clear(path)

    @rule(number=numbers, to=places)
    def rename_a_directory(self, number: int, to: str) -> None:
        if directory := self.one_of(number, among=("directory",)):
            kept = directory.rename(self.base / "kept")
            self.clear(to)
            (self.root / to).parent.mkdir(parents=True, exist_ok=True)
            kept.rename(self.root / to)

    @rule(path=paths())
    def turn_a_file_into_a_directory(self, path: str) -> None:
        self.clear(path)
        (self.root / path).mkdir(parents=True)
        (self.root / path / "a.md").write_text("inside of what was a file")

    @rule(path=st.one_of(paths(), places), leads_to=st.sampled_from(["a.md", "x", "..", "gone"]))
    def turn_it_into_a_link(self, path: str, leads_to: str) -> None:
        self.clear(path)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(self.root / leads_to)

    def git(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
            cwd=self.root,
            check=True,
            capture_output=True,
        )

    @rule()
    def check_out_another_branch(self) -> None:
        if not self.has_git:
            self.git("init", "-q", "-b", "one")
            self.git("commit", "-q", "--allow-empty", "-m", "none")
            self.git("branch", "two")
            self.has_git = True
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "some")
        log = (self.root / ".git" / "logs" / "HEAD").read_text()
        self.git("checkout", "-q", "-" if "checkout: moving" in log else "two")

    @rule(path=paths(), text=texts())
    def write_as_we_do(self, path: str, text: str) -> None:
        with self.vault.lock.hold():
            found = self.vault.folder.read(path) if (self.root / path).is_file() else None
            digest = found.digest if isinstance(found, FileContent) else None
            if (self.root / path).is_dir():
                return
            done = self.vault.folder.write(path, text, expected=digest)
            if isinstance(done, WrittenFile):
                self.vault.index.put(
                    path,
                    grammar.parse_note(text, path=path),
                    digest=done.digest,
                    stamp=done.stamp,
                    is_racy=done.stamp.is_racy(now_ms()),
                )

    @rule()
    def look(self) -> None:
        self.vault.sync()

    @rule()
    def look_in_a_hurry(self) -> None:
        self.vault.sync(deadline=time.monotonic())

    @rule(number=numbers, bits=st.sampled_from([0o000, 0o111, 0o444]))
    def look_while_something_is_locked(self, number: int, bits: int) -> None:
        file = self.one_of(number, among=("file", "directory"))
        if file is None:
            return
        self.vault.sync()
        before = self.vault.paths()
        mode = file.stat().st_mode & 0o777
        file.chmod(bits)
        self.vault.folder = self.kind_locked(self.root)
        try:
            assert self.vault.sync().removed == 0
            assert self.vault.paths() == before
        finally:
            file.chmod(mode)
            self.vault.folder = self.kind(self.root)

    @rule()
    def compare(self) -> None:
        outcome = self.vault.sync()
        assert (outcome.pending, outcome.unreadable) == (0, ())
        assert dump(self.vault.index) == self.vault.rebuilt()

    def teardown(self) -> None:
        try:
            self.compare()
        finally:
            self.vault.close()
            shutil.rmtree(self.base)


@pytest.mark.invariant("notes-index-follows-files")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_index_kept_by_syncing_is_the_one_that_is_made_anew() -> None:
    run_state_machine_as_test(
        Edits,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=20,
            deadline=None,
        ),
    )
