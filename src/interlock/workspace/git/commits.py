"""Committing files of ours and nothing else, as the user would, and finding such a commit again."""

from pathlib import Path

import msgspec

from interlock.workspace.git.runner import GitResult, run_git, run_trusted_git

JOB_TRAILER = "Interlock-Job"
RECENT_MAX = 200


class CommitOutcome(msgspec.Struct, frozen=True):
    sha: str = ""
    """The commit; empty if there is none."""
    reason: str = ""
    """Why there is none."""
    is_wanted: bool = True
    """False: nobody has asked for one."""
    is_refused: bool = False
    """Git or a hook of the repository did not let it happen; it may the next time."""


class RepositoryBusy(OSError):
    """Another git works in the repository. It will be done soon."""


def commit_files(workspace: Path, paths: list[str], subject: str, job: str) -> CommitOutcome:
    """Commit these files alone, even if they are excluded. What else is staged stays staged.

    The hooks and the filters of the repository run, so the user must have trusted the checkout. The
    commit names the job, and a repeated call finds it: no second one is made.
    """
    if found := find_commit_of(workspace, job):
        return CommitOutcome(found)
    identity = run_trusted_git(workspace, "var", "GIT_COMMITTER_IDENT")
    if identity.code:
        return CommitOutcome(reason="git does not know who commits (user.name, user.email)")
    if (added := run_trusted_git(workspace, "add", "-f", "--", *paths)).code:
        return _refusal_of(added)
    if run_trusted_git(workspace, "status", "--porcelain", "--", *paths).output == "":
        head = run_trusted_git(workspace, "rev-parse", "-q", "--verify", "HEAD").output.strip()
        return CommitOutcome(head, "nothing has changed in them")
    message = f"{subject}\n\n{JOB_TRAILER}: {job}"
    committed = run_trusted_git(workspace, "commit", "-q", "-m", message, "--only", "--", *paths)
    if committed.code:
        run_trusted_git(workspace, "reset", "-q", "--", *paths)
        return _refusal_of(committed)
    return CommitOutcome(find_commit_of(workspace, job) or "", "")


def find_commit_of(workspace: Path, job: str) -> str | None:
    """Return the commit that names the job, if it is among the recent ones of HEAD."""
    form = f"--format=%H %(trailers:key={JOB_TRAILER},valueonly,separator=%x2C)"
    log = run_git(workspace, "log", f"-{RECENT_MAX}", form)
    for line in log.output.splitlines():
        sha, _, jobs = line.partition(" ")
        if job in (name.strip() for name in jobs.split(",")):
            return sha
    return None


def is_reachable(workspace: Path, commit: str) -> bool | None:
    """Whether a branch, a tag or HEAD has the commit; None where nobody can tell."""
    if run_git(workspace, "rev-parse", "--git-dir").code:
        return None
    if run_git(workspace, "merge-base", "--is-ancestor", commit, "HEAD").code == 0:
        return True
    refs = run_git(workspace, "for-each-ref", "--count=1", "--contains", commit)
    return refs.code == 0 and bool(refs.output)


def _refusal_of(result: GitResult) -> CommitOutcome:
    if "index.lock" in result.error:
        raise RepositoryBusy(11, "another git works in the repository")
    lines = (result.error.strip() or result.output.strip()).splitlines()
    faults = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:]
    reason = faults[0][:200] if faults else f"git commit ended with {result.code}"
    return CommitOutcome(reason=reason, is_refused=True)
