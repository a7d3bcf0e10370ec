"""Problems: everything that is wrong, or merely odd, with a workflow file, and where."""

from collections.abc import Iterable
from typing import Literal

import msgspec

Severity = Literal["error", "warning"]
ProblemRule = Literal[
    "json",
    "size",
    "repeated-key",
    "field",
    "value",
    "id",
    "prompt",
    "condition",
    "criteria",
    "contract",
    "loop",
    "assessment",
    "function",
    "reference",
    "feature",
    "template",
    "binding",
    "context",
    "unset",
    "unreachable",
    "reserved",
    "no-meaning",
    "style",
]


class Problem(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One of them. Those that are only warnings do not keep a workflow from running."""

    rule: ProblemRule
    pointer: str
    """The JSON pointer (RFC 6901) of the value; empty for the whole file."""
    message: str
    """The problem, as a statement."""
    suggestion: str = ""
    """The remedy, where it is not obvious."""
    severity: Severity = "error"
    line: int = 0
    """Counted from 1, as is the column; 0 where the location is not known."""
    column: int = 0

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}, " if self.line else ""
        hint = f". {self.suggestion}" if self.suggestion else ""
        return f"{where}{self.pointer or 'the file'}: {self.message}{hint}"


class InvalidWorkflow(msgspec.Struct, frozen=True):
    """The file is not a workflow. Has every problem at once, so that one edit can fix them all."""

    problems: tuple[Problem, ...]


def suggest_nearest(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a name that is not known."""
    import difflib  # noqa: PLC0415 (1 ms at the start of a server)

    names = sorted(known)
    matches = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if matches:
        return f"Did you mean `{matches[0]}`?"
    return f"Known are: {', '.join(names)}." if names else ""


def warning(rule: ProblemRule, pointer: str, message: str, suggestion: str = "") -> Problem:
    return Problem(rule, pointer, message, suggestion, "warning")


def errors_of(problems: "list[Problem] | tuple[Problem, ...]") -> tuple[Problem, ...]:
    return tuple(problem for problem in problems if problem.severity == "error")
