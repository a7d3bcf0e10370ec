"""A tool of the driver: what the model is told of it, and what happens when it is called."""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.core.gate.tools import ToolClass
from interlock.core.ids import SessionId
from interlock.core.unattended.order import FIRST_REPOSITORY, RepositoryPlace, SandboxWish
from interlock.sandbox import confinement
from interlock.sandbox.scratch import scratch_directory

Level = Literal["read-only", "workspace", "off"]
"""The level of the sandbox; `off` only where the machine has none and the user does not insist."""


class Workplace(msgspec.Struct, frozen=True):
    """Where the tools of a session work, and what they may reach."""

    worktree: Path
    level: Level
    home: Path
    """Interlock's own directory, which no tool can read."""
    spill: Path
    """A directory for whole outputs of which the model is shown only the ends. In the scratch
    directory, so that the model can read on in them."""
    branch: str = ""
    """The branch of the worktree, as in `interlock/SESSION/work`. Git can move those in the same
    directory, and no others; if it has no slash, none at all."""
    has_network: bool = False
    opened_files: set[str] = msgspec.field(default_factory=set[str])
    """The files that were read or written before, by their real paths: only these are edited."""
    worktrees: Mapping[str, Path] = {}
    """Where the work is about several repositories: the worktree of each, by its name."""
    variables: Mapping[str, str] = {}
    """Further environment variables of its tools."""

    def in_repository(self, name: str) -> "Workplace":
        """The same place, seen from another worktree: what may be reached does not change."""
        return msgspec.structs.replace(self, worktree=self.worktrees.get(name, self.worktree))

    @property
    def roots(self) -> tuple[Path, ...]:
        """All worktrees of the session."""
        return tuple(self.worktrees.values()) or (self.worktree,)

    @property
    def scratch(self) -> Path:
        """The directory that tools may write at every level. It exists, and is the session's."""
        return self.spill.parent


class ToolOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a call as the model sees it."""

    text: str
    is_error: bool = False
    exit_code: int | None = None
    """Of a command."""


class DriverTool(msgspec.Struct, frozen=True):
    name: str
    description: str
    arguments: type[msgspec.Struct]
    """Its JSON Schema is what the model is told; what the model sends is checked against it."""
    kind: ToolClass
    """The class by which the gate decides."""
    run: Callable[[Workplace, Any], Awaitable[ToolOutcome]]
    """Run it in a workplace. Raises `OSError` if it cannot be started there.

    It never raises because of what the model wrote, and when it is cancelled, everything that it
    started has ended before it returns.
    """


SPILL = "outputs"


@cache
def is_sandbox_here() -> bool:
    """Whether this machine can confine commands."""
    return confinement.landlock_abi() >= confinement.ABI_MIN


def choose_level(wish: SandboxWish, *, is_read_only: bool) -> Level:
    """The sandbox level of tools; `off` without a sandbox or if it is switched off."""
    if wish == "off" or not is_sandbox_here():
        return "off"
    return "read-only" if is_read_only else "workspace"


def make_workplace(
    home: Path,
    session: SessionId,
    worktree: Path,
    *,
    branch: str,
    level: Level,
    has_network: bool,
    others: tuple[RepositoryPlace, ...] = (),
) -> Workplace:
    """Raises `OSError` if the scratch directory cannot be made."""
    real_home = Path(os.path.realpath(home))
    spill = Path(scratch_directory(str(real_home), session)) / SPILL
    spill.mkdir(mode=0o700, exist_ok=True)
    worktrees = {FIRST_REPOSITORY: worktree} if others else {}
    worktrees |= {place.name: Path(place.worktree) for place in others}
    return Workplace(worktree, level, real_home, spill, branch, has_network, worktrees=worktrees)
