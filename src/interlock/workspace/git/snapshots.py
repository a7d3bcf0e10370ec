"""Save the uncommitted work of a worktree as a commit that no branch has, and change nothing."""

from pathlib import Path

from interlock.workspace.files.sandboxed_path import first_link
from interlock.workspace.git.runner import run_git
from interlock.workspace.git.shadow import GitFailed, Shadow, decode, encode, open_shadow, require

REF_PREFIX = "refs/interlock/taken-over/"
_WRITTEN = ("objects/*", "lfs", "lfs/*", "lfs/objects/*", "lfs/objects/*/*")
"""Where git, and the user's Git LFS, write the content of files."""
_AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Interlock"), ("EMAIL", "interlock@localhost"))
}


class SnapshotFailure(Exception):
    """The work could not be saved; the message gives the reason."""


def save_snapshot(worktree: Path, name: str) -> str | None:
    """Save all that is not committed, new files too; return the ref, or None if there is nothing.

    A file whose filter cannot be run is saved as it is staged: its plain content may be a secret.

    Raises:
        SnapshotFailure: git fails. Nothing was changed.
    """
    ref = f"{REF_PREFIX}{name}"
    try:
        with open_shadow(worktree) as shadow:
            _refuse_links(shadow, ref)
            tree = _write_tree(shadow)
            if not tree:
                return None
            parents = ("-p", shadow.head) if shadow.head else ()
            message = f"Uncommitted work of {name}, saved before it was taken over"
            made = shadow.run("commit-tree", tree, *parents, "-m", message, variables=_AUTHOR)
        require(run_git(worktree, "update-ref", ref, made.output.strip(), variables=_AUTHOR))
    except OSError as failure:
        raise SnapshotFailure(str(failure)) from failure
    return ref


def _refuse_links(shadow: Shadow, ref: str) -> None:
    """Refuse a repository out of which links would lead what is written here.

    An agent may have written it. Git follows a link to a directory, and appends a line to the log
    of a ref, whichever file a link makes of that.
    """
    own, dot_git = shadow.index.parent, shadow.root / ".git"
    back = own / "gitdir"  # the other end of a linked worktree, which is not in the worktree
    if own != dot_git and not (back.is_file() and Path(back.read_text().strip()) == dot_git):
        raise GitFailed(f"`{dot_git}` leads to a repository that does not know this worktree")
    found = (path for pattern in _WRITTEN for path in shadow.common.glob(pattern))
    inner = (path.relative_to(shadow.common).parts for path in found)
    for parts in (*inner, ref.split("/"), ("logs", *ref.split("/"))):
        if link := first_link(shadow.common, parts):
            raise GitFailed(f"`{shadow.common / link}` is a link")


def _write_tree(shadow: Shadow) -> str:
    """Write the tree of all files as they are now; empty if that is the tree of HEAD."""
    listed = shadow.run("ls-files", "-z", "-mdo", "--exclude-standard")
    # A repository within the worktree is listed as a directory. It is not ours to save.
    names = {one for one in decode(listed.raw).split("\0") if one and one[-1] != "/"}
    names -= shadow.find_unfiltered(names)
    given = encode("".join(f"{one}\0" for one in sorted(names)))
    # Git LFS would keep the content of new files in the shadow, which goes away.
    storage = ("-c", f"lfs.storage={shadow.common / 'lfs'}")
    shadow.run(
        *storage, *("update-index", "-z", "--add", "--remove", "--replace", "--stdin"), stdin=given
    )
    tree = shadow.run("write-tree").output.strip()
    if not shadow.head:
        return tree if names else ""
    committed = shadow.run("rev-parse", f"{shadow.head}^{{tree}}").output.strip()
    return "" if tree == committed else tree
