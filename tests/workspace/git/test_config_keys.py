"""Git's keys, with a program as the value of each: no call of ours runs one.

Git lists the keys itself, so those of a later version are tried as well: in `make test` the ones
that name programs, in `make long` all. They are set at once. Git refuses some values (a program is
no number): such a key is set to `true` or left out, and the call is made again, until it ends as it
does without these settings. Git itself records what it starts.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from interlock.workspace.git import changed_files, commit_guard, state, worktrees
from interlock.workspace.git.checkout import SourceFailure, check_out
from interlock.workspace.projects import project_identity
from tests.effort import EFFORT
from tests.workspace.git.test_hostile import HOOKS, LOOKS, PROGRAMS, Trap, age

SHAPES = ("{}", "!{}", "ext::{}")
"""What git takes for a program: a command, a text for a shell, the address of a remote helper."""
SWITCH = "true"
"""The value of a key that takes no program."""
COMMANDS = ("x", "status", "diff", "log", "config", "rev-parse", "ls-files", "worktree", "fetch")
NAMES = {"branch": "main", "remote": "origin", "submodule": "inner", "protocol": "ext"}
"""The names by which the hostile repository uses its settings; the others are called `x`."""
FURTHER_KEYS = (*PROGRAMS, "core.fsmonitor", "filter.x.process", "url.x.insteadOf")
UNUSABLE = re.compile(
    r"(advice|color|fsck|fetch\.fsck|receive\.fsck|gitweb|extensions)\."
    r"|core\.(bare|worktree|repositoryFormatVersion)$|include\.path$"
)
"""Switches, and what makes of the directory another repository or none. `test_hostile` includes."""
RUNS_PROGRAMS = re.compile(
    r"(alias|pager)\.|(cmd|command|commands|program|helper|editor|pager|hooksPath|proxy|askPass"
    r"|external|textconv|clean|smudge|process|driver|fsmonitor|uploadpack|receivepack|Hook|filter"
    r"|path|update|vcs|url|insteadOf)$",
    re.IGNORECASE,
)
RUN_BY_PLAIN_GIT = {
    "alias.x": "x",
    "core.askPass": "credential fill",
    "core.editor": "commit --allow-empty",
    "core.fsmonitor": "status",
    "core.gitProxy": "ls-remote git://nowhere.invalid/x",
    "core.sshCommand": "ls-remote ssh://nowhere.invalid/x",
    "credential.helper": "credential fill",
    "diff.external": "diff",
    "diff.x.command": "diff",
    "diff.x.textconv": "diff",
    "filter.x.clean": "status",
    "filter.x.process": "status",
    "filter.x.smudge": "checkout HEAD -- a.txt",
    "gpg.program": "log --show-signature",
    "remote.origin.uploadpack": "ls-remote origin",
    "trailer.x.command": "interpret-trailers --trailer x=y",
}
"""By key, a command that runs its program where nothing restrains git."""
DEATH = 128
Settings = Mapping[str, str]
Call = Callable[[Trap], object]


def _keys() -> list[str]:
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, check=True)
    keys = [word for word in listed.stdout.decode().split() if "." in word]
    assert len(keys) > 500, "git lists them"
    filled: dict[str, None] = {}
    for key in (*keys, *FURTHER_KEYS):
        section = key.partition(".")[0]
        names = COMMANDS if section in ("alias", "pager") else (NAMES.get(section, "x"),)
        filled |= {re.sub(r"<[^>]*>|\*", name, key): None for name in names}
    usable = [key for key in filled if not UNUSABLE.match(key)]
    return [key for key in usable if EFFORT == "long" or RUNS_PROGRAMS.search(key)]


class Outcome(NamedTuple):
    codes: list[int]
    """The exit codes of git, in turn."""
    messages: str
    programs: list[str]
    """What was started besides git."""

    @property
    def deaths(self) -> int:
        """How often git has refused to go on."""
        return sum(code >= DEATH for code in self.codes)


class Attempts:
    """Calls of ours, each in a fresh copy of the hostile repository."""

    def __init__(self, trap: Trap) -> None:
        self._trap, self._original = trap, trap.root.with_name("original")
        self._trace = trap.root.with_name("trace")
        trap.root.rename(self._original)

    def make(self, call: Call, settings: Settings) -> Outcome:
        root = self._trap.root
        for folder in (root, root.with_name("home"), self._trace):
            shutil.rmtree(folder, ignore_errors=True)
        self._trace.mkdir()
        shutil.copytree(self._original, root, symlinks=True)
        for config in (root / ".git" / "config", root / "inner" / ".git" / "config"):
            with config.open("a") as file:
                file.writelines(_lines(settings))
        with suppress(OSError, AssertionError, SourceFailure):
            call(self._trap)
        codes, messages, started = list[int](), "", list[str]()
        for file in sorted(self._trace.iterdir()):
            for event in map(json.loads, file.read_text().splitlines()):
                match event:
                    case {"event": "exit", "code": int(code), "sid": str(process)}:
                        codes += [code] if "/" not in process else []  # git's own children
                    case {"event": "error", "msg": str(message)}:
                        messages += f"{message}\n"
                    case {"event": "child_start", "argv": [str(program), *_]}:
                        started += [program] if not program.startswith("git") else []
                    case _:
                        pass
        return Outcome(codes, messages, [*started, *self._trap.programs_run().splitlines()])

    def find_refused(self, call: Call, settings: Settings, failed: Outcome) -> str:
        """The key whose value git refuses: the message names it, or else the keys are halved."""
        words = set(re.findall(r"[\w.-]+", failed.messages.casefold()))
        if named := [key for key in settings if key.casefold() in words]:
            return named[0]
        deaths, keys = self.make(call, {}).deaths, [*settings]
        accepted, refused = 0, len(keys)
        while refused - accepted > 1:
            middle = (accepted + refused) // 2
            half = {key: settings[key] for key in keys[:middle]}
            is_accepted = self.make(call, half).deaths == deaths
            accepted, refused = (middle, refused) if is_accepted else (accepted, middle)
        return keys[accepted]


def _lines(settings: Settings) -> Iterator[str]:
    for key, value in settings.items():
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        yield f'[{section} "{subsection}"]\n' if subsection else f"[{section}]\n"
        yield f"\t{name} = {value}\n"


def _use_worktree(trap: Trap) -> None:
    path = trap.root.parent / "home" / "worktrees" / "ses_1"
    worktrees.add_worktree(trap.root, path, "interlock/x/work", "")
    age(path / "a.txt", path / "b.bin")
    (path / "new.txt").write_text("new\n")
    worktrees.worktree_status(path)
    worktrees.diff_since(path, trap.commit)
    worktrees.remove_worktree(path, is_forced=True)


def _check_out(trap: Trap) -> None:
    draft = trap.root.parent / "home"
    draft.mkdir()
    check_out(draft, f"file://{trap.root}", ref=None, path=None)


CALLS: dict[str, Call] = {
    **{name: look for name, look in LOOKS.items() if name not in ("state", "guard", "worktree")},
    "guard": lambda trap: commit_guard.staged_paths(trap.root),
    "worktree": _use_worktree,
    "source": _check_out,
}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    made = Trap(tmp_path)
    # It does not read what git sends: git waits for some programs to speak first.
    made.program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{made.log}'\n")
    for repository in (made.root, made.root / "inner"):
        hooks = repository / ".git" / "hooks"
        shutil.rmtree(hooks)  # samples
        hooks.mkdir()
        for name in HOOKS:
            (hooks / name).symlink_to(made.program)
    age(made.root / "a.txt", made.root / "b.bin", made.root / "inner" / "z.txt")
    for module, name in (
        *((state, "DEADLINE_SECONDS"), (changed_files, "GIT_SECONDS")),
        (project_identity, "_GIT_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 60.0)  # a busy machine must not change what is seen
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    trace = f"GIT_TRACE2_EVENT='{tmp_path}/trace'"
    real = shutil.which("git")
    git.write_text(f'#!/bin/sh\n[ "$1" = help ] || export {trace}\nexec {real} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent), prepend=":")
    return made


@pytest.fixture
def programs(trap: Trap) -> dict[str, Path]:
    """A program for each key. The log of the repository names the one that ran."""
    folder = trap.root.with_name("keys")
    folder.mkdir()
    paths = {key: folder / key for key in _keys()}
    for path in paths.values():
        path.symlink_to(trap.program)
    return paths


@pytest.mark.slow
def test_no_key_makes_our_git_run_a_program(trap: Trap, programs: dict[str, Path]) -> None:
    attempts, switches, left_out = Attempts(trap), set[str](), set[str]()
    expected = {name: attempts.make(call, {}) for name, call in CALLS.items()}
    assert all(one.codes and not one.programs for one in expected.values())
    for shape in SHAPES:
        settings = {key: shape.format(path) for key, path in programs.items()}
        settings |= dict.fromkeys(switches, SWITCH)
        for name, call in CALLS.items():
            settings = {key: settings[key] for key in settings if key not in left_out}
            while (made := attempts.make(call, settings)).deaths > expected[name].deaths:
                assert made.programs == [], name
                key = attempts.find_refused(call, settings, made)
                if settings[key] == SWITCH:
                    left_out.add(key)
                    del settings[key]
                else:
                    switches.add(key)
                    settings[key] = SWITCH
            assert made.programs == [], name
    # Most keys were tried with a program, and all those by which the next test runs one.
    assert len(switches | left_out) < len(programs) / 2
    assert (switches | left_out).isdisjoint(RUN_BY_PLAIN_GIT)


def test_plain_git_runs_the_programs_of_the_same_repository(
    trap: Trap, programs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(trap)
    for name in ("GIT_EDITOR", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    for key, words in RUN_BY_PLAIN_GIT.items():
        shape = "!{}" if key.startswith("alias.") else "{}"

        def use_git(trap: Trap, words: str = words) -> None:
            (trap.root / "a.txt").write_text("two\n")  # as long as it was, so that git compares
            age(trap.root / "a.txt")
            git = ["git", "-C", str(trap.root), "-c", "user.name=x", "-c", "user.email=x@x"]
            given = b"protocol=https\nhost=x\n\n"
            subprocess.run([*git, *words.split()], input=given, capture_output=True, check=False)

        made = attempts.make(use_git, {key: shape.format(programs[key])})
        assert any(str(programs[key]) in program for program in made.programs), key
