"""The commands typed as a whole prompt: `/mode`, `/autonomy`, `/approve`, `/deny`."""

import re
from typing import Literal, NamedTuple


class TypedMode(NamedTuple):
    mode: str
    """Empty if only the mode is asked for."""
    task: str | None


class TypedAutonomy(NamedTuple):
    autonomy: str
    """Empty if only the autonomy is asked for."""


class TypedMistake(NamedTuple):
    """A command with invalid arguments."""

    command: Literal["mode", "autonomy"]


class TypedAnswer(NamedTuple):
    verdict: Literal["granted", "denied"]
    approval: str
    """Empty if the only one is meant."""
    reason: str


_MODE = re.compile(
    r"\s*[/$](?:interlock:)?mode(?:\s+([A-Za-z]+)(?:\s+--task[ =](\S[^\n]{0,200}))?)?\s*"
)
_AUTONOMY = re.compile(r"\s*[/$](?:interlock:)?autonomy(?:\s+([A-Za-z_-]{1,40}))?\s*")
_MISTAKE = re.compile(r"\s*[/$](?:interlock:)?(mode|autonomy)\s.*", re.DOTALL)
_ANSWER = re.compile(
    r"\s*[/$](?:interlock:)?(approve|deny)(?:\s+`?(apr_[0-9a-f]{1,10})`?)?(?:\s+(\S.{0,2000}?))?\s*",
    re.DOTALL,
)
_ALMOST_ID = re.compile(r"`?apr[_-]", re.IGNORECASE)


TypedCommand = TypedMode | TypedAutonomy | TypedMistake | TypedAnswer


def parse_typed_command(prompt: str) -> TypedCommand | None:
    """The command that was typed, if any. Only a whole prompt counts, never a part."""
    if match := _MODE.fullmatch(prompt):
        return TypedMode((match[1] or "").casefold(), match[2].strip() if match[2] else None)
    if match := _AUTONOMY.fullmatch(prompt):
        return TypedAutonomy((match[1] or "").casefold().replace("-", "_"))
    if match := _MISTAKE.fullmatch(prompt):
        return TypedMistake("mode" if match[1] == "mode" else "autonomy")
    if match := _ANSWER.fullmatch(prompt):
        verdict = "granted" if match[1] == "approve" else "denied"
        reason = match[3] or ""
        # An id with a slip in it is not the only one that waits.
        name = match[2] or (reason.split()[0] if _ALMOST_ID.match(reason) else "")
        return TypedAnswer(verdict, name, reason)
    return None
