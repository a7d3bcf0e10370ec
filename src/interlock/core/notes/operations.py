"""The edit operations of a note by name, and the arguments that each of them takes."""

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

_SIMILARITY_MIN: Final = 0.4  # low enough for `replace` to match replace_section


def first_unused_argument(
    operation: EditOperation | None, present: AbstractSet[ArgumentName]
) -> ArgumentName | None:
    """Return the first of the given arguments that the operation would ignore."""
    unused = present - OPERATION_ARGUMENTS[operation] if operation else present
    return next((argument for argument in get_args(ArgumentName) if argument in unused), None)


def operations_taking(argument: ArgumentName) -> tuple[EditOperation, ...]:
    return tuple(
        operation for operation, arguments in OPERATION_ARGUMENTS.items() if argument in arguments
    )


def closest_operation(name: str, present: AbstractSet[ArgumentName]) -> EditOperation:
    """Return the operation that takes most of the present arguments.

    Of several, the one most like `name`.
    """
    import difflib  # noqa: PLC0415 (1 ms at the start of a server)

    if "find" in present:
        return "find_replace"  # the text to find already names the place
    max_count = max(len(arguments & present) for arguments in OPERATION_ARGUMENTS.values())
    fitting: dict[str, EditOperation] = {
        op: op
        for op, arguments in OPERATION_ARGUMENTS.items()
        if len(arguments & present) == max_count
    }
    if (section_variant := _SECTION_VARIANTS.get(name)) in fitting:
        return fitting[section_variant]
    close = difflib.get_close_matches(name, fitting, n=1, cutoff=_SIMILARITY_MIN)
    return fitting[close[0]] if close else next(iter(fitting.values()))
