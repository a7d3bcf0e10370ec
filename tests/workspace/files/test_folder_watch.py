"""A folder is quiet only as long as nothing in it has changed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.workspace.files.folder_watch import Watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "n.md").write_text("text")
    (root / "m.md").write_text("text")
    return root


@pytest.fixture
def watch(root: Path) -> Iterator[Watch]:
    found = Watch(root)
    found.arm()
    if not found.is_complete:
        pytest.skip("NOT TESTED: other processes use all the inotify that a user may have")
    yield found
    found.close()


CHANGES: dict[str, Callable[[Path], object]] = {
    "written in place": lambda root: (root / "m.md").write_text("TEXT"),
    "cut deep down": lambda root: os.truncate(root / "a/b/n.md", 2),
    "replaced": lambda root: (root / "m.md").replace(root / "a" / "m.md"),
    "made": lambda root: (root / "a/new.md").touch(),
    "deleted": lambda root: (root / "m.md").unlink(),
    "directory made": lambda root: (root / "c").mkdir(),
    "directory moved": lambda root: (root / "a/b").rename(root / "d"),
    "directory removed": lambda root: shutil.rmtree(root / "a"),
    "all of it removed": shutil.rmtree,
    "locked away": lambda root: (root / "a").chmod(0),
    "touched": lambda root: os.utime(root / "m.md"),
}


@pytest.mark.invariant("notes-change-is-noticed")
@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_noticed_at_the_next_question(root: Path, watch: Watch, name: str) -> None:
    assert watch.is_quiet()

    CHANGES[name](root)

    assert not watch.is_quiet()
    assert not watch.is_quiet(), "until somebody looks"


def test_a_change_by_another_process_is_known_when_that_has_ended(root: Path, watch: Watch) -> None:
    for number in range(5):
        watch.arm()
        assert watch.is_quiet()
        subprocess.run(["sh", "-c", f"echo {number} >> {root}/m.md"], check=True)
        assert not watch.is_quiet()


def test_before_it_is_armed_nothing_is_known(root: Path) -> None:
    unarmed = Watch(root)
    assert not unarmed.is_quiet()
    unarmed.close()


def test_what_is_in_a_directory_that_came_later_counts_after_the_next_look(
    root: Path, watch: Watch
) -> None:
    (root / "new").mkdir()
    assert not watch.is_quiet()

    watch.arm()
    assert watch.is_quiet()
    (root / "new" / "n.md").write_text("text")

    assert not watch.is_quiet()


def test_what_we_did_ourselves_is_overlooked_and_nothing_else(root: Path, watch: Watch) -> None:
    (root / "a" / ".draft").write_text("text")
    (root / "a" / ".draft").replace(root / "a" / "mine.md")
    watch.acknowledge_own_writes({"a/mine.md"})
    assert watch.is_quiet()

    (root / "a" / "mine.md").write_text("mine")
    (root / "m.md").write_text("theirs")
    watch.acknowledge_own_writes({"a/mine.md"})

    assert not watch.is_quiet()


def test_what_is_hidden_does_not_count(root: Path, watch: Watch) -> None:
    (root / ".git").mkdir()
    watch.arm()

    (root / ".git" / "index").write_text("x")
    (root / ".obsidian").mkdir()

    assert watch.is_quiet()


def test_more_changes_than_the_kernel_keeps_are_a_change(root: Path, watch: Watch) -> None:
    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())

    for number in range(min(kept, 20_000) + 10):
        os.utime(root / "a" / "b" / "n.md", ns=(number, number))
        os.utime(root / "m.md", ns=(number, number))

    watch.acknowledge_own_writes({"a/b/n.md", "m.md"})
    assert not watch.is_quiet() or kept > 40_000


def test_another_folder_in_its_place_is_a_change(root: Path, watch: Watch) -> None:
    assert watch.is_quiet()

    root.parent.rename(root.parent.with_name("moved away"))
    root.mkdir(parents=True)

    assert not watch.is_quiet()


def test_a_folder_that_is_not_there_is_never_quiet(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "missing")
    watch.arm()
    assert not watch.is_quiet()
    watch.close()


@pytest.mark.usefixtures("watch")
def test_watches_that_were_forgotten_are_given_back(root: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())

    for _ in range(limit + 20):
        Watch(root).arm()

    another = Watch(root)
    another.arm()
    assert another.is_complete
