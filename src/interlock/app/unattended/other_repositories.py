"""The other repositories of an order: each is checked when it is asked for, not when it begins."""

import re
from collections.abc import Collection
from pathlib import Path

import msgspec

from interlock.core.refusal import PlainRefusal
from interlock.core.unattended.order import (
    FIRST_REPOSITORY,
    REPOSITORIES_MAX,
    OtherRepository,
    Runner,
)
from interlock.workspace.git.pushes import remote_names
from interlock.workspace.git.state import root_of
from interlock.workspace.git.worktrees import common_directory, head_commit

NAME_CHARS_SHOWN = 80
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


def settle_repositories(
    first: Path, wanted: tuple[OtherRepository, ...], runner: Runner
) -> tuple[OtherRepository, ...] | PlainRefusal:
    """Return them with the tops of their checkouts, and the commits to begin with.

    `first`: the checkout in which the work was ordered.
    """
    if wanted and runner == "claude-code":
        # Its tools for files stay where it was started, and its shell writes one worktree.
        why, hint = "Claude Code works in one worktree only", "Have a model do it: `--runner model`"
        return _refuse(wanted[0].name, why, f"{hint}, or order it for each of them.")
    if len(wanted) > REPOSITORIES_MAX:
        why = f"besides the first there are {REPOSITORIES_MAX} at most"
        return _refuse(wanted[REPOSITORIES_MAX].name, why, "Order the work in two parts.")
    settled: list[OtherRepository] = []
    # By git's own directories: two worktrees of a repository are the same repository.
    names = {common_directory(first): FIRST_REPOSITORY}
    for one in wanted:
        found = _name_objection(one.name, names.values()) or _find_repository(one)
        if isinstance(found, PlainRefusal):
            return found
        common = common_directory(Path(found.path))
        if common in names:
            why = f"it is the same repository as `{names[common]}`"
            return _refuse(one.name, why, "Leave it out: one worktree is enough for it.")
        names[common] = one.name
        settled.append(found)
    return tuple(settled)


def _name_objection(name: str, taken: Collection[str]) -> PlainRefusal | None:
    if name == FIRST_REPOSITORY:
        why = "that is the name of the repository in which you order it"
        return _refuse(name, why, "Choose another name for it.")
    if name in taken:
        return _refuse(name, "the name is used twice", "Give each a name of its own.")
    if not _NAME.fullmatch(name):
        hint = "A name is a short word, as in `web` or `api-2`: letters, digits and hyphens."
        return _refuse(name[:NAME_CHARS_SHOWN], "it is not called by a short word", hint)
    return None


def _find_repository(one: OtherRepository) -> OtherRepository | PlainRefusal:
    root = root_of(Path(one.path)) if Path(one.path).is_dir() else None
    if root is None or not head_commit(root, "HEAD"):
        why = f"`{one.path}` is not in a git repository with a commit"
        hint = "Name the directory of a checkout. A new one: `git init && git add . && git commit`."
        return _refuse(one.name, why, hint)
    if one.fetch and has_origin(root):
        return msgspec.structs.replace(one, path=str(root))
    base = head_commit(root, one.base or "HEAD")
    if not base:
        why = f"`{one.base}` is no commit of `{root}`"
        return _refuse(one.name, why, "Name a branch, a tag or a commit that it has.")
    return msgspec.structs.replace(one, path=str(root), base=base, fetch="")


def has_origin(root: Path) -> bool:
    """Whether work can start from a branch of `origin`, rather than from the checkout."""
    return "origin" in remote_names(root)


def _refuse(name: str, why: str, hint: str) -> PlainRefusal:
    error = f"The repository `{name}` cannot be part of the work: {why}"
    return PlainRefusal("invalid_arguments", error, hint)
