"""Signs that a model goes in circles, each by its name. What follows is for the user's settings."""

from collections.abc import Sequence
from typing import Literal

from interlock.core.unattended.journal import WorkProgress
from interlock.core.unattended.order import Limits

StuckSign = Literal[
    "same call, same result",
    "same call, same error",
    "two calls in turns",
    "no call",
    "malformed calls",
    "no step finished",
]
SAME_RESULT_MAX, SAME_ERROR_MAX, ALTERNATIONS_MAX = 4, 3, 6
SILENT_MAX, MALFORMED_MAX = 3, 3
SHARE_WITHOUT_STEP = 0.8
ADVISORY: frozenset[StuckSign] = frozenset({"no step finished"})
"""Signs that research work shows, too: they are only told."""


def find_sign(progress: WorkProgress, limits: Limits) -> StuckSign | None:
    history = progress.history
    if progress.malformed_in_row >= MALFORMED_MAX:
        return "malformed calls"
    if progress.silent_in_row >= SILENT_MAX:
        return "no call"
    if _is_same(history, SAME_ERROR_MAX) and history[-1][1].startswith("error:"):
        return "same call, same error"
    if _is_same(history, SAME_RESULT_MAX):
        return "same call, same result"
    if _alternates(history):
        return "two calls in turns"
    if progress.turns_in_step >= limits.turns * SHARE_WITHOUT_STEP:
        return "no step finished"
    return None


def _is_same(history: Sequence[tuple[str, str]], times: int) -> bool:
    return len(history) >= times and len(set(history[-times:])) == 1


def _alternates(history: Sequence[tuple[str, str]]) -> bool:
    last = history[-2 * ALTERNATIONS_MAX :]
    if len(last) < 2 * ALTERNATIONS_MAX or last[0] == last[1]:
        return False
    return all(pair == last[index % 2] for index, pair in enumerate(last))
