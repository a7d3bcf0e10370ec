"""The reservations of other agents in which a tool call would write."""

import posixpath
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from interlock.core.coordination.foreign_reservation import ForeignReservation
from interlock.core.coordination.path_patterns import (
    PathSet,
    PatternFault,
    covers,
    normalise_pattern,
    overlap,
)
from interlock.core.coordination.refusals import span_text
from interlock.core.gate.paths import GLOB_CHARACTERS, PATH_MAX, UNKNOWN, RealPath, join_path
from interlock.core.gate.shell import Analysis, Command
from interlock.core.gate.tool_call import ToolCall

_WORKTREE_VERBS = (
    *("clean", "switch", "merge", "rebase", "pull", "cherry-pick", "revert", "am", "bisect"),
)
PATHS_MAX = 200  # of one call; with more, the rest is not looked at: this is advice
NAMED_MAX = 5  # of the paths that a call would write in one reservation


class WrittenReservation(msgspec.Struct, frozen=True):
    """A reservation, and the paths in it that a call would write."""

    reservation: ForeignReservation
    paths: tuple[str, ...]
    is_elsewhere: bool
    """Whether it is from another worktree, so that the changes meet at the merge."""

    @property
    def subject(self) -> str:
        """The key for one warning per session, also if the holder renews the reservation."""
        held = self.reservation
        return "\n".join((held.session, held.holder, held.pattern))

    def describe(self, *, now_ms: int) -> str:
        held = self.reservation
        about = f" for “{held.reason}”" if held.reason else ""
        since = f" {span_text(now_ms - held.since_ms)} ago" if held.since_ms else ""
        where = f" in another worktree ({held.worktree})" if self.is_elsewhere else ""
        named = ", ".join(f"`{path}`" for path in self.paths[:NAMED_MAX])
        more = f" and {len(self.paths) - NAMED_MAX} more" if len(self.paths) > NAMED_MAX else ""
        merge = "; the changes will meet at the merge" if self.is_elsewhere else ""
        return (
            f"{held.holder} has reserved `{held.pattern}`{where}{about}{since}, for another"
            f" {span_text(held.until_ms - now_ms)}, and this would write {named}{more}{merge}"
        )


def reservations_written_by(
    call: ToolCall,
    analysis: Analysis | None,
    reservations: Sequence[ForeignReservation],
    root: str,
    real_path: RealPath,
) -> list[WrittenReservation]:
    """Return the exclusive reservations of other agents that a call would write into.

    Reservations in this worktree (`root`) come first.
    """
    held = [one for one in reservations if one.is_exclusive]
    found: dict[int, list[str]] = {}
    for written, is_tree in islice(_written_paths(call, analysis), PATHS_MAX) if held else ():
        path = _path_in_project(written, root, real_path)
        if path is None:
            continue
        for number, one in enumerate(held):
            if is_path_held(one, path, is_tree=is_tree):
                found.setdefault(number, []).append(path)
    written = [
        WrittenReservation(
            held[number],
            paths=tuple(dict.fromkeys(paths)),
            is_elsewhere=held[number].worktree not in ("", root),
        )
        for number, paths in found.items()
    ]
    return sorted(written, key=lambda one: one.is_elsewhere)


def is_path_held(one: ForeignReservation, path: str, *, is_tree: bool) -> bool:
    """Whether a reservation has the file, or something in the tree, that would be written."""
    held = PathSet((one.pattern,), one.excluded)
    if covers(held, path, folds_case=one.folds_case):
        return True
    is_pattern = any(character in path for character in GLOB_CHARACTERS)
    if not is_tree and not is_pattern:
        return False
    wanted = PathSet((path, f"{path}/**") if is_tree else (path,))
    return overlap(wanted, held, folds_case=one.folds_case) is not None


def _written_paths(call: ToolCall, analysis: Analysis | None) -> Iterator[tuple[str, bool]]:
    """The paths, each with whether everything below it is written too."""
    yield from ((join_path(call.cwd, path), False) for path in call.paths)
    for command in analysis.commands if analysis else ():
        folder = join_path(call.cwd, command.folder)
        if _changes_worktree(command):
            yield folder, True
        for path in dict.fromkeys((*command.paths, *command.trees)):
            if UNKNOWN not in path:
                yield join_path(folder, path), path in command.trees


def _changes_worktree(command: Command) -> bool:
    """Whether a command of git may change any file of the worktree, whoever works on it."""
    words = [word for word in command.arguments if not word.startswith("-")]
    verb = words[0] if command.program == "git" and words else ""
    if verb == "stash":
        return words[1:2] not in (["list"], ["show"], ["create"], ["store"], ["drop"])
    if verb == "reset":
        return bool({"--hard", "--merge", "--keep"} & set(command.arguments))
    return verb in _WORKTREE_VERBS


def _path_in_project(path: str, root: str, real_path: RealPath) -> str | None:
    """The path relative to the project; None if it is not in it."""
    real = real_path(posixpath.normpath(path)) if len(path) <= PATH_MAX else None
    if real is None:
        return None
    normal = normalise_pattern(real, root)
    return None if isinstance(normal, PatternFault) else normal
