"""Run words in the sandbox: as root or an ordinary user, with as much of Landlock as is asked."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tests.unprivileged import NOBODY

# The interpreter is started by us and only then gives up its rights: an ordinary user may not be
# able to read it.
_WRAPPER = """
import json, os, sys
from pathlib import Path
from interlock.sandbox import call_filter, command, confinement, limits, network_proxy, worktree
given = json.loads(sys.argv[1])
if given["user"] is not None:
    os.setgroups([]); os.setgid(given["user"]); os.setuid(given["user"])
abi = given["abi"] if given["abi"] is not None else confinement.landlock_abi()
level, proxy = "read-only", network_proxy.NetworkProxy() if given["network"] == "proxy" else None
families = {"": (), "all": call_filter.EVERY_FAMILY, "proxy": call_filter.PROXIED}
boundary = confinement.Boundary(given["scratch"], (given["hidden"],), files=tuple(given["files"]),
    socket_families=families[given["network"]], proxy=proxy)
if proxy:
    os.environ |= network_proxy.proxy_variables(proxy.port)
if given["worktree"]:
    level = "workspace"
    boundary = worktree.worktree_boundary(Path(given["worktree"]), scratch=given["scratch"],
        hidden=given["hidden"], branch=given["branch"])
most = limits.UsageLimits()
most.has_time = True
for name, value in given["most"].items():
    setattr(most, name, value)
command.exit_as(command.run_command(
    given["words"], boundary, level, abi, closing_line=given["line"], most=most))
"""


class Place:
    """A directory with what the sandbox may write, may not write and may not read."""

    def __init__(self, base: Path, *, is_ordinary: bool = False) -> None:
        self.base = base
        self.user = NOBODY if is_ordinary else None
        self.outside, self.scratch, self.hidden = (
            base / name for name in ("outside", "scratch", "hidden")
        )
        for folder in (self.outside, self.scratch, self.hidden):
            folder.mkdir()
            self.give(folder)
        self.write("hidden/key", "secret")

    def write(self, name: str, content: str) -> Path:
        path = self.base / name
        path.write_text(content)
        self.give(path)
        return path

    def give(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, self.user, self.user)

    def run(
        self,
        *words: str,
        capture_output: bool = True,
        cwd: Path | str = "/",
        stdin: Any = None,
        stdout: Any = None,
        pass_fds: Any = (),
        **more: Any,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, **more),
            capture_output=capture_output,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            pass_fds=pass_fds,
            text=True,
            check=False,
        )

    def command(
        self,
        *words: str,
        abi: int | None = None,
        worktree: Path | None = None,
        files: tuple[str, ...] = (),
        line: str = "",
        network: Literal["", "all", "proxy"] = "",
        branch: str | None = None,
        most: Mapping[str, int] = {},
    ) -> list[str]:
        given = {
            "words": words,
            "abi": abi,
            "user": self.user,
            "scratch": str(self.scratch),
            "hidden": str(self.hidden),
            "worktree": str(worktree) if worktree else "",
            "files": files,
            "line": line,
            "network": network,
            "branch": branch,
            "most": dict(most),
        }
        return [sys.executable, "-c", _WRAPPER, json.dumps(given)]
