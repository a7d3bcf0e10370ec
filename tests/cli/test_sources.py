"""`interlock sources`, as typed, with real repositories."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from interlock.store import lock
from interlock.store.lock import WriteLock
from interlock.workspace.projects import sources
from tests.cli.conftest import Said, Terminal
from tests.cli.note_files import put
from tests.workspace.git.test_state import run
from tests.workspace.projects.test_sources import remote, write

__all__ = ["remote"]  # a fixture


def head(repository: Path) -> str:
    return run(repository, "rev-parse", "HEAD")


def test_a_repository_is_added_listed_and_removed(
    typed: Terminal, remote: Path, home: Path
) -> None:
    commit = head(remote)

    added = typed("sources", "add", f"file://{remote}", "--ref", "main", "--name", "team")
    assert added == Said(0, f"Added the git source team at {commit[:12]}: 1 workflow files.\n", "")
    listed = typed("sources", "list")
    assert listed.out == (
        f"team  git  file://{remote}  main  just now  {commit[:12]}  1 workflow files\n"
    )
    (row,) = json.loads(typed("sources", "list", "--json").out)
    ((_, directory),) = sources.directories(home)
    assert row.pop("synced_ms") > 0
    assert row == {
        "name": "team",
        "kind": "git",
        "location": f"file://{remote}",
        "ref": "main",
        "path": None,
        "directory": str(directory),
        "commit": commit,
        "files": 1,
        "problem": None,
    }
    removed = typed("sources", "remove", "team")
    assert removed == Said(0, f"Removed team: file://{remote}\n", "")
    assert typed("sources", "list", "--json").out == "[]\n"
    assert list((home / "sources").iterdir()) == []


def test_a_directory_is_read_where_it_lies_and_stays_when_removed(
    typed: Terminal, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "My Flows" / "below").mkdir(parents=True)
    (tmp_path / "My Flows" / "below" / "one.json").write_text("{}")

    added = json.loads(typed("sources", "add", "My Flows", "--path", "./below/", "--json").out)
    assert (added["name"], added["kind"], added["files"]) == ("my-flows", "directory", 1)
    assert sources.directories(home) == [("my-flows", tmp_path / "My Flows" / "below")]
    assert typed("sources", "list").out == (
        f"my-flows  directory  {tmp_path}/My Flows (below)  -  -  -  1 workflow files\n"
    )
    assert typed("sources", "sync").out == (
        "my-flows: a directory, read where it lies; 1 workflow files\n"
    )

    assert json.loads(typed("sources", "remove", "my-flows", "--json").out) == {
        "removed": "my-flows"
    }
    assert (tmp_path / "My Flows" / "below" / "one.json").exists()


def test_a_directory_with_no_workflow_files_or_too_many_is_added_with_a_word_about_it(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "FILES_MAX", 2)
    (tmp_path / "empty").mkdir()
    for number in range(4):
        put(tmp_path, f"many/{number}.json", "{}")

    assert typed("sources", "add", "empty").out == (
        "Added the directory source empty: 0 workflow files.\n"
        f"None lie in {tmp_path}/empty; `--path` would choose a directory below.\n"
    )
    assert "more than 2 workflow files: only 2 are read" in typed("sources", "add", "many").out
    assert typed("sources", "sync").code == 0


def test_a_worktree_is_a_directory_and_a_bare_repository_is_fetched(
    typed: Terminal, remote: Path, tmp_path: Path
) -> None:
    run(tmp_path, "clone", "-q", "--bare", str(remote), str(tmp_path / "bare.git"))

    kinds = [
        json.loads(typed("sources", "add", *arguments, "--json").out)["kind"]
        for arguments in (
            (str(remote),),
            (str(remote), "--ref", "main", "--name", "main"),
            ("bare.git",),
        )
    ]

    assert kinds == ["directory", "git", "git"]
    names = [row["name"] for row in json.loads(typed("sources", "list", "--json").out)]
    assert names == ["remote", "main", "bare"]


def test_a_sync_says_what_moved(typed: Terminal, remote: Path) -> None:
    typed("sources", "add", f"file://{remote}")
    before = head(remote)
    write(remote, "two.json", "{}")
    write(remote, "notes.txt", "not a workflow")
    write(remote, "one.json", "[]")
    after = head(remote)

    assert typed("sources", "sync") == Said(
        0, f"remote: {before[:12]} -> {after[:12]}; 2 workflow files changed\n", ""
    )
    assert typed("sources", "sync", "remote").out == (
        f"remote: {after[:12]}, nothing new; 0 workflow files changed\n"
    )
    run(remote, "reset", "-q", "--hard", before)
    assert json.loads(typed("sources", "sync", "--json").out) == [
        {
            "name": "remote",
            "kind": "git",
            "before": after,
            "commit": before,
            "changed": 2,
            "files": 1,
            "error": None,
            "hint": None,
        }
    ]


def test_one_source_that_fails_does_not_keep_the_others(
    typed: Terminal, remote: Path, tmp_path: Path, home: Path
) -> None:
    run(tmp_path, "clone", "-q", str(remote), str(tmp_path / "second"))
    (tmp_path / "plain").mkdir()
    for name in ("remote", "second"):
        typed("sources", "add", f"file://{tmp_path / name}")
    typed("sources", "add", "plain")
    last_good, commit = sources.directories(home)[0], head(remote)
    remote.rename(tmp_path / "gone")
    (tmp_path / "plain").rmdir()
    newer = write(tmp_path / "second", "two.json", "{}")

    said = typed("sources", "sync")

    assert said.code == 1
    assert said.out == f"second: {commit[:12]} -> {newer[:12]}; 1 workflow files changed\n"
    assert f"error: remote: git cannot fetch `file://{remote}`: " in said.err
    assert f"asks the same. {commit[:12]} stays in use.\n" in said.err
    assert "hint: Restore it, or forget it with `interlock sources remove plain`.\n" in said.err
    assert sources.directories(home)[0] == last_good
    assert sources.workflow_files(last_good[1]) == ["one.json"]
    failed = typed("sources", "sync", "remote", "--json")
    assert (failed.code, json.loads(failed.out)[0]["commit"]) == (1, commit)
    problems = [row["problem"] for row in json.loads(typed("sources", "list", "--json").out)]
    assert problems == [
        None,
        None,
        f"`{tmp_path / 'plain'}` cannot be read: No such file or directory",
    ]


def test_a_sync_that_is_not_saved_changes_nothing_not_even_with_the_next(
    typed: Terminal, remote: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        typed("sources", "add", f"file://{remote}", "--name", name)
    before = sources.directories(home)
    write(remote, "two.json", "{}")
    full, save = [True], sources.save

    def full_once(where: Path, what: tuple[sources.Source, ...]) -> None:
        if full:
            full.clear()
            raise sources.SourceFailure("no room", "Make some.")
        save(where, what)

    with monkeypatch.context() as patch:
        patch.setattr(sources, "save", full_once)
        said = typed("sources", "sync")

    assert said.code == 1
    assert said.err.startswith("error: first: no room\n")
    assert said.out.startswith("second: ")
    assert sources.directories(home)[0] == before[0]
    assert sources.workflow_files(before[0][1]) == ["one.json"]
    assert "1 workflow files changed" in typed("sources", "sync", "first").out


def test_a_checkout_that_is_gone_is_listed_so_and_fetched_again(
    typed: Terminal, remote: Path, home: Path
) -> None:
    typed("sources", "add", f"file://{remote}")
    ((_, directory),) = sources.directories(home)
    directory.rename(home / "elsewhere")

    said = typed("sources", "list").out

    assert "No such file or directory; `interlock sources sync remote` fetches it again" in said
    assert "nothing new; 1 workflow files changed" in typed("sources", "sync").out


def test_a_name_is_given_once(typed: Terminal, tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    typed("sources", "add", "flows")

    assert typed("sources", "add", "flows") == Said(
        1,
        "",
        f"error: There is a source `flows` already: {tmp_path}/flows\n\n"
        "hint: Call this one otherwise with `--name`, or free the name with"
        " `interlock sources remove flows`.\n",
    )
    assert typed("sources", "add", "flows", "--name", "again").code == 0


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("ext::sh -c id", "Nothing is fetched by `ext`"),
        ("http://host.example/x", "Nothing is fetched by `http`"),
        ("git://host.example/x", "Nothing is fetched by `git`"),
        ("--upload-pack=touch x", "`--upload-pack=touch x` begins with `-`, as options do"),
        ("/no/such/place", "There is no directory `/no/such/place`"),
        ("nowhere", "`nowhere` is no directory, and no address that git fetches from"),
        ("https://host/\x1b[2J", "The location is too long or cannot be printed"),
    ],
)
def test_a_location_that_is_not_fetched_from_is_refused(
    typed: Terminal, home: Path, location: str, error: str
) -> None:
    said = typed("sources", "add", "--", location)

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: {error}\n\nhint: ")
    refused = json.loads(typed("sources", "add", "--json", "--", location).out)
    assert (refused["code"], refused["error"]) == ("source_location", error)
    assert not home.exists()


@pytest.mark.parametrize(
    "location",
    ["https://me:hunter2@host.example/x", "https://hunter2@h/x"],
)
def test_a_password_is_not_taken_and_not_repeated(typed: Terminal, location: str) -> None:
    assert "er2" not in typed("sources", "add", "https://me:hunt/er2@host/x").err
    assert typed("sources", "add", location) == snapshot(
        Said(
            code=1,
            out="",
            err="""\
error: The location carries a user's name or password

hint: Leave out what stands before `@` and use a credential helper, or ssh.
""",
        )
    )


@pytest.mark.parametrize(
    ("option", "code"),
    [
        (("--name", "../x"), "source_name"),
        (("--name", "bundled"), "source_name"),
        (("--name", ""), "source_name"),
        (("--ref", "--exec=id"), "source_ref"),
        (("--ref", "a..b"), "source_ref"),
        (("--ref", "a:b"), "source_ref"),
        (("--path", "../up"), "source_path"),
        (("--path", "/etc"), "source_path"),
        (("--path", "out"), "source_path"),
        (("--path", "nope"), "source_path"),
        (("--path", ".git"), "source_path"),
    ],
)
def test_an_option_that_leads_elsewhere_is_refused(
    typed: Terminal, tmp_path: Path, home: Path, option: tuple[str, str], code: str
) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "out").symlink_to("/etc")

    said = typed("sources", "add", "flows", *option, "--json")

    assert (said.code, json.loads(said.out)["code"]) == (1, code)
    assert typed("sources", "add", "flows", *option).err.startswith("error: `")
    assert not home.exists()


def test_what_cannot_be_fetched_is_not_added(typed: Terminal, tmp_path: Path, home: Path) -> None:
    said = typed("sources", "add", f"file://{tmp_path}/nothing", "--json")

    assert (said.code, json.loads(said.out)["code"]) == (1, "source_failed")
    assert sources.load(home) == ()
    assert list((home / "sources").iterdir()) == []


def test_a_source_that_is_not_there_is_refused(typed: Terminal, tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    typed("sources", "add", "flows")
    error = "error: No source `flow`\n\nhint: `interlock sources list` shows them: `flows`.\n"

    assert typed("sources", "sync", "flow") == Said(1, "", error)
    assert typed("sources", "remove", "flow") == Said(1, "", error)
    assert json.loads(typed("sources", "remove", "flow", "--json").out)["code"] == "unknown_source"


@pytest.mark.parametrize("command", [("list",), ("sync",), ("add", "."), ("remove", "x")])
def test_a_list_that_is_not_ours_is_named_and_kept(
    typed: Terminal, home: Path, command: tuple[str, ...]
) -> None:
    home.mkdir()
    (home / "sources.json").write_text("{}")

    said = typed("sources", *command)

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: `{home}/sources.json` cannot be used: ")
    assert said.err.endswith("hint: Correct the file, or move it away.\n")
    assert (home / "sources.json").read_text() == "{}"


def test_two_commands_do_not_change_sources_at_once(
    typed: Terminal, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flows").mkdir()
    home.mkdir()
    monkeypatch.setattr(lock, "WAIT_SECONDS_MAX", 0.0)

    with WriteLock(home / "sources.lock").hold():
        said = typed("sources", "add", "flows")
        assert typed("sources", "list").code == 0

    assert said.code == 1
    assert said.err.startswith("error: Another `interlock sources` command is at work\n")
    assert sources.load(home) == ()


def test_a_command_that_is_killed_while_it_fetches_leaves_nothing_that_is_used(
    typed: Terminal, remote: Path, home: Path, tmp_path: Path
) -> None:
    """Killed by what it waits for: git runs this in the place of ssh."""
    script = tmp_path / "ssh"
    script.write_text('#!/bin/sh\nkill -9 "$VICTIM"\n')
    script.chmod(0o755)
    starter = f"export GIT_SSH={script} VICTIM=$$; exec {sys.executable} -m interlock sources add"

    done = subprocess.run(
        ["sh", "-c", f"{starter} git@host.example:x --name team"], capture_output=True, check=False
    )

    assert done.returncode == -9
    assert [path.name[:10] for path in (home / "sources" / "team").iterdir()] == [".fetching-"]
    assert sources.directories(home) == []
    assert typed("sources", "add", f"file://{remote}", "--name", "team").code == 0
    ((_, directory),) = sources.directories(home)
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]
