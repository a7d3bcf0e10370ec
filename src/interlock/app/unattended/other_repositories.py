"""The other repositories of an order: each is checked when it is asked for, not when it begins."""

import re
from collections.abc import Collection
from pathlib import Path

import msgspec

from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal
from interlock.core.unattended.order import (
    FIRST_REPOSITORY,
    REPOSITORIES_MAX,
    OtherRepository,
    Runner,
)
from interlock.workspace.git.state import root_of
from interlock.workspace.git.worktrees import common_directory, head_commit

NAME_CHARS_SHOWN = 80
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


class RepositoryRefused(Refusal, frozen=True):
    name: str
    why: str
    hint: str

    def explain(self) -> Explanation:
        error = f"The repository `{self.name}` cannot be part of the work: {self.why}"
        return Explanation("invalid_arguments", error, self.hint)


def settle_repositories(
    first: Path, wanted: tuple[OtherRepository, ...], runner: Runner
) -> tuple[OtherRepository, ...] | RepositoryRefused:
    """Return them with the tops of their checkouts, and the commits to begin with.

    `first`: the checkout in which the work was ordered.
    """
    if wanted and runner == "claude-code":
        # Its tools for files stay where it was started, and its shell writes one worktree.
        why, hint = "Claude Code works in one worktree only", "Have a model do it: `--runner model`"
        return RepositoryRefused(wanted[0].name, why, f"{hint}, or order it for each of them.")
    if len(wanted) > REPOSITORIES_MAX:
        why = f"besides the first there are {REPOSITORIES_MAX} at most"
        return RepositoryRefused(wanted[REPOSITORIES_MAX].name, why, "Order the work in two parts.")
    settled: list[OtherRepository] = []
    # By git's own directories: two worktrees of a repository are the same repository.
    names = {common_directory(first): FIRST_REPOSITORY}
    for one in wanted:
        found = _name_objection(one.name, names.values()) or _find_repository(one)
        if isinstance(found, RepositoryRefused):
            return found
        common = common_directory(Path(found.path))
        if common in names:
            why = f"it is the same repository as `{names[common]}`"
            return RepositoryRefused(one.name, why, "Leave it out: one worktree is enough for it.")
        names[common] = one.name
        settled.append(found)
    return tuple(settled)


def _name_objection(name: str, taken: Collection[str]) -> RepositoryRefused | None:
    if name == FIRST_REPOSITORY:
        why = "that is the name of the repository in which you order it"
        return RepositoryRefused(name, why, "Choose another name for it.")
    if name in taken:
        return RepositoryRefused(name, "the name is used twice", "Give each a name of its own.")
    if not _NAME.fullmatch(name):
        hint = "A name is a short word, as in `web` or `api-2`: letters, digits and hyphens."
        return RepositoryRefused(name[:NAME_CHARS_SHOWN], "it is not called by a short word", hint)
    return None


def _find_repository(one: OtherRepository) -> OtherRepository | RepositoryRefused:
    root = root_of(Path(one.path)) if Path(one.path).is_dir() else None
    if root is None or not head_commit(root, "HEAD"):
        why = f"`{one.path}` is not in a git repository with a commit"
        hint = "Name the directory of a checkout. A new one: `git init && git add . && git commit`."
        return RepositoryRefused(one.name, why, hint)
    base = head_commit(root, one.base or "HEAD")
    if not base:
        why = f"`{one.base}` is no commit of `{root}`"
        return RepositoryRefused(one.name, why, "Name a branch, a tag or a commit that it has.")
    return msgspec.structs.replace(one, path=str(root), base=base)
