"""Output of the command line: data goes to stdout, messages to stderr."""

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:  # not at run time: `interlock --version` must start fast
    from collections.abc import Sequence

    from interlock.core.explanation import Explanation

EXIT_DONE, EXIT_REFUSED, EXIT_MISUSE, EXIT_BUG, EXIT_INTERRUPTED = 0, 1, 2, 3, 130


class Stop(Exception):
    """Ends the command with this exit code; every message has been printed already."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def print_error(error: str, hint: str) -> None:
    print(f"error: {error}\n\nhint: {hint}", file=sys.stderr)


def refuse(
    explanation: "Explanation",
    *,
    as_json: bool,
    commands: "Sequence[str]" = (),
    code: int = EXIT_REFUSED,
) -> NoReturn:
    """Print the refusal and stop; `commands` are those that may have been meant."""
    print_refusal(explanation, as_json=as_json, commands=commands)
    raise Stop(code)


def print_refusal(
    explanation: "Explanation", *, as_json: bool, commands: "Sequence[str]" = ()
) -> None:
    if as_json:
        refusal = {"code": explanation.code, "error": explanation.error, "hint": explanation.hint}
        print_json({**refusal, "commands": commands} if commands else refusal)
    else:
        print_error(
            explanation.error,
            "\n".join((explanation.hint, *(f"  {command}" for command in commands))),
        )


def print_json(value: object) -> None:
    import msgspec  # noqa: PLC0415 (40 ms)

    from interlock.core.answers import answer_json  # noqa: PLC0415

    print(msgspec.json.format(answer_json(value), indent=2).decode())


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print rows in columns as wide as their content; the last column is not padded."""
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join((*cells, row[-1])).rstrip())
