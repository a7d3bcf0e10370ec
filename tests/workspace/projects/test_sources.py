"""The list of sources and their checkouts, with real git."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from interlock.workspace.git.checkout import SourceFailure
from interlock.workspace.projects import sources
from interlock.workspace.projects.sources import Checkout, Source, SourcesBroken, directories, fetch
from tests.workspace.git.test_state import run

pytestmark = pytest.mark.slow

COMMIT = "c0ffee" * 6 + "c0de"
KEPT = Checkout(COMMIT, f"{COMMIT}-00000000", 7)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A repository with one workflow file."""
    path = tmp_path / "remote"
    path.mkdir()
    run(path, "init", "-q", "-b", "main")
    write(path, "one.json", "{}")
    return path


@pytest.fixture(autouse=True)
def made_home(home: Path) -> None:
    home.mkdir()


def write(remote: Path, name: str, text: str) -> str:
    """Commit a file. Returns the commit."""
    (remote / name).parent.mkdir(parents=True, exist_ok=True)
    (remote / name).write_text(text)
    run(remote, "add", "-A")
    run(remote, "commit", "-q", "-m", name)
    return run(remote, "rev-parse", "HEAD")


def team(remote: Path, ref: str | None = None, path: str | None = None) -> Source:
    return Source("team", "git", f"file://{remote}", ref, path)


def fetched(home: Path, source: Source) -> Path:
    """Fetched and saved: the directory in use."""
    sources.save(home, (fetch(home, source, at_ms=7),))
    return used(home)


def used(home: Path) -> Path:
    ((_, directory),) = directories(home)
    return directory


def commit_of(home: Path) -> str:
    (source,) = sources.load(home)
    assert source.checkout is not None
    return source.checkout.commit


def leftovers(home: Path) -> list[str]:
    return [path.name for path in (home / "sources").rglob("*") if "fetching" in path.name]


def test_without_a_file_there_are_no_sources(home: Path) -> None:
    assert directories(home) == []
    assert directories(home / "no" / "such" / "home") == []


def test_what_is_saved_is_loaded_in_its_order_and_is_private(home: Path, tmp_path: Path) -> None:
    saved = (
        Source("z", "directory", str(tmp_path)),
        Source("a", "git", "git@host:x/y.git", "v1", "flows", KEPT),
    )

    sources.save(home, saved)

    assert sources.load(home) == saved
    assert stat.S_IMODE((home / "sources.json").stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["sources.json"]
    # Nothing of it is there, and that is no error.
    place = home / "sources" / "a" / KEPT.directory / "flows"
    assert directories(home) == [("z", tmp_path), ("a", place)]


def test_what_is_saved_is_on_the_disk_before_it_takes_its_place(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(descriptor: int) -> None:
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def recorded_replace(path: Path, target: Path) -> Path:
        done.append("replace")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    sources.save(home, ())

    assert done == ["file", "replace", "directory"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"v": 2, "sources": []}',
        b'{"v": 1, "sources": [], "more": 1}',
        b'{"v": 1, "sources": ' + b"[" * 100_000,
        b'{"v": 1, "sources": []' + b" " * 5_000_000 + b"}",
    ],
    ids=["empty", "not UTF-8", "not an object", "newer", "foreign", "deep", "large"],
)
def test_a_file_that_is_not_ours_is_named_and_kept(home: Path, content: bytes) -> None:
    (home / "sources.json").write_bytes(content)

    with pytest.raises(SourcesBroken, match=r"sources\.json` cannot be used"):
        directories(home)

    assert (home / "sources.json").read_bytes() == content


def test_a_file_that_cannot_be_read_is_named(home: Path) -> None:
    (home / "sources.json").mkdir()

    with pytest.raises(SourcesBroken, match=r"sources\.json` cannot be used: .*not a file"):
        directories(home)


@pytest.mark.parametrize(
    "source",
    [
        Source("../../x", "git", "git@host:x", None, None, KEPT),
        Source("bundled", "directory", "/tmp"),
        Source("x", "directory", "tmp"),
        Source("x", "directory", "/tmp", None, "../up"),
        Source("x", "git", "ext::sh -c id", None, None, KEPT),
        Source("x", "git", "--upload-pack=id", None, None, KEPT),
        Source("x", "git", "git@host:x", "--exec=id", None, KEPT),
        Source("x", "git", "git@host:x", None, "/etc", KEPT),
        Source("x", "git", "git@host:x", None, None, None),
        Source("x", "git", "git@host:x", None, None, Checkout(COMMIT, "../..", 7)),
        Source("x", "git", "git@host:x", None, None, Checkout("HEAD", KEPT.directory, 7)),
    ],
)
def test_a_stored_source_that_could_do_harm_is_not_loaded(home: Path, source: Source) -> None:
    stored = {"v": 1, "sources": [source]}
    (home / "sources.json").write_bytes(msgspec.json.encode(stored))

    with pytest.raises(SourcesBroken, match=r"`\$\.sources\[0\]`: "):
        sources.load(home)


def test_a_name_that_is_stored_twice_is_not_loaded(home: Path) -> None:
    sources.save(home, (Source("x", "directory", "/a"), Source("x", "directory", "/b")))

    with pytest.raises(SourcesBroken, match="twice"):
        sources.load(home)


def test_a_repository_is_fetched_and_its_directory_named(home: Path, remote: Path) -> None:
    directory = fetched(home, team(remote))

    assert (directory / "one.json").read_text() == "{}"
    assert commit_of(home) == run(remote, "rev-parse", "HEAD")
    assert [path.name for path in directory.iterdir()] == ["one.json"]
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]


def test_branches_tags_and_commits_are_refs(home: Path, remote: Path) -> None:
    first = run(remote, "rev-parse", "HEAD")
    run(remote, "tag", "-a", "v1", "-m", "one")
    run(remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    write(remote, "two.json", "{}")
    run(remote, "branch", "feature/x")

    for ref in ("v1", "refs/tags/v1", first):
        assert [path.name for path in fetched(home, team(remote, ref)).iterdir()] == ["one.json"]
        assert commit_of(home) == first
    fetched(home, team(remote, "feature/x"))
    assert commit_of(home) == run(remote, "rev-parse", "HEAD")


def test_only_what_lies_below_the_path_is_written(home: Path, remote: Path) -> None:
    write(remote, "deep/-flows*/two.json", "{}")
    write(remote, "deep/-flowsX/three.json", "{}")

    directory = fetched(home, team(remote, path="deep/-flows*"))

    assert sources.workflow_files(directory) == ["two.json"]
    assert [path.name for path in directory.parent.iterdir()] == ["-flows*"]
    assert [path.name for path in directory.parents[1].iterdir()] == ["deep"]


@pytest.mark.parametrize("path", ["nope", "one.json", "link", "link/ssl"])
def test_a_path_that_is_no_directory_of_the_repository_is_no_source(
    home: Path, remote: Path, path: str
) -> None:
    (remote / "link").symlink_to("/etc")
    write(remote, "two.json", "{}")

    with pytest.raises(SourceFailure, match=f"has no directory `{path}`"):
        fetch(home, team(remote, path=path), at_ms=7)

    assert list((home / "sources").iterdir()) == []


def test_a_new_commit_takes_the_place_of_the_old_when_it_is_saved(home: Path, remote: Path) -> None:
    before = fetched(home, team(remote))
    commit = write(remote, "one.json", '{"id": "x"}')

    (source,) = sources.load(home)
    newer = fetch(home, source, at_ms=8)
    assert used(home) == before
    assert (before / "one.json").read_text() == "{}"

    sources.save(home, (newer,))
    assert commit_of(home) == commit
    assert (used(home) / "one.json").read_text() == '{"id": "x"}'
    assert sources.changed_files(before, used(home)) == 1


def test_history_that_was_written_anew_is_fetched_all_the_same(home: Path, remote: Path) -> None:
    write(remote, "two.json", "{}")
    fetched(home, team(remote))
    run(remote, "reset", "-q", "--hard", "HEAD~1")
    commit = write(remote, "three.json", "{}")

    (source,) = sources.load(home)
    directory = fetched(home, source)

    assert commit_of(home) == commit
    assert sources.workflow_files(directory) == ["one.json", "three.json"]


def test_a_remote_that_vanished_leaves_the_last_good_checkout(home: Path, remote: Path) -> None:
    directory = fetched(home, team(remote))
    remote.rename(remote.with_name("gone"))

    (source,) = sources.load(home)
    with pytest.raises(SourceFailure, match="git cannot fetch `file://") as raised:
        fetch(home, source, at_ms=8)

    assert "\n" not in str(raised.value)
    assert "ls-remote" in raised.value.hint
    assert (used(home), sources.workflow_files(directory)) == (directory, ["one.json"])
    assert leftovers(home) == []


def test_what_a_killed_fetch_left_is_swept_away_by_the_next(home: Path, remote: Path) -> None:
    directory = fetched(home, team(remote))
    for name in (".fetching-deadbeef/git/objects", f"{COMMIT}-deadbeef"):
        (directory.parent / name).mkdir(parents=True)
        (directory.parent / name / "half.json").write_text("{")
    assert used(home) == directory

    (source,) = sources.load(home)
    newer = fetched(home, source)

    # The one before is kept for those who read it now, until the next sync.
    assert {path.name for path in newer.parent.iterdir()} == {newer.name, directory.name}


def test_a_checkout_that_was_damaged_is_mended_by_the_next_sync(home: Path, remote: Path) -> None:
    directory = fetched(home, team(remote))
    (directory / "one.json").write_text("")

    (source,) = sources.load(home)

    assert (fetched(home, source) / "one.json").read_text() == "{}"


def test_a_home_that_cannot_be_written_is_named(home: Path, remote: Path) -> None:
    (home / "sources").write_text("")

    with pytest.raises(SourceFailure, match="sources"):
        fetch(home, team(remote), at_ms=7)
    with pytest.raises(SourceFailure, match=r"sources\.json` cannot be written"):
        sources.save(home / "no", ())


def test_only_files_of_the_top_directory_are_counted_and_not_without_end(tmp_path: Path) -> None:
    (tmp_path / "below.json").mkdir()
    (tmp_path / "below.json" / "x.json").write_text("")
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "loop.json").symlink_to("loop.json")
    assert sources.workflow_files(tmp_path) == []

    for number in range(sources.FILES_MAX + 9):
        (tmp_path / f"{number}.json").write_text("")
    assert len(sources.workflow_files(tmp_path)) == sources.FILES_MAX + 1
