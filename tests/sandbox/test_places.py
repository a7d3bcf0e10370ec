"""The places of the sandbox: worktrees, scratch directories, the data home."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from interlock.sandbox.scratch import DIRECTORY, NAME_LENGTH, ScratchUnsafe, scratch_directory
from interlock.sandbox.worktree import WorktreeUnsafe, own_git_directory, worktree_boundary
from tests.sandbox.sandboxed import Place
from tests.unprivileged import NOBODY

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        landlock_abi() < ABI_MIN,
        reason="NOT TESTED: this machine has no Landlock, so the sandbox is not tried",
    ),
]


def test_the_level_workspace_writes_the_worktree_and_reads_little_of_the_home(
    tmp_path: Path, home: Path
) -> None:
    place = Place(tmp_path)
    user = home.parent
    (user / ".ssh").mkdir()
    (user / ".ssh" / "id").write_text("secret")

    for worktree in _project_with_worktree(user, "linked"):
        text = (
            "echo x > new && chmod 700 new && git add new"
            " && git -c user.name=a -c user.email=a@b commit -qm two"
            f"; cat {user}/.ssh/id; echo x > {place.outside}/new; chmod 777 {place.outside}"
        )
        done = place.run("/bin/sh", "-c", text, worktree=worktree, cwd=worktree)
        log = subprocess.check_output([*GIT, "log", "--oneline"], cwd=worktree)
        assert b"two" in log, done.stderr
        assert "secret" not in done.stdout
        assert list(place.outside.iterdir()) == []
        assert place.outside.stat().st_mode & 0o777 != 0o777


def test_a_worktree_names_its_repository_and_nothing_else(tmp_path: Path) -> None:
    """What is written inside is not believed outside."""
    place = Place(tmp_path)
    project, linked = _project_with_worktree(tmp_path, "linked")

    files = f"{project}/.git/hooks/post-checkout {project}/.git/config"
    text = f"for f in {files}; do echo x >> $f; done; git log --oneline"
    done = place.run("/bin/sh", "-c", text, worktree=linked, cwd=linked)
    assert "one" in done.stdout
    assert done.stderr.count("Permission denied") == 2
    forged = (
        "rm -r .git; mkdir -p {base}/worktrees/n; echo / > {base}/worktrees/n/commondir;"
        " echo $PWD/.git > {base}/worktrees/n/gitdir; echo 'gitdir: {link}' > .git;"
        f" ln -sfn {place.outside} {{base}}/objects; ln -sfn {place.outside} {{base}}/refs"
    )
    for base in ("fake", f"{place.scratch}/fake", f"{project}/.git/objects/fake"):
        for link in (f"{base}/worktrees/n", base, "/", str(place.outside)):
            text = forged.format(base=base, link=link)
            # As if the wrapper had been killed before it could put the link back.
            subprocess.run(["/bin/sh", "-c", text], cwd=linked, check=False)
            place.run("/bin/sh", "-c", f"echo x > {place.outside}/new", worktree=linked, cwd=linked)
            assert list(place.outside.iterdir()) == [], text
    for text in ("mkfifo", "ln -s /dev/zero", "ln -s .git", "printf '\\377\\0' >"):
        subprocess.run(["/bin/sh", "-c", f"rm -rf .git; {text} .git"], cwd=linked, check=True)
        assert own_git_directory(linked) is None, "it is neither believed nor waited for"


def test_git_moves_only_the_branches_beside_the_one_that_is_given(tmp_path: Path) -> None:
    place = Place(tmp_path)
    branch, other = "interlock/one/work", "interlock/other/work"
    project, linked = _project_with_worktree(tmp_path, branch)
    subprocess.run(["git", "branch", other], cwd=project, check=True)
    subprocess.run(["git", "pack-refs", "--all"], cwd=project, check=True)  # removes directories
    before = _repository(project)

    text = (
        "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two || exit 1; "
        f"for ref in heads/main heads/{other} heads/new tags/new remotes/origin/main stash; do"
        " git update-ref refs/$ref HEAD; git update-ref -d refs/$ref; done;"
        f" for file in HEAD index config packed-refs hooks/pre-commit; do"
        f" echo x >> {project}/.git/$file; rm -f {project}/.git/$file; done"
    )
    done = place.run("/bin/sh", "-c", text, worktree=linked, cwd=linked, branch=branch)

    log = subprocess.check_output(["git", "log", "--format=%s", branch], cwd=project)
    assert log == b"two\none\n", done.stderr
    assert _repository(project) == before
    refused = place.run(
        *(*GIT, "commit", "-q", "--allow-empty", "-m", "three"),
        worktree=linked,
        cwd=linked,
        branch="alone",
    )
    assert refused.returncode != 0


BRANCH = "interlock/one/work"


@pytest.mark.parametrize("branch", [None, BRANCH])
def test_the_files_by_which_git_finds_its_settings_are_put_back(
    tmp_path: Path, branch: str | None
) -> None:
    """Git that is run outside would do what other settings say."""
    place = Place(tmp_path)
    _, linked = _project_with_worktree(tmp_path, BRANCH)
    own = own_git_directory(linked)
    assert own
    files = [linked / ".git", *(own / name for name in ("HEAD", "gitdir", "commondir"))]
    before = {path: path.read_bytes() for path in files}
    for text, count in (
        ("rm .git; git init -q .; git config core.fsmonitor evil", 1),
        ("rm .git; ln -s /etc/passwd .git; chmod 555 .", 1),
        (f"echo {place.outside} > {own}/commondir; echo /nowhere > {own}/gitdir", 2),
        (f"echo '[core] fsmonitor = evil' > {own}/config.worktree; rm {own}/commondir", 2),
        (f"ln -sf {place.outside}/new {own}/index; ln -sf {place.outside}/new {own}/HEAD", 2),
    ):
        run = partial(place.run, worktree=linked, cwd=linked, branch=branch)
        done = run("/bin/sh", "-c", text)

        assert done.stderr.count("git finds its settings") == count, done.stderr
        assert {path: path.read_bytes() for path in files} == before
        assert not (own / "config.worktree").exists()
        assert not (own / "index").is_symlink()
        assert run("git", "reset", "-q").stderr == ""


def test_a_worktree_stays_on_its_branch_but_may_look_at_any_commit(tmp_path: Path) -> None:
    place = Place(tmp_path)
    _, linked = _project_with_worktree(tmp_path, BRANCH)
    run = partial(place.run, worktree=linked, cwd=linked, branch=BRANCH)

    assert run("git", "checkout", "-q", "--detach").stderr == ""
    assert run("git", "checkout", "-q", BRANCH).stderr == ""
    switched = run("git", "symbolic-ref", "HEAD", "refs/heads/main")

    assert "was put back" in switched.stderr
    assert run("git", "symbolic-ref", "HEAD").stdout == f"refs/heads/{BRANCH}\n"


def test_the_command_puts_the_link_of_a_worktree_back(tmp_path: Path) -> None:
    _, linked = _project_with_worktree(tmp_path, BRANCH)
    before = (linked / ".git").read_bytes()
    words = ["sandbox", "run", "--level", "workspace", "--worktree", str(linked)]

    done = subprocess.run(
        [sys.executable, "-m", "interlock", *words, "--", "/bin/sh", "-c", "rm .git; git init"],
        cwd=linked,
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"`{linked}/.git` was put back" in done.stderr
    assert (linked / ".git").read_bytes() == before


def test_a_file_that_cannot_be_put_back_changes_no_exit_code(tmp_path: Path) -> None:
    """Somebody else removes the worktree while a command runs in it."""
    place = Place(tmp_path)
    project, linked = _project_with_worktree(tmp_path, BRANCH)
    go = place.scratch / "go"
    text = f"echo; while [ ! -e {go} ]; do sleep 0.01; done; exit 7"
    command = place.command("/bin/sh", "-c", text, worktree=linked, branch=BRANCH)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        words = ["git", "worktree", "remove", "--force", str(linked)]
        subprocess.run(words, cwd=project, check=True)
        go.touch()
        _, said = process.communicate()

    assert process.returncode == 7
    assert f"`{linked}/.git` could not be put back: No such file or directory" in said


def test_directories_in_place_of_a_file_are_removed_also_if_they_are_closed(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    _, linked = _project_with_worktree(tmp_path, BRANCH)
    own = own_git_directory(linked)
    text = f"rm {own}/HEAD; mkdir -p {own}/HEAD/a; touch {own}/HEAD/a/b; chmod 0 {own}/HEAD/a"

    done = place.run("/bin/sh", "-c", text, worktree=linked, cwd=linked, branch=BRANCH)

    assert f"`{own}/HEAD` was put back" in done.stderr
    assert Path(f"{own}/HEAD").read_text() == f"ref: refs/heads/{BRANCH}\n"


def test_a_worktree_whose_link_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    """As one is whose wrapper was killed before it could put the link back."""
    project, linked = _project_with_worktree(tmp_path, BRANCH)
    (linked / ".git").unlink()
    subprocess.run(["git", "init", "-q", str(linked)], check=True)
    boundary = partial(
        worktree_boundary, linked, scratch=str(tmp_path / "s"), hidden="/hidden", branch=BRANCH
    )

    with pytest.raises(WorktreeUnsafe, match="remove it, and run `git worktree repair` in the"):
        boundary()

    shutil.rmtree(linked / ".git")
    subprocess.run(["git", "worktree", "repair"], cwd=project, check=True)
    assert str(project / ".git" / "objects") in boundary().writable


def test_what_the_user_signs_in_with_is_not_read_from_beside_a_tool_or_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where the home is in a directory of the system, all of which is read."""
    for base in (tmp_path, Path("/var/tmp") / f"interlock-home-{os.getpid()}"):
        user = base / "user"
        monkeypatch.setenv("HOME", str(user))
        monkeypatch.setenv("PATH", f"{user}/.cargo/bin:{user}/.claude/local:/usr/bin:/bin")
        secret = {
            *(".cargo/credentials.toml", ".claude/.credentials.json", ".config/git/credentials"),
            *(".netrc", ".ssh/id"),
        }
        plain = {".cargo/bin/tool", ".cargo/env", ".claude/local/tool", ".config/git/config"}
        for name in secret | plain:
            (user / name).parent.mkdir(parents=True, exist_ok=True)
            (user / name).write_text(f"{name}\n")
        place = Place(base)
        place.scratch = base / "tmp" / "scratch"
        place.scratch.mkdir(parents=True)
        try:
            paths = [str(user / name) for name in secret | plain]
            done = place.run("/bin/cat", *paths, worktree=place.outside)
            assert set(done.stdout.split()) == plain
        finally:
            shutil.rmtree(base)


def _project_with_worktree(base: Path, branch: str) -> tuple[Path, Path]:
    project, linked = base / "project", base / "linked"
    subprocess.run(["git", "init", "-q", "-b", "main", str(project)], check=True)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "one"], cwd=project, check=True)
    words = ["worktree", "add", "-q", "-b", branch, str(linked)]
    subprocess.run([*GIT, *words], cwd=project, check=True)
    return project, linked


def _repository(project: Path) -> dict[str, bytes]:
    """What git keeps for the main checkout and the branches of others."""
    own = ("objects/", "worktrees/linked/", "refs/heads/interlock/one", "logs/refs/heads/interlock")
    return {
        name: path.read_bytes()
        for path in (project / ".git").rglob("*")
        if path.is_file() and not (name := str(path.relative_to(project / ".git"))).startswith(own)
    }


def test_no_level_reads_the_data_home_wherever_it_is(tmp_path: Path) -> None:
    place = Place(tmp_path)
    inside = place.run("/bin/true", worktree=tmp_path, cwd=tmp_path)
    assert "Interlock's own directory" in inside.stderr
    place.hidden = Path("/var/tmp") / f"interlock-hidden-{os.getpid()}"
    place.hidden.mkdir()
    try:
        (place.hidden / "key").write_text("secret")
        done = place.run("/bin/cat", f"{place.hidden}/key", "/etc/passwd", worktree=place.outside)
        assert "root" in done.stdout
        assert "secret" not in done.stdout
    finally:
        shutil.rmtree(place.hidden)


def test_a_scratch_directory_works_through_a_link_and_after_its_mode_was_changed(
    tmp_path: Path,
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    place = Place(tmp_path)
    for _ in range(2):
        place.scratch = Path(scratch_directory(str(tmp_path / "link"), "session"))
        done = place.run("/bin/sh", "-c", "touch -d 2001-01-01 $TMPDIR/a && chmod 755 $TMPDIR/..")
        assert (done.returncode, done.stderr) == (0, "")


def test_a_scratch_directory_stays_where_they_are(tmp_path: Path) -> None:
    scratch = Path(scratch_directory(str(tmp_path), "../../a-1_b"))

    assert scratch == tmp_path / "scratch" / "a-1_b"
    assert scratch.stat().st_mode & 0o777 == scratch.parent.stat().st_mode & 0o777 == 0o700


def test_a_socket_in_a_scratch_directory_has_a_path_that_is_short_enough() -> None:
    home = "/home/firstname.lastname/.local/share/interlock"
    path = f"{home}/{DIRECTORY}/{'x' * NAME_LENGTH}/tmp/pymp-12345678/listener-12345678"

    assert len(path) <= 107, "one of Python's `multiprocessing`"


def test_a_command_in_the_data_home_reads_its_own_scratch_directory_and_no_other(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    other = Path(scratch_directory(str(place.hidden), "other"))
    (other / "kept").write_text("secret")
    place.scratch = Path(scratch_directory(str(place.hidden), "session"))
    key = f"{place.hidden}/key"

    done = place.run("/bin/sh", "-c", f"echo mine > $TMPDIR/a; cat $TMPDIR/a {other}/kept {key}")
    linked = place.run("/bin/sh", "-c", f"cd $TMPDIR; ln {key} a.hard; ln -s {key} b; cat a.* b")

    assert (done.stdout, done.stderr.count("Permission denied")) == ("mine\n", 2)
    assert "secret" not in linked.stdout


def test_a_merge_is_tried_from_below_without_writing_into_the_repository(tmp_path: Path) -> None:
    place = Place(tmp_path)
    repository = tmp_path / "repository"
    below = repository / "one" / "two"
    below.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for branch in ("main", "side"):
        subprocess.run([*GIT, "checkout", "-q", "--orphan", branch], cwd=below, check=True)
        (below / branch).write_text(branch)
        subprocess.run([*GIT, "add", "-A"], cwd=below, check=True)
        subprocess.run([*GIT, "commit", "-q", "-m", branch], cwd=below, check=True)
    objects = sorted((repository / ".git" / "objects").rglob("*"))

    words = ("git", "merge-tree", "--write-tree", "--allow-unrelated-histories", "main", "side")
    done = place.run(*words, cwd=below)

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted((repository / ".git" / "objects").rglob("*")) == objects
    assert list((place.scratch / "objects").rglob("*")), "the merged tree is there"


def test_a_scratch_directory_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    base = tmp_path / "scratch"
    (tmp_path / "elsewhere").mkdir()  # not `/`: scratch directories that are used are cleaned up
    base.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ScratchUnsafe):
        scratch_directory(str(tmp_path), "session")
    base.unlink()
    base.mkdir()
    with pytest.raises(ScratchUnsafe):
        scratch_directory(str(tmp_path), "session")
