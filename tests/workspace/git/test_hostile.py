"""Repositories that name programs: none of them runs, and filtered files are left as they are."""

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from interlock.mcp.client import StdioClient
from interlock.workspace.git import changed_files, commit_guard, commits, pushes, state, worktrees
from interlock.workspace.git.shadow import GitFailed
from interlock.workspace.git.snapshots import SnapshotFailure, save_snapshot
from interlock.workspace.projects.project_identity import locate_project
from tests.scenes import linear
from tests.workspace.git.test_state import run

HOOKS = (
    *("post-checkout", "post-index-change", "pre-commit", "reference-transaction"),
    *("post-commit", "pre-auto-gc", "fsmonitor-watchman", "query-watchman"),
)
PROGRAMS = (
    *("filter.x.clean", "filter.x.smudge", "core.fsmonitor", "core.sshCommand", "core.pager"),
    *("core.askPass", "core.gitProxy", "core.alternateRefsCommand", "core.editor"),
    *("diff.external", "diff.x.textconv", "diff.x.command", "merge.x.driver", "credential.helper"),
    *("uploadpack.packObjectsHook", "remote.origin.uploadpack", "trailer.x.command"),
)


def age(*paths: Path) -> None:
    """Make git compare the contents: a filter runs only where the stat differs from the index's."""
    for path in paths:
        os.utime(path, (1_000_000_000, 1_000_000_000))


class Trap:
    """A repository whose every program leaves a line in a log."""

    def __init__(self, folder: Path) -> None:
        self.log, self.root = folder / "log", folder / "evil"
        self.program = folder / "program"
        self.program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{self.log}'\ncat\n")
        self.program.chmod(0o755)
        run(folder, "init", "-q", "-b", "main", str(self.root))
        files = {"a.txt": "one\n", "b.bin": "two\n", ".gitattributes": "*.txt filter=x diff=x\n"}
        for name, text in files.items():
            (self.root / name).write_text(text)
        run(self.root, "init", "-q", "inner")
        (self.root / "inner" / "z.txt").write_text("z\n")
        run(self.root / "inner", "add", "-A")
        run(self.root / "inner", "commit", "-q", "-m", "inner")
        run(self.root, "add", "-A")
        run(self.root, "commit", "-q", "-m", "one")
        # A signature, which git would have a program verify.
        commit = run(self.root, "cat-file", "commit", "HEAD").replace(
            "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n", 1
        )
        file = folder / "commit"
        file.write_text(f"{commit}\n")
        self.commit = run(self.root, "hash-object", "-w", "-t", "commit", str(file))
        run(self.root, "update-ref", "HEAD", self.commit)

    def arm(self) -> None:
        self._arm_settings(self.root)
        self._arm_settings(self.root / "inner")
        (self.root / "inner" / ".gitattributes").write_text("* filter=x\n")
        run(self.root, "config", "log.showSignature", "true")
        run(self.root, "config", "gpg.program", str(self.program))  # not a command line
        run(self.root, "config", "remote.origin.url", str(self.root / "inner"))
        # `program` under several names, so that the log shows which way was taken.
        hooks = self.root / "hooks"
        hooks.mkdir()
        for name in HOOKS:
            for folder in (hooks, self.root / ".git" / "hooks"):
                (folder / name).unlink(missing_ok=True)
                (folder / name).symlink_to(self.program)
        run(self.root, "config", "core.hooksPath", str(hooks))
        included = self.root / "included"
        included.write_text(f'[filter "included"]\n\tclean = {self.program} included\n')
        run(self.root, "config", "include.path", str(included))
        attributes = self.root / "attributes"
        attributes.write_text("*.bin filter=included\n")
        run(self.root, "config", "core.attributesFile", str(attributes))
        (self.root / ".git" / "info" / "attributes").write_text("*.bin filter=included\n")
        age(self.root / "a.txt", self.root / "b.bin", self.root / "inner" / "z.txt")
        self.log.unlink(missing_ok=True)

    def _arm_settings(self, repository: Path) -> None:
        for key in PROGRAMS:
            run(repository, "config", key, f"{self.program} {key}")

    def programs_run(self) -> str:
        text = self.log.read_text() if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        return text


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    made = Trap(tmp_path)
    made.arm()
    return made


def _look_at_worktree(trap: Trap) -> None:
    path = trap.root.parent / "home" / "worktrees" / "ses_1"
    worktrees.add_worktree(trap.root, path, "interlock/x/work", "")
    age(path / "a.txt", path / "b.bin")
    status = worktrees.worktree_status(path)
    assert status is not None
    assert status.changed_files == 0
    (path / "new.txt").write_text("new\n")
    assert "+new" in worktrees.diff_since(path, trap.commit)
    worktrees.remove_worktree(path, is_forced=True)


def _guard(trap: Trap) -> None:
    assert commit_guard.staged_paths(trap.root) == []
    with pytest.raises(commit_guard.GuardRefused, match="keeps its hooks in"):
        commit_guard.install_guard(trap.root, "python3", trap.root)


LOOKS: dict[str, Callable[[Trap], object]] = {
    "state": lambda trap: state.observe(trap.root),
    "changes since a commit": lambda trap: state.changes_since(trap.root, trap.commit),
    "last change": lambda trap: changed_files.last_change_ms(trap.root),
    "files changed since": lambda trap: changed_files.files_changed_since(trap.root, trap.commit),
    "uncommitted files": lambda trap: changed_files.uncommitted_files(trap.root, seconds=20),
    "snapshot": lambda trap: save_snapshot(trap.root, "BlueLake-1"),
    "reachable": lambda trap: commits.is_reachable(trap.root, trap.commit),
    "commit of a job": lambda trap: commits.find_commit_of(trap.root, "job"),
    "guard": _guard,
    "identity": lambda trap: locate_project(trap.root.parent / "home", trap.root),
    "worktree": _look_at_worktree,
    "delivery": lambda trap: pushes.committed_changes(trap.root, trap.commit, trap.commit),
    "filtered files": lambda trap: worktrees.filtered_files(trap.root, trap.commit, ["a.txt"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKS)
def test_no_program_of_a_repository_runs(trap: Trap, name: str) -> None:
    before = (trap.root / ".git" / "index").read_bytes()
    LOOKS[name](trap)

    assert trap.programs_run() == ""
    assert (trap.root / ".git" / "index").read_bytes() == before
    run(trap.root, "status")
    assert "filter.x.clean" in trap.programs_run(), "the trap works where git is not restrained"


def test_no_program_runs_to_get_what_a_partial_clone_lacks(trap: Trap) -> None:
    run(trap.root, "config", "extensions.partialClone", "origin")
    run(trap.root, "config", "remote.origin.promisor", "true")
    blob = run(trap.root, "rev-parse", "HEAD:b.bin")
    tip = run(trap.root, "commit-tree", "-p", trap.commit, "-m", "two", f"{trap.commit}^{{tree}}")
    run(trap.root, "update-ref", "HEAD", tip)
    for name in (blob, trap.commit):
        (trap.root / ".git" / "objects" / name[:2] / name[2:]).unlink()
    (trap.root / "b.bin").write_text("three\n")
    trap.programs_run()

    for look in LOOKS.values():
        with suppress(GitFailed, SnapshotFailure, pushes.PushFailed):
            look(trap)

    assert trap.programs_run() == ""


def test_no_program_of_a_submodule_runs_for_a_delivery(tmp_path: Path) -> None:
    """The settings may ask for the changes within a submodule, which another git then shows."""
    trap = Trap(tmp_path)
    inner = trap.root / "inner"
    (inner / "z.txt").write_text("changed\n")
    run(inner, "commit", "-q", "-a", "-m", "two")
    run(trap.root, "commit", "-q", "-a", "-m", "two")
    run(trap.root, "config", "diff.submodule", "diff")
    run(inner, "config", "diff.external", str(trap.program))

    changes = pushes.committed_changes(trap.root, trap.commit, run(trap.root, "rev-parse", "HEAD"))

    assert "+Subproject commit " in changes.patch
    assert trap.programs_run() == ""
    run(trap.root, "diff", "--no-ext-diff", trap.commit, "HEAD")
    assert trap.programs_run(), "git runs it otherwise"


def test_a_bare_repository_in_a_tree_is_not_taken_for_one(trap: Trap) -> None:
    bare = trap.root / "bare"
    run(trap.root, "clone", "-q", "--bare", str(trap.root / "inner"), str(bare))
    commit = run(bare, "rev-parse", "HEAD")

    assert commits.is_reachable(bare, commit) is None


def test_no_program_runs_when_an_agent_names_the_repository(trap: Trap, home: Path) -> None:
    folder = trap.root / ".interlock" / "workflows"
    folder.mkdir(parents=True)
    (folder / "line.json").write_bytes(msgspec.json.encode(linear(2)))
    where = {"workspacePath": str(trap.root)}
    client = StdioClient(home, workspace=trap.root.parent)
    client.initialize()
    calls: list[tuple[str, dict[str, str]]] = [
        ("start_workflow", {"workflowId": "line", "goal": "x"}),
        ("resume_session", {}),
        ("session", {}),
        ("preflight", {}),
        ("session", {"action": "end"}),
    ]
    for tool, arguments in calls:
        client.call(tool, **arguments, **where)
    client.close()

    assert trap.programs_run() == ""


ENCRYPT = "tr a-zA-Z n-za-mN-ZA-M"


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    """A repository as git-crypt leaves it: its own settings have the filter."""
    return _filtered(tmp_path / "repository", {"clean": ENCRYPT, "smudge": ENCRYPT})


def _filtered(root: Path, programs: dict[str, str]) -> Path:
    run(root.parent, "init", "-q", "-b", "main", str(root))
    for part, program in programs.items():
        run(root, "config", f"filter.crypt.{part}", program)
    if programs:
        run(root, "config", "filter.crypt.required", "true")
    (root / ".gitattributes").write_text("*.key filter=crypt\n")
    (root / "a.key").write_text("password\n")
    (root / "b.txt").write_text("plain\n")
    run(root, "add", "-A")
    run(root, "commit", "-q", "-m", "one")
    return root


def _objects(root: Path) -> str:
    listed = run(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    batch = ["git", "-C", str(root), "cat-file", "--batch"]
    found = subprocess.run(batch, input=listed.encode(), capture_output=True, check=True)
    return found.stdout.decode(errors="replace")


def test_a_file_whose_filter_did_not_run_is_neither_reported_nor_saved(encrypted: Path) -> None:
    base = run(encrypted, "rev-parse", "HEAD")
    age(encrypted / "a.key", encrypted / "b.txt")

    assert changed_files.uncommitted_files(encrypted, seconds=20) == ()
    assert changed_files.files_changed_since(encrypted, base) == ()
    assert save_snapshot(encrypted, "clean") is None

    (encrypted / "a.key").write_text("passwort\n")
    (encrypted / "new.key").write_text("password\n")
    (encrypted / "b.txt").write_text("changed\n")
    ref = save_snapshot(encrypted, "changed")

    assert changed_files.uncommitted_files(encrypted, seconds=20) == ("b.txt", "new.key")
    assert changed_files.files_changed_since(encrypted, base) == ("b.txt", "new.key")
    assert ref is not None
    assert run(encrypted, "diff", "--name-only", "HEAD", ref) == "b.txt"
    assert "passwor" not in _objects(encrypted)

    run(encrypted, "add", "a.key")
    assert changed_files.files_changed_since(encrypted, base) == ("a.key", "b.txt", "new.key")
    assert changed_files.uncommitted_files(encrypted, seconds=20) == ("a.key", "b.txt", "new.key")
    assert "cnffjbeg" in run(encrypted, "show", f"{save_snapshot(encrypted, 'staged')}:a.key")


def test_a_split_index_stays_whole(tmp_path: Path) -> None:
    """Git writes the index when it compares, and its shared part into the directory of git."""
    run(tmp_path, "init", "-q", "-b", "main")
    for number in range(50):
        (tmp_path / f"f{number}").write_text("x")
    run(tmp_path, "add", "-A")
    run(tmp_path, "commit", "-q", "-m", "one")
    run(tmp_path, "config", "core.splitIndex", "true")
    run(tmp_path, "config", "splitIndex.maxPercentChange", "50")
    run(tmp_path, "update-index", "--split-index")
    for number in range(20):
        (tmp_path / f"n{number}").write_text("x")
    run(tmp_path, "add", "-A")
    age(tmp_path / "f4")
    before = (tmp_path / ".git" / "index").read_bytes()

    changed = changed_files.files_changed_since(tmp_path, run(tmp_path, "rev-parse", "HEAD"))

    assert changed == tuple(sorted(f"n{number}" for number in range(20)))
    assert save_snapshot(tmp_path, "split")
    assert (tmp_path / ".git" / "index").read_bytes() == before
    assert run(tmp_path, "diff", "--cached", "--name-only").count("\n") == 19


def test_a_change_in_the_moment_of_the_index_is_seen(tmp_path: Path) -> None:
    """Git compares the contents of a file that is as young as the index."""
    run(tmp_path, "init", "-q", "-b", "main")
    run(tmp_path, "config", "core.trustctime", "false")
    file, index = tmp_path / "a.txt", tmp_path / ".git" / "index"
    file.write_text("one\n")
    run(tmp_path, "add", "-A")
    run(tmp_path, "commit", "-q", "-m", "one")
    moment_ns = file.stat().st_mtime_ns
    file.write_text("two\n")
    for path in (file, index):
        os.utime(path, ns=(moment_ns, moment_ns))

    assert changed_files.uncommitted_files(tmp_path, seconds=20) == ("a.txt",)


def test_a_filter_that_nobody_has_configured_hides_no_change(tmp_path: Path) -> None:
    root = _filtered(tmp_path / "repository", {})
    (root / "a.key").write_text("changed\n")

    assert changed_files.uncommitted_files(root, seconds=20) == ("a.key",)
    assert changed_files.files_changed_since(root, run(root, "rev-parse", "HEAD")) == ("a.key",)
    assert run(root, "show", f"{save_snapshot(root, 'changed')}:a.key") == "changed"


def test_a_filter_of_the_user_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Git LFS, whose filter is in the settings of the user."""
    settings = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    run(tmp_path, "config", "--file", str(settings), "filter.crypt.clean", ENCRYPT)
    run(tmp_path, "config", "--file", str(settings), "filter.crypt.smudge", ENCRYPT)
    root = _filtered(tmp_path / "repository", {})
    base = run(root, "rev-parse", "HEAD")
    age(root / "a.key")

    assert changed_files.uncommitted_files(root, seconds=20) == ()

    (root / "a.key").write_text("passwort\n")
    ref = save_snapshot(root, "changed")

    assert changed_files.uncommitted_files(root, seconds=20) == ("a.key",)
    assert changed_files.files_changed_since(root, base) == ("a.key",)
    assert run(root, "show", f"{ref}:a.key") == "cnffjbeg"


def test_no_filter_runs_in_a_worktree_of_unattended_work(
    encrypted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    run(tmp_path, "config", "--file", str(settings), "filter.large.clean", "sha256sum")
    run(tmp_path, "config", "--file", str(settings), "filter.large.smudge", "false")
    (encrypted / ".gitattributes").write_text(
        "* filter=x\n*.key filter=crypt\n*.txt filter=large\n"
    )
    run(encrypted, "commit", "-q", "-a", "-m", "two")
    path = tmp_path / "home" / "worktrees" / "ses_1"

    worktrees.add_worktree(encrypted, path, "interlock/x/work", "")

    age(path / "a.key")
    status = worktrees.worktree_status(path)
    assert (path / "a.key").read_text() == "cnffjbeq\n"
    assert status is not None
    assert status.changed_files == 0
    overrides = worktrees.filter_overrides(path)
    assert {overrides[f"filter.{name}.clean"] for name in ("crypt", "large")} == {""}
    commit, names = run(encrypted, "rev-parse", "HEAD"), ["a.key", "b.txt", ".gitattributes"]
    assert worktrees.filtered_files(encrypted, commit, names) == ("a.key", "b.txt")


def test_worktrees_that_are_away_stay_registered(encrypted: Path, tmp_path: Path) -> None:
    run(encrypted, "worktree", "add", "-q", str(tmp_path / "drive" / "theirs"), "-b", "theirs")
    (tmp_path / "drive").rename(tmp_path / "unmounted")

    path = tmp_path / "home" / "worktrees" / "ses_1"
    worktrees.add_worktree(encrypted, path, "interlock/x/work", "")
    subprocess.run(["rm", "-r", str(path)], check=True)
    worktrees.add_worktree(encrypted, path, "interlock/x/work", "")

    (tmp_path / "unmounted").rename(tmp_path / "drive")
    assert run(tmp_path / "drive" / "theirs", "status", "--porcelain") == ""
    assert (path / "b.txt").read_text() == "plain\n"
