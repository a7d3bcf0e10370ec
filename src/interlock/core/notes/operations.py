"""The edits of a note by their names, and what each of them takes."""

import difflib
from collections.abc import Set as AbstractSet
from typing import Final, Literal, get_args

Operation = Literal[
    "append",
    "prepend",
    "find_replace",
    "replace_section",
    "insert_before_section",
    "insert_after_section",
]
Argument = Literal["section", "find", "subsections", "expected", "content"]

TAKES: Final[dict[Operation, frozenset[Argument]]] = {
    "append": frozenset({"content"}),
    "prepend": frozenset({"content"}),
    "find_replace": frozenset({"content", "find", "expected"}),
    "insert_after_section": frozenset({"content", "section"}),
    "insert_before_section": frozenset({"content", "section"}),
    "replace_section": frozenset({"content", "section", "subsections"}),
}
_IN_A_SECTION: Final[dict[str, Operation]] = {
    "append": "insert_after_section",
    "prepend": "insert_before_section",
}

_ALIKE_MIN: Final = 0.4  # `replace` is to find replace_section


def not_taken(operation: Operation | None, given: AbstractSet[Argument]) -> Argument | None:
    """The first of the arguments that the operation would leave unheard."""
    stray = given - TAKES[operation] if operation else given
    return next((argument for argument in get_args(Argument) if argument in stray), None)


def that_take(argument: Argument) -> tuple[Operation, ...]:
    return tuple(operation for operation, taken in TAKES.items() if argument in taken)


def meant(named: str, given: AbstractSet[Argument]) -> Operation:
    """The operation that takes most of what is given, and of those the one most like `named`."""
    if "find" in given:
        return "find_replace"  # what is found is one place already
    most = max(len(taken & given) for taken in TAKES.values())
    fitting: dict[str, Operation] = {
        op: op for op, taken in TAKES.items() if len(taken & given) == most
    }
    if (inside := _IN_A_SECTION.get(named)) in fitting:
        return fitting[inside]
    close = difflib.get_close_matches(named, fitting, n=1, cutoff=_ALIKE_MIN)
    return fitting[close[0]] if close else next(iter(fitting.values()))
