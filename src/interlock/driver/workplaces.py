"""Where the tools of a session work: the level of the sandbox, and the scratch directory."""

import os
from functools import cache
from pathlib import Path

from interlock.core.ids import SessionId
from interlock.core.unattended.order import FIRST_REPOSITORY, RepositoryPlace, SandboxWish
from interlock.driver.tools.tool import Level, Workplace
from interlock.sandbox import confinement
from interlock.sandbox.scratch import scratch_directory

SPILL = "outputs"


@cache
def is_sandbox_here() -> bool:
    """Whether this machine can confine commands."""
    return confinement.landlock_abi() >= confinement.ABI_MIN


def choose_level(wish: SandboxWish, *, is_read_only: bool) -> Level:
    """The level at which tools run; `off` where there is no sandbox, or none is wanted."""
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
