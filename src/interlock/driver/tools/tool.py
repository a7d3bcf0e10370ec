"""A tool of the driver: what the model is told of it, and what happens when it is called."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.core.gate.tools import ToolClass

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
