"""The edits of a note by their names, and what each of them takes."""

import difflib
from collections.abc import Set as AbstractSet
from typing import Final, Literal, get_args

EditOperation = Literal[
    "append",
    "prepend",
    "find_replace",
    "replace_section",
    "insert_before_section",
    "insert_after_section",
]
ArgumentName = Literal["section", "find", "subsections", "expected", "content"]

OPERATION_ARGUMENTS: Final[dict[EditOperation, frozenset[ArgumentName]]] = {
    "append": frozenset({"content"}),
    "prepend": frozenset({"content"}),
    "find_replace": frozenset({"content", "find", "expected"}),
    "insert_after_section": frozenset({"content", "section"}),
    "insert_before_section": frozenset({"content", "section"}),
    "replace_section": frozenset({"content", "section", "subsections"}),
}
_SECTION_VARIANTS: Final[dict[str, EditOperation]] = {
    "append": "insert_after_section",
    "prepend": "insert_before_section",
}

_SIMILARITY_MIN: Final = 0.4  # `replace` is to find replace_section


def first_unused_argument(
    operation: EditOperation | None, given: AbstractSet[ArgumentName]
) -> ArgumentName | None:
    """The first of the arguments that the operation would leave unheard."""
    stray = given - OPERATION_ARGUMENTS[operation] if operation else given
    return next((argument for argument in get_args(ArgumentName) if argument in stray), None)


def operations_taking(argument: ArgumentName) -> tuple[EditOperation, ...]:
    return tuple(operation for operation, taken in OPERATION_ARGUMENTS.items() if argument in taken)


def closest_operation(named: str, given: AbstractSet[ArgumentName]) -> EditOperation:
    """The operation that takes most of what is given, and of those the one most like `named`."""
    if "find" in given:
        return "find_replace"  # what is found is one place already
    most = max(len(taken & given) for taken in OPERATION_ARGUMENTS.values())
    fitting: dict[str, EditOperation] = {
        op: op for op, taken in OPERATION_ARGUMENTS.items() if len(taken & given) == most
    }
    if (inside := _SECTION_VARIANTS.get(named)) in fitting:
        return fitting[inside]
    close = difflib.get_close_matches(named, fitting, n=1, cutoff=_SIMILARITY_MIN)
    return fitting[close[0]] if close else next(iter(fitting.values()))
