"""Signs that a model goes in circles, each by its name. What follows is for the user's settings."""

from collections.abc import Mapping, Sequence
from typing import Literal

from interlock.core.unattended.conversation import StopReason
from interlock.core.unattended.journal import WorkProgress
from interlock.core.unattended.order import Limits

StuckSign = Literal[
    "same call, same result",
    "same call, same error",
    "two calls in turns",
    "no call",
    "cut off",
    "filtered",
    "malformed calls",
    "no step finished",
]
SAME_RESULT_MAX, SAME_ERROR_MAX, ALTERNATIONS_MAX = 4, 3, 6
SILENT_MAX, MALFORMED_MAX = 3, 3
SHARE_WITHOUT_STEP = 0.8
ADVISORY: frozenset[StuckSign] = frozenset({"no step finished"})
"""Signs that research work shows, too: they are only told."""


_SILENCE: Mapping[StopReason, StuckSign] = {"length": "cut off", "refusal": "filtered"}
SIGN_TEXTS: Mapping[StuckSign, str] = {
    "no call": "its last answers called no tool",
    "cut off": "its last answers were cut off at `output_tokens` under `[driver]`",
    "filtered": "the provider's content filter stopped its last answers",
    "malformed calls": "its last calls could not be understood",
    "same call, same result": "it made the same call again and again, with the same result",
    "same call, same error": "it made the same call again and again, with the same error",
    "two calls in turns": "it repeated the same two calls in turns",
    "no step finished": "it has used most of its turns on one step",
}


def find_sign(progress: WorkProgress, limits: Limits) -> StuckSign | None:
    history = progress.history
    if progress.malformed_in_row >= MALFORMED_MAX:
        return "cut off" if progress.stop == "length" else "malformed calls"
    if progress.silent_in_row >= SILENT_MAX:
        return _SILENCE.get(progress.stop, "no call")
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
