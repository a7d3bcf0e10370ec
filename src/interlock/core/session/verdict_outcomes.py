"""The outcomes of verdicts, and what several of them come to."""

from collections.abc import Iterable
from typing import Literal, get_args

VerdictOutcome = Literal[
    "CRITICAL_FAIL",
    "REJECTED",
    "FAIL",
    "NEEDS_REVIEW",
    "WARN",
    "PARTIAL",
    "COMPLIANT",
    "PASS",
]
"""The worst comes first."""
OUTCOMES: tuple[VerdictOutcome, ...] = get_args(VerdictOutcome)
BLOCKING_OUTCOMES = OUTCOMES[: OUTCOMES.index("NEEDS_REVIEW") + 1]
VerdictDecision = Literal["approve", "conditional", "needs_revision", "reject"]
DECISIONS: dict[VerdictOutcome, VerdictDecision] = {
    "PASS": "approve",
    "COMPLIANT": "approve",
    "WARN": "conditional",
    "PARTIAL": "conditional",
    "NEEDS_REVIEW": "needs_revision",
    "FAIL": "needs_revision",
    "REJECTED": "reject",
    "CRITICAL_FAIL": "reject",
}
"""The word for each outcome that agents are asked for, and that agents and people are shown."""


def merge_outcomes(outcomes: Iterable[VerdictOutcome]) -> VerdictOutcome:
    """Return the worst of the outcomes.

    Raises:
        ValueError: there are none, which means nothing, neither good nor bad.
    """
    return min(outcomes, key=OUTCOMES.index)
