"""What the command line says: stdout is data, stderr is talk."""

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:  # `interlock --version` need not know any of this
    from collections.abc import Sequence

    from interlock.app.explanation import Explanation

EXIT_DONE, EXIT_REFUSED, EXIT_MISUSE, EXIT_BUG, EXIT_INTERRUPTED = 0, 1, 2, 3, 130


class Stop(Exception):
    """The command ends here with this exit code; what there was to say has been said."""

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
    """Stop here; `commands` are those that may have been meant."""
    print_refusal(explanation, as_json=as_json, commands=commands)
    raise Stop(code)


def print_refusal(
    explanation: "Explanation", *, as_json: bool, commands: "Sequence[str]" = ()
) -> None:
    if as_json:
        said = {"code": explanation.code, "error": explanation.error, "hint": explanation.hint}
        print_json({**said, "commands": commands} if commands else said)
    else:
        print_error(explanation.error, "\n".join((explanation.hint, *(f"  {x}" for x in commands))))


def print_json(value: object) -> None:
    import msgspec  # noqa: PLC0415 (40 ms)

    from interlock.core.answers import answer_json  # noqa: PLC0415

    print(msgspec.json.format(answer_json(value), indent=2).decode())


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as they need to be; the last one runs on."""
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join((*cells, row[-1])).rstrip())
