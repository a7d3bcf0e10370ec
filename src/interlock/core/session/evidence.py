"""Evidence: whether a command that proves a step was run, and passed, after the last change.

Only the demanded command alone counts, after an optional `cd DIR &&`: in a pipe or a list, another
command may have decided how it ended. Commands are known where hooks record them and the client
tells how they ended. Elsewhere the agent's word has to do, and it is marked as such.
"""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

_CHANGE_OF_DIRECTORY = re.compile(r"\s*cd\s+(?:'[^']*'|\"[^\"$`]*\"|[^\s'\"$`&;|<>()]+)\s*&&\s*")
_QUOTED_WORD = re.compile(r"(?<!\S)(['\"])([\w./:@%+,-]+)\1(?!\S)")


Outcome = Literal["success", "failure", "unknown"]


class CommandRun(msgspec.Struct, frozen=True):
    command: str
    outcome: Outcome
    at_ms: int
    """The time at which it ended."""


class CommandRecord(msgspec.Struct, frozen=True):
    """The commands that were seen in the conversations of a session, oldest first."""

    runs: Sequence[CommandRun] = ()
    changed_ms: int = 0
    """The time of the last change in the workspace."""


class Proof(msgspec.Struct, frozen=True):
    """The demanded command passed, and nothing has changed since."""

    command: str
    at_ms: int


class Unproven(msgspec.Struct, frozen=True):
    """The reason why nothing that was seen proves the step."""

    reason: str
    is_failure: bool = False
    is_unseen: bool = False
    """Nothing was seen that could be held against the agent's word."""


def find_proof(command: str, record: CommandRecord) -> Proof | Unproven:
    demanded = bare_command(command)
    own = [run for run in record.runs if bare_command(run.command) == demanded]
    if not own:
        together = [run for run in record.runs if demanded in bare_command(run.command)]
        if together:
            return Unproven(
                f"only a longer command was run (`{together[-1].command[:120]}`); run it alone"
            )
        is_unseen = not any(run.outcome != "unknown" for run in record.runs)
        return Unproven("no run of it was recorded", is_unseen=is_unseen)
    last = own[-1]
    if last.outcome == "failure":
        return Unproven("it failed when it was last run", is_failure=True)
    if last.at_ms < record.changed_ms:
        return Unproven("files have changed since it was last run")
    if last.outcome == "unknown":
        return Unproven("the client does not tell how it ended", is_unseen=True)
    return Proof(command, last.at_ms)


def bare_command(command: str) -> str:
    """Normalise a command for comparison: without `cd DIR &&`, extra white space and quotes.

    Quotes around a plain word mean nothing to a shell, and agents leave them out.
    """
    words = " ".join(_CHANGE_OF_DIRECTORY.sub("", command, count=1).split())
    return _QUOTED_WORD.sub(r"\2", words)
