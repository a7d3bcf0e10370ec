"""Output of the command line: data goes to stdout, messages to stderr.

Every text for people passes here, because much of it was written by others: in goals, notes, file
names and settings. A line of ours stays one line, and characters that a reader would not see, or
that a terminal would obey, are escaped.
"""

import os
import sys
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from interlock.core.visible_text import make_visible, make_visible_json, make_visible_line

if TYPE_CHECKING:  # not at run time: `interlock --version` must start fast
    from collections.abc import Iterable, Sequence
    from typing import TextIO

    from interlock.core.explanation import Explanation
    from interlock.core.refusal import Refusal

Result = TypeVar("Result")

EXIT_DONE, EXIT_REFUSED, EXIT_MISUSE, EXIT_BUG, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
EXIT_NEEDS_ANSWER, EXIT_HALTED = 4, 5
QUOTE_MARK = "  | "
"""Stands before each line of a text that somebody else wrote and that may have several lines."""


class Stop(Exception):
    """Ends the command with this exit code; every message has been printed already."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def print_lines(*lines: str) -> None:
    """Print each argument as one line, whatever is in it."""
    _write(sys.stdout, map(make_visible_line, lines))


def print_message(*lines: str) -> None:
    """Print each argument as one line that is not data: a hint, a remark, progress that ended."""
    _write(sys.stderr, map(make_visible_line, lines))


def print_text(text: str, *, prefix: str = "") -> None:
    """Print a text of several lines, each after the prefix."""
    _write(sys.stdout, _prefixed_lines(text, prefix))


def print_document(text: str) -> None:
    """Print a whole file: exactly, unless a terminal shows it."""
    if sys.stdout.isatty():
        print_text(text)
    else:
        write_exactly(text.encode("utf-8", "surrogateescape"))


def write_exactly(content: bytes) -> None:
    """Write to stdout what a program reads, and no terminal shows."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()


def print_error(error: str, hint: str, commands: "Sequence[str]" = ()) -> None:
    """Print an error; `commands` are those that may have been meant."""
    _write(
        sys.stderr,
        (
            *_quoted_lines(f"error: {error}"),
            "",
            *_quoted_lines(f"hint: {hint}"),
            *(f"  {make_visible_line(command)}" for command in commands),
        ),
    )


def refuse(
    explanation: "Explanation", *, commands: "Sequence[str]" = (), code: int = EXIT_REFUSED
) -> NoReturn:
    """Print the refusal, as JSON if the command has `--json`, and stop.

    `commands` are those that may have been meant.
    """
    import click  # noqa: PLC0415 (a server for agents does without)

    as_json = bool(click.get_current_context().params.get("as_json"))
    print_refusal(explanation, as_json=as_json, commands=commands)
    raise Stop(code)


def print_refusals_as_json() -> None:
    """Let the refusals of a command that has no `--json` be JSON, as all that it prints."""
    import click  # noqa: PLC0415 (a server for agents does without)

    click.get_current_context().params["as_json"] = True


def expect(
    kind: "type[Result]", outcome: "Result | Refusal", *, code: int = EXIT_REFUSED
) -> "Result":
    """Return the outcome if it is of this kind; else it is a refusal: print that, and stop."""
    if isinstance(outcome, kind):
        return outcome
    refuse(cast("Refusal", outcome).explain(), code=code)


def print_refusal(
    explanation: "Explanation", *, as_json: bool, commands: "Sequence[str]" = ()
) -> None:
    if as_json:
        refusal = {"code": explanation.code, "error": explanation.error, "hint": explanation.hint}
        print_json({**refusal, "commands": commands} if commands else refusal)
    else:
        print_error(explanation.error, explanation.hint, commands)


def print_json(value: object) -> None:
    import msgspec  # noqa: PLC0415 (40 ms)

    from interlock.core.answers import answer_json  # noqa: PLC0415

    print_json_document(msgspec.json.format(answer_json(value), indent=2))


def print_json_document(document: bytes) -> None:
    """Print JSON as it is encoded already."""
    _write(sys.stdout, (make_visible_json(document.decode()),))


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print rows in columns as wide as their content; the last column is not padded."""
    if not rows:
        return
    table = [tuple(map(make_visible_line, row)) for row in rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        _write(sys.stdout, ("  ".join((*cells, row[-1])).rstrip(),))


def confirm(question: str) -> None:
    """Ask, and end the command unless the answer is yes."""
    import click  # noqa: PLC0415 (a server for agents does without)

    click.confirm(make_visible_line(question), abort=True, err=True)


def choose(question: str, choices: "Sequence[str]", default: str) -> str:
    """Ask for one of several letters."""
    import click  # noqa: PLC0415 (a server for agents does without)

    kind = click.Choice(choices, case_sensitive=False)
    return click.prompt(make_visible_line(question), type=kind, default=default, err=True)


def shows_progress() -> bool:
    return sys.stderr.isatty()


def show_progress(line: str) -> None:
    """Show how far a command is, in a line that is written over; on a terminal only."""
    if shows_progress():
        sys.stderr.write(f"\r{make_visible_line(line)}\033[K")
        sys.stderr.flush()


def clear_progress() -> None:
    show_progress("")


def redraw(lines: "Sequence[str]") -> None:
    """Print lines instead of those that were printed before; not on a terminal: after them."""
    sys.stdout.write("\033[H\033[2J" if sys.stdout.isatty() else "")
    _write(sys.stdout, (*map(make_visible_line, lines), ""))
    sys.stdout.flush()


def flush_output() -> None:
    """Let a reader see now what was printed; the command goes on for long."""
    sys.stdout.flush()


def discard_output() -> None:
    """Flush nothing more into a pipe that its reader has closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(stream: "TextIO", visible_lines: "Iterable[str]") -> None:
    stream.write("".join(f"{line}\n" for line in visible_lines))


def _quoted_lines(text: str) -> list[str]:
    """The lines of a message; those after the first may be somebody else's, and are marked so."""
    first_line, _, rest = text.strip("\n").partition("\n")
    quoted = _prefixed_lines(rest, QUOTE_MARK) if rest else []
    return [make_visible_line(first_line), *quoted]


def _prefixed_lines(text: str, prefix: str) -> list[str]:
    lines = make_visible(text.removesuffix("\n")).split("\n")
    return [f"{prefix}{line}" if line else prefix.rstrip() for line in lines]
