"""The rule `session-log`: whether the logbook of a session is whole and says what was done.

Rows that were written from the log must be as the log has them. A session that is still open is
judged only by the rules of the start.
"""

import re
from collections.abc import Iterator

import msgspec

from interlock.core.protocol import logbook
from interlock.core.protocol.logbook import DONE_HEADING, LogbookRegion

RULE = "session-log"
FIX = (
    "`interlock session log ID --write` writes the region from the log again. Say what was done"
    " under “What was done”, or end the session with a summary."
)
"""How to put right what the rule finds."""
_FILE_NAME = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])-session-\d{2,3}\.md")


class RuleFinding(msgspec.Struct, frozen=True, rename="camel"):
    rule: str
    path: str
    line: int
    """From 1; 0: the file as a whole."""
    problem: str
    fix: str


class KnownSession(msgspec.Struct, frozen=True):
    """The session of a logbook, as the log has it."""

    rendered: str
    """The region after as many events as the one in the file was made from."""
    is_open: bool
    says_what_was_done: bool
    unreachable_commit: str = ""
    """The commit of its end, if no branch has it."""


def check_logbook(path: str, text: str, known: KnownSession | None) -> tuple[RuleFinding, ...]:
    """Return what is wrong with a logbook. `known`: None where this store has no such session."""
    region = logbook.find_region(text)
    found = [*_name_problems(path), *_region_problems(text, region, known)]
    if known and not known.is_open:
        found += _end_problems(text, known)
    return tuple(RuleFinding(RULE, path, line, problem, fix) for line, problem, fix in found)


def _name_problems(path: str) -> Iterator[tuple[int, str, str]]:
    name = path.rpartition("/")[2]
    if not _FILE_NAME.fullmatch(name):
        yield 0, f"`{name}` is not the name of a logbook", "Call it YYYY-MM-DD-session-NN.md."


def _region_problems(
    text: str, region: LogbookRegion | None, known: KnownSession | None
) -> Iterator[tuple[int, str, str]]:
    if region is None:
        fix = "`interlock session log ID --write` puts it there again."
        yield 0, "the region that is written from the log is gone or broken", fix
        return
    if known is None or region.text == known.rendered:
        return
    fix = f"`interlock session log {region.session} --write` writes it again."
    lines, wanted = region.text.splitlines(), known.rendered.splitlines()
    first = _first_line(text, region)
    changed = [(number, line) for number, line in enumerate(lines, first) if line not in wanted]
    for number, line in changed:
        yield number, f"the log has no such line: {line.strip()}", fix
    gone = [line for line in wanted if line not in lines]
    for line in gone:
        yield first, f"this line of the log is missing: {line.strip()}", fix
    if not changed and not gone:
        yield first, "its lines are not in the order of the log", fix


def _first_line(text: str, region: LogbookRegion) -> int:
    return text.count("\n", 0, region.start) + 1


def _end_problems(text: str, known: KnownSession) -> Iterator[tuple[int, str, str]]:
    if not known.says_what_was_done and not logbook.text_under(text, DONE_HEADING):
        yield 0, "nothing says what was done", "Write it under “What was done”."
    if known.unreachable_commit:
        problem = f"no branch has the commit {known.unreachable_commit} of its end"
        yield 0, problem, "Bring the commit back, or correct the evidence."
