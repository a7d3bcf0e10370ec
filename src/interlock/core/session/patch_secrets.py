"""Suspected secrets in a commit: in the lines that it adds, each with its place, or its words."""

import re
from collections.abc import Iterator

from interlock.core.session.secrets import SuspectedSecret, find_suspected_secrets

_CODE = re.compile(
    r"\.(py|[cm]?[jt]sx?|go|rs|java|kts?|scala|cs|c|cc|cpp|h|hpp|rb|php|swift|dart|ex|lua):\d+$"
)
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def find_secrets_in_commit(message: str, patch: str) -> Iterator[SuspectedSecret]:
    yield from find_secrets_in_patch(patch)
    for found in find_suspected_secrets("the message of the commit", message):
        if found.kind != "password":  # in prose, “token: renewed” is none
            yield found


def find_secrets_in_patch(patch: str) -> Iterator[SuspectedSecret]:
    for where, line in added_lines(patch):
        # In a program a password is quoted: `token: Token` is only its type.
        is_expression = bool(_CODE.search(where)) and not {*"'\"`"} & {*line}
        for found in find_suspected_secrets(where, line):
            if found.kind != "password" or not is_expression:
                yield found


def added_lines(patch: str) -> Iterator[tuple[str, str]]:
    """The added lines of a patch that shows no others around them, each with its place.

    Hunks say how many lines they have: what is added may look like any line of a patch itself.
    """
    file, number, removed, added = "", 0, 0, 0
    for line in patch.split("\n"):
        if removed and line.startswith("-"):
            removed -= 1
        elif added and line.startswith("+"):
            yield f"{file}:{number}", line[1:]
            number, added = number + 1, added - 1
        elif line.startswith("+++ "):
            file = line[4:].rstrip("\t").strip('"').removeprefix("b/")
        elif found := _HUNK.match(line):
            removed, added = int(found[1] or 1), int(found[3] or 1)
            number = int(found[2])
