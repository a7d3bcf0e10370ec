"""Checkouts of repositories that mean harm, by real git, and what git is not even asked."""

import os
import select
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.core.git_names import is_ref
from interlock.workspace.git import checkout
from interlock.workspace.git.checkout import SourceFailure, path_is_sound, url_fault
from interlock.workspace.projects.sources import Source, fetch
from tests.effort import scale
from tests.workspace.git.test_state import run
from tests.workspace.projects.test_sources import (
    COMMIT,
    commit_of,
    fetched,
    made_home,
    remote,
    team,
    write,
)

__all__ = ["made_home", "remote"]  # fixtures


def test_links_are_written_as_files_and_submodules_not_at_all(home: Path, remote: Path) -> None:
    (Path.home() / ".gitconfig").write_text(
        "[submodule]\nrecurse = true\n[fetch]\nrecurseSubmodules = true\n"
        '[protocol "file"]\nallow = always\n'
    )
    inner = remote.with_name("inner")
    run(remote, "clone", "-q", str(remote), str(inner))
    run(remote, "submodule", "--quiet", "add", f"file://{inner}", "sub")
    (remote / "passwd.json").symlink_to("/etc/passwd")
    write(remote, "two.json", "{}")

    directory = fetched(home, team(remote))

    assert not (directory / "passwd.json").is_symlink()
    assert (directory / "passwd.json").read_text() == "/etc/passwd"
    assert list((directory / "sub").iterdir()) == []


def test_no_hook_and_no_filter_is_run_and_bytes_are_as_committed(
    home: Path, remote: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    hooks = tmp_path / "hooks" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    write(remote, "two.json", "$Id$ a\nb\n")
    attributes = "*.json filter=evil text eol=crlf ident working-tree-encoding=UTF-16\n"
    (remote / ".gitattributes").write_text(attributes)
    run(remote, "add", ".gitattributes")
    run(remote, "commit", "-q", "-m", "attributes")
    (Path.home() / ".gitconfig").write_text(
        f"[core]\nhooksPath = {hooks}\nfsmonitor = {hooks}/post-checkout\nautocrlf = true\n"
        f"[init]\ntemplateDir = {hooks.parent}\n"
        f'[filter "evil"]\nsmudge = touch {ran}; cat\nrequired = true\n'
    )

    directory = fetched(home, team(remote))

    assert (directory / "two.json").read_bytes() == b"$Id$ a\nb\n"
    assert not ran.exists()


def test_every_call_of_git_says_what_must_not_happen(
    home: Path, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these stands alone when another way in is found, so none is seen to be needed."""
    commit = write(remote, "flows/x.json", "{}")
    calls, real = tmp_path / "calls", shutil.which("git")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "git"
    script.write_text(
        f"#!/bin/sh\nsettings=$({real} config --list --show-scope | grep ^command | tr '\\n' ' ')\n"
        f'echo "$settings" "$*" "env=$GIT_TERMINAL_PROMPT,$GIT_ALLOW_PROTOCOL,$GIT_CONFIG_GLOBAL"'
        f' >>{calls}\nexec {real} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")

    fetch(home, team(remote, "main", "flows"), at_ms=7)

    lines = calls.read_text().splitlines()
    for setting in (
        *("core.hookspath=/dev/null", "core.symlinks=false", "maintenance.auto=false"),
        *("core.autocrlf=false", "submodule.recurse=false", "-c core.fsmonitor=false"),
    ):
        assert all(f"{setting} " in line for line in lines), setting
    ours = [line.partition("/tree ")[2].partition("/tree ")[2] for line in lines]
    assert ours == [
        "init --quiet --template= env=0,,/dev/null",
        "fetch --quiet --depth=1 --no-tags --no-recurse-submodules"
        f" -- file://{remote} main env=0,https:ssh:file,",
        "rev-parse --verify --quiet FETCH_HEAD^{commit} env=0,,/dev/null",
        f"ls-tree -r -l -z --full-tree -- {commit} flows env=0,,/dev/null",
        f"checkout --quiet --force {commit} -- flows env=0,,/dev/null",
    ]


def test_a_rewritten_address_does_not_run_a_command(home: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    run(tmp_path, "config", "--global", f"url.ext::touch {ran} .insteadOf", "https://plain.example")

    with pytest.raises(SourceFailure, match="transport 'ext' not allowed"):
        fetch(home, Source("team", "git", "https://plain.example/x"), at_ms=7)

    assert not ran.exists()


def test_the_repository_of_a_hook_that_calls_us_is_left_alone(
    home: Path, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = run(remote, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))

    fetched(home, team(remote))

    assert commit_of(home) == commit
    assert {path.name for path in tmp_path.iterdir()} == {"remote"}


def tree_of(remote: Path, *entries: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(remote), "mktree"],
        input="\n".join(entries),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def publish(remote: Path, tree: str) -> None:
    commit = run(remote, "commit-tree", "-m", "made by hand", tree)
    run(remote, "update-ref", "refs/heads/main", commit)


@pytest.mark.parametrize("name", ["..", ".git", "git~1"])
def test_a_tree_that_leaves_the_checkout_is_not_written(
    home: Path, remote: Path, name: str
) -> None:
    blob = run(remote, "hash-object", "-w", "one.json")
    below = tree_of(remote, f"100644 blob {blob}\tevil.json")
    publish(remote, tree_of(remote, f"040000 tree {below}\t{name}"))

    with pytest.raises(SourceFailure, match="invalid path"):
        fetch(home, team(remote), at_ms=7)

    assert list(home.rglob("evil.json")) == []


@pytest.mark.slow
def test_a_tree_that_unfolds_without_end_is_refused(home: Path, remote: Path) -> None:
    entry = f"100644 blob {run(remote, 'hash-object', '-w', 'one.json')}"
    for _ in range(10):
        tree = tree_of(remote, *(f"{entry}\t{number}" for number in range(10)))
        entry = f"040000 tree {tree}"
    publish(remote, tree_of(remote, f"{entry}\tbomb"))

    with pytest.raises(SourceFailure, match="holds too much"):
        fetch(home, team(remote), at_ms=7)

    assert list((home / "sources").iterdir()) == []


@pytest.mark.slow
def test_a_tree_that_is_too_deep_or_too_large_is_refused(
    home: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(remote, "a/" * checkout.TREE_DEPTH_MAX + "x.json", "{}")
    fetch(home, team(remote), at_ms=7)
    write(remote, "a/" * (checkout.TREE_DEPTH_MAX + 1) + "x.json", "{}")
    with pytest.raises(SourceFailure, match="holds too much"):
        fetch(home, team(remote), at_ms=7)

    run(remote, "reset", "-q", "--hard", "HEAD~1")
    monkeypatch.setattr(checkout, "TREE_BYTES_MAX", 4)
    fetch(home, team(remote), at_ms=7)
    monkeypatch.setattr(checkout, "TREE_BYTES_MAX", 3)
    with pytest.raises(SourceFailure, match="holds too much"):
        fetch(home, team(remote), at_ms=7)


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_given_up_with_all_that_was_started(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, pipe = tmp_path / "ssh", tmp_path / "alive"
    os.mkfifo(pipe)
    script.write_text(f"#!/bin/sh\nexec 9>{pipe}\nsleep 1000\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(script))
    monkeypatch.setattr(checkout, "FETCH_SECONDS_MAX", 1.0)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(SourceFailure, match="did not arrive within 1 s"):
        fetch(home, Source("team", "git", "git@host.example:x"), at_ms=7)

    # The pipe ends when the last who has it open is gone.
    assert select.select([reader], [], [], 30.0)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_what_a_server_says_cannot_play_with_the_terminal(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "ssh"
    script.write_text(
        "#!/bin/sh\nyes 2>/dev/null | head -c 9000 >&2; printf '\\033[2Jgo away\\n' >&2; exit 1\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(script))

    with pytest.raises(SourceFailure, match=r": y; \?\[2Jgo away; Could not read") as raised:
        fetch(home, Source("team", "git", "git@host.example:x"), at_ms=7)

    assert str(raised.value).isprintable()


def test_without_git_that_is_said(
    home: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(SourceFailure, match="git is not installed") as raised:
        fetch(home, team(remote), at_ms=7)

    assert raised.value.hint.startswith("Install git.")


@pytest.mark.parametrize(
    ("location", "fault"),
    [
        ("https://host.example/x.git", None),
        ("ssh://git@host.example/x", None),
        ("ssh://git@[::1]:22/x", None),
        ("git@host.example:x/y.git", None),
        ("file:///srv/x", None),
        ("/srv/x", None),
        ("--upload-pack=id", "option"),
        ("https://host/x\n", "characters"),
        ("git@host:\x1b[2J", "characters"),
        ("/" + "x" * 3000, "characters"),
        ("ext::sh -c id", "protocol"),
        ("http://host/x", "protocol"),
        ("HTTPS://host/x", "protocol"),
        ("https://user:secret@host/x", "credentials"),
        ("https://token@host/x", "credentials"),
        ("ssh://git:secret@host/x", "credentials"),
        ("user:secret@host:x", "credentials"),
        ("ssh://-oProxyCommand=id/x", "address"),
        ("ssh://-oProxyCommand=id@host/x", "address"),
        ("git@-oProxyCommand=id:x", "address"),
        ("git@host:-x", "address"),
        ("https://host", "address"),
        ("file://host/x", "address"),
        ("somewhere", "address"),
        ("", "address"),
    ],
)
def test_where_git_may_fetch_from(location: str, fault: str | None) -> None:
    assert url_fault(location) == fault


@given(st.text(st.sampled_from("ab-+./~^:@{}*[\\ \n\x00é") | st.characters(), max_size=12))
@example("a.lock/b")
@example("a/.b")
@settings(max_examples=scale(60))
def test_what_is_taken_for_a_ref_is_one_to_git(ref: str) -> None:
    if is_ref(ref):
        name = f"refs/heads/{ref}"
        assert subprocess.run(["git", "check-ref-format", name], check=False).returncode == 0
        assert not ref.startswith(("-", "+"))


@pytest.mark.parametrize("ref", ["main", "feature/x-1", "v1.2.3", "refs/tags/v1", COMMIT])
def test_usual_refs_are_taken(ref: str) -> None:
    assert is_ref(ref)


@pytest.mark.parametrize(
    "path", ["..", "a/../../b", "/etc", "", ".", ".git", "a/.GIT/b", "a\nb", "x" * 300]
)
def test_a_path_that_leaves_the_checkout_is_not_taken(path: str) -> None:
    assert not path_is_sound(path)
    assert path_is_sound("a/..b/c")
