"""Proofs of an unattended result: commands that the driver runs itself, on the commit it made.

The order names them, so no model chooses the command by which its own work is judged.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

ProofSource = Literal["order", "project", "workflow"]
ResultOutcome = Literal["success", "unverified", "failed"]

NO_PROOF = (
    "no command proves the changes: name one with `proof` under `[unattended]` in"
    " .interlock/config.toml, in the trigger, or with `--proof`"
)
_SOURCES: dict[ProofSource, str] = {
    "order": "named by its order",
    "project": "named by the project",
    "workflow": "named by the workflow",
}


class ProofCommand(msgspec.Struct, frozen=True, rename="camel"):
    command: str
    source: ProofSource


class ProofRun(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    command: str
    source: ProofSource
    commit: str
    """The commit on whose files alone it ran; empty: it ran on the worktree as it was."""
    exit_code: int | None = None
    """None: its time was up."""
    output: str = ""
    """The end of it."""
    ms: int = 0

    @property
    def has_passed(self) -> bool:
        return self.exit_code == 0

    @property
    def end(self) -> str:
        """How it ended, where, and who named it, in words."""
        if self.has_passed:
            end = "passed"
        elif self.exit_code is None:
            end = "did not end in time"
        else:
            end = f"failed with exit code {self.exit_code}"
        place = f" on {self.commit[:12]}" if self.commit else ""
        return f"{end}{place} ({_SOURCES[self.source]})"


def judge_result(
    *, has_changes: bool, is_committed: bool, proofs: Sequence[ProofRun], denials: Iterable[str]
) -> tuple[ResultOutcome, str]:
    """Return what a finished run may claim, and why it is no more.

    `denials`: the rules by which changes were denied.
    """
    if not has_changes:
        rules = ", ".join(sorted(set(denials)))
        return ("failed", f"every change was denied ({rules})") if rules else ("success", "")
    if not is_committed:
        return "unverified", "what was changed is not committed, so nothing was run on it"
    if not proofs:
        return "unverified", NO_PROOF
    failed = [f"`{proof.command}` {proof.end}" for proof in proofs if not proof.has_passed]
    return ("failed", "; ".join(failed)) if failed else ("success", "")
