"""Commit what was changed in a worktree, with git in the sandbox like any other tool.

Git outside would run what the settings of a repository inside the worktree name, and would move
whatever branch a model has made HEAD stand for.
"""

from interlock.driver.tools.bounded_output import clean_text
from interlock.driver.tools.processes import run_process
from interlock.driver.tools.tool import Workplace

SECONDS_MAX = 120
_MESSAGE_CHARACTERS_MAX = 20_000
_SCRIPT = """
head=$(git symbolic-ref -q HEAD)
test "$head" = "refs/heads/$1" || { echo "HEAD is not the branch $1"; exit 1; }
git add -A || exit 1
git diff --cached --quiet --ignore-submodules=none && exit
git commit -q --no-verify -m "$2" && git rev-parse HEAD
"""


class CommitFailed(Exception):
    """Nothing was committed. The message says why."""


async def commit_changes(workplace: Workplace, message: str) -> str:
    """Commit everything that was changed; the commit, or nothing if nothing was.

    Raises:
        CommitFailed: git refuses, or HEAD is not the branch of the worktree.
        OSError: git cannot be started.
    """
    output = bytearray()
    code = await run_process(
        workplace,
        ("bash", "-c", _SCRIPT, "bash", workplace.branch, message[:_MESSAGE_CHARACTERS_MAX]),
        seconds=SECONDS_MAX,
        on_output=output.extend,
    )
    text = clean_text(bytes(output[:_MESSAGE_CHARACTERS_MAX]))
    if code != 0:
        raise CommitFailed(text or f"git took longer than {SECONDS_MAX} s")
    return text.rpartition("\n")[2]
