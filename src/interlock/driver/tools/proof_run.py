"""Run a command that proves a result, in the sandbox, on the files of one commit alone."""

import time

from interlock.core.session.secrets import redact_secrets
from interlock.core.unattended.proof import ProofCommand, ProofRun
from interlock.driver.tools.bounded_output import BoundedOutput
from interlock.driver.tools.processes import run_process
from interlock.driver.tools.tool import Workplace

OUTPUT_CHARS = 4_000
# What is not in the commit is put aside, and put back at the end. Ignored files stay: they are the
# environment of the project. Nothing is stashed: `refs/stash` is the user's, too.
_ON_COMMIT = """
command=$1
aside=$(mktemp -d) || exit 125
if test -n "$(git status --porcelain -uall)"; then
    git ls-files -z -d >"$aside/gone" || exit 125
    git ls-files -z -mo --exclude-standard >"$aside/left" || exit 125
    tar --null -T "$aside/left" --ignore-failed-read -cf "$aside/left.tar" 2>/dev/null
    git reset -q --hard HEAD && git clean -fdq || exit 125
fi
bash -c "$command"
code=$?
if test -f "$aside/left.tar"; then
    git reset -q --hard HEAD && git clean -fdq
    tar -xf "$aside/left.tar"
    xargs -0 -r rm -f -- <"$aside/gone"
fi
rm -rf "$aside"
exit $code
"""


async def run_proof(
    workplace: Workplace, wanted: ProofCommand, commit: str, *, seconds: float
) -> ProofRun:
    """Run a proof on the commit at which the worktree stands.

    Raises:
        OSError: it cannot be started.
    """
    words = ("bash", "-c", _ON_COMMIT, "bash", wanted.command)
    return await _run(workplace, words, wanted, commit, seconds)


async def run_in_worktree(
    workplace: Workplace, wanted: ProofCommand, *, seconds: float
) -> ProofRun:
    """Run a proof on the worktree as it is. Raises `OSError` if it cannot be started."""
    return await _run(workplace, ("bash", "-c", wanted.command), wanted, "", seconds)


async def _run(
    workplace: Workplace, words: tuple[str, ...], wanted: ProofCommand, commit: str, seconds: float
) -> ProofRun:
    output, started = BoundedOutput(), time.monotonic()
    code = await run_process(workplace, words, seconds=seconds, on_output=output.add)
    return ProofRun(
        command=wanted.command,
        source=wanted.source,
        commit=commit,
        exit_code=code,
        output=redact_secrets(output.show(workplace.spill))[-OUTPUT_CHARS:],
        ms=int((time.monotonic() - started) * 1_000),
    )
