"""Commit what was changed in a worktree, with git in the sandbox like any other tool.

Git outside would run what the settings of a repository inside the worktree name, and would move
whatever branch a model has made HEAD stand for.
"""

from collections.abc import Sequence

import msgspec

from interlock.driver.tools.bounded_output import clean_text
from interlock.driver.tools.processes import run_process
from interlock.driver.tools.tool import Workplace

SECONDS_MAX = 120
_MESSAGE_CHARACTERS_MAX = 20_000
_BEGIN = """
branch=$1 message=$2 base=$3
shift 3
head=$(git symbolic-ref -q HEAD)
test "$head" = "refs/heads/$branch" || { echo "HEAD is not the branch $branch"; exit 1; }
needs_filter() { git config "filter.$1.clean" >/dev/null; }
"""
# No filter runs here, so a file that needs one would be stored as it is: a large file instead of
# its pointer, or a secret in plain text. Filters that exist are set, to nothing, in the
# environment; a filter that nobody has configured would not run elsewhere either.
_ADD_ALL = """
filtered=()
while IFS= read -r -d '' file && IFS= read -r -d '' _ && IFS= read -r -d '' name; do
    if needs_filter "$name"; then filtered+=(":(exclude,literal)$file"); fi
done < <(git ls-files -z -mo --exclude-standard | git check-attr -z --stdin filter)
git add -A -- . "${filtered[@]}" || exit 1
"""
_ADD_NAMED = """
git reset -q "$base" || exit 1
for file; do
    if test -d "$file" && test ! -L "$file"; then continue; fi
    if git check-ignore -q -- "$file"; then continue; fi
    name=$(git check-attr filter -- "$file")
    if needs_filter "${name##*: filter: }"; then
        echo "$file needs a git filter, and none runs in this worktree"; exit 1
    fi
    git update-index --add --remove --replace -- "$file" || exit 1
done
"""
_END = """
git diff --cached --quiet --ignore-submodules=none ||
    git commit -q --no-verify -m "$message" || exit 1
left=$(git status --porcelain -uall --ignore-submodules=none | wc -l)
echo "$(git rev-parse HEAD) $((left)) ${#filtered[@]}"
"""


class CommitFailed(Exception):
    """Nothing was committed. The message says why."""


class BranchEnd(msgspec.Struct, frozen=True):
    commit: str
    """The commit at which the branch stands, whether it was made just now or not."""
    files_left: int
    """The changed files that are in no commit."""
    files_filtered: int = 0
    """Those of them that were left out because they need a git filter."""


async def commit_changes(workplace: Workplace, message: str) -> BranchEnd:
    """Commit everything that was changed, if anything was, but no file that needs a git filter.

    Raises:
        CommitFailed: git refuses, or HEAD is not the branch of the worktree.
        OSError: git cannot be started.
    """
    return await _commit(workplace, _BEGIN + _ADD_ALL + _END, message)


async def commit_named_files(
    workplace: Workplace, message: str, base: str, files: Sequence[str]
) -> BranchEnd:
    """Make one commit after `base` of these files alone; those that are gone are removed in it.

    Commits that a model has made are undone for that, because they may hold other files: those are
    left as they are, uncommitted. So are directories, and files that git ignores.

    Raises:
        CommitFailed: git refuses, a file needs a git filter, or HEAD is not the branch of the
            worktree.
        OSError: git cannot be started.
    """
    return await _commit(workplace, _BEGIN + _ADD_NAMED + _END, message, base or "HEAD", *files)


async def has_changes(workplace: Workplace) -> bool:
    """Whether files differ from the commit of the worktree; False where git cannot tell."""
    output = bytearray()
    words = ("git", "status", "--porcelain")
    await run_process(workplace, words, seconds=SECONDS_MAX, on_output=output.extend)
    return bool(output.strip())


async def _commit(
    workplace: Workplace, script: str, message: str, base: str = "HEAD", *files: str
) -> BranchEnd:
    output = bytearray()
    words = (workplace.branch, message[:_MESSAGE_CHARACTERS_MAX], base, *files)
    code = await run_process(
        workplace,
        ("bash", "-c", script, "bash", *words),
        seconds=SECONDS_MAX,
        on_output=output.extend,
    )
    text = clean_text(bytes(output[-_MESSAGE_CHARACTERS_MAX:]))
    if code != 0:
        raise CommitFailed(text or f"git took longer than {SECONDS_MAX} s")
    commit, left, filtered = text.strip().rpartition("\n")[2].split(" ")
    return BranchEnd(commit, int(left), int(filtered))
