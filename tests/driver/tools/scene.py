"""A repository with two worktrees of two sessions, and calls of tools in the first of them."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.driver.tools.catalogue import MalformedCall, check_call
from interlock.driver.tools.tool import Level, ToolOutcome, Workplace
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from tests.unprivileged import NOBODY

needs_landlock = pytest.mark.skipif(
    landlock_abi() < ABI_MIN,
    reason="NOT TESTED: this machine has no Landlock, so the sandbox is not tried",
)
LEVELS: list[Any] = [pytest.param("workspace", marks=needs_landlock), "off"]
BRANCH, OTHER_BRANCH = "interlock/one/work", "interlock/other/work"
SECRET = "only-for-the-user"

# A driver in a process of its own. It may give up its rights after it has been imported: an
# ordinary user may not be able to read the interpreter, and so its tools are started with another.
_DRIVER = """
import asyncio, json, os, sys
given = json.loads(sys.stdin.readline())
sys.path[:0] = given["modules"]
from pathlib import Path
from interlock.driver.tools.catalogue import check_call
from interlock.driver.tools.tool import Workplace
if given["user"] is not None:
    os.setgroups([]); os.setgid(given["user"]); os.setuid(given["user"])
    sys.executable = "/usr/bin/python3"
workplace = Workplace(Path(given["worktree"]), given["level"],
    Path(given["home"]), Path(given["spill"]), branch=given["branch"])

async def main():
    for name, arguments in given["calls"]:
        text = json.dumps(arguments).replace("DRIVER", str(os.getpid()))
        tool, checked = check_call(name, text)
        outcome = await tool.run(workplace, checked)
        print(json.dumps([outcome.text, outcome.is_error, outcome.exit_code]), flush=True)

asyncio.run(main())
"""


class Scene:
    """What a session may reach, and what it may not."""

    def __init__(self, base: Path, *, is_ordinary: bool = False) -> None:
        self.base = base
        self.user = NOBODY if is_ordinary else None
        self.person = base / "person"
        """The home of the user."""
        self.home, self.repository = self.person / "data", self.person / "repository"
        self.worktree, self.other = (self.home / "worktrees" / x for x in ("one", "other"))
        self.scratch, self.other_scratch = (base / "scratch" / x for x in ("one", "other"))
        self.spill = self.scratch / "spill"
        for folder in (self.home, self.scratch, self.other_scratch / "spill", base / "outside"):
            folder.mkdir(parents=True)
        self._git(base, "init", "-q", "-b", "main", str(self.repository))
        self.write(self.repository / "tracked", "as it was\n")
        self._git(self.repository, "add", ".")
        self._git(self.repository, "commit", "-q", "-m", "one")
        for path, branch in ((self.worktree, BRANCH), (self.other, OTHER_BRANCH)):
            self._git(self.repository, "worktree", "add", "-q", "-b", branch, str(path))
        self.give_away()

    def _git(self, folder: Path, *words: str) -> None:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *names, *words], cwd=folder, check=True)

    def write(self, path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def give_away(self) -> None:
        """Let all of it belong to the one who drives."""
        for path in (self.base, *self.base.rglob("*")):
            if self.user is not None:
                os.lchown(path, self.user, self.user)

    def workplace(self, level: Level = "workspace") -> Workplace:
        return Workplace(self.worktree, level, self.home, self.spill, branch=BRANCH)

    def call(
        self, name: str, *, workplace: Workplace | None = None, **arguments: object
    ) -> ToolOutcome:
        """Call a tool in this process."""
        return asyncio.run(call_tool(workplace or self.workplace(), name, **arguments))

    def start_driver(
        self, calls: list[tuple[str, dict[str, Any]]], level: Level = "workspace"
    ) -> "subprocess.Popen[bytes]":
        """Start a driver that makes these calls; DRIVER in them stands for its process."""
        given: dict[str, object] = {
            "modules": sys.path,
            "user": self.user,
            "worktree": str(self.worktree),
            "level": level,
            "home": str(self.home),
            "spill": str(self.spill),
            "branch": BRANCH,
            "calls": calls,
        }
        process = subprocess.Popen(
            [sys.executable, "-c", _DRIVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                "HOME": str(self.person),
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "ANTHROPIC_API_KEY": SECRET,
                "GITHUB_TOKEN": SECRET,
                "SSH_AUTH_SOCK": f"/{SECRET}",
                "INTERLOCK_HOME": f"/{SECRET}",
            },
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(given).encode() + b"\n")
        process.stdin.flush()
        return process

    def drive(
        self, calls: list[tuple[str, dict[str, Any]]], level: Level = "workspace"
    ) -> list[ToolOutcome]:
        """Have a driver make these calls; their outcomes."""
        output, _ = self.start_driver(calls, level).communicate(timeout=100)
        answers = cast("list[list[Any]]", [json.loads(line) for line in output.splitlines()])
        return [ToolOutcome(*answer) for answer in answers]


async def call_tool(workplace: Workplace, name: str, **arguments: object) -> ToolOutcome:
    checked = check_call(name, json.dumps(arguments))
    assert not isinstance(checked, MalformedCall), checked.message
    tool, parsed = checked
    return await tool.run(workplace, parsed)


def own_in(repository: Path, worktree: str) -> list[Path]:
    """Return what the session of this worktree may change in the directory of git."""
    git, folder = repository / ".git", Path(BRANCH).parent
    branches = [git / "refs/heads" / folder, git / "logs/refs/heads" / folder]
    return [git / "worktrees" / worktree, git / "objects", *branches]


def contents(base: Path, *own: Path) -> dict[str, str]:
    """Return the mode, the number of links and the content of every file that is not in `own`."""
    seen: dict[str, str] = {}
    for path in sorted(base.rglob("*")):
        if not any(path.is_relative_to(folder) for folder in own):
            content = path.read_bytes() if path.is_file() else b""
            mode = f"{path.lstat().st_mode:o} {path.lstat().st_nlink if path.is_file() else ''}"
            seen[str(path)] = f"{mode} {hashlib.sha256(content).hexdigest()}"
    return seen
