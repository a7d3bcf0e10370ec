"""Checking and repairing Markdown with `pymarkdownlnt`, in a process of its own.

The linter reads its settings from the working directory, and a setting can name code that it then
runs. So it works in an empty directory, whatever came with a clone; besides, its import takes a
quarter of a second, and a server would keep it for ever.
"""

import subprocess
import sys
import tempfile

import msgspec

SECONDS_MAX = 20.0
# These are notes: lines may be long, with HTML, addresses and code without a language, and nobody
# has to leave blank lines around what they write.
_DISABLED_RULES = (
    *("md012", "md013", "md022", "md024", "md025", "md026", "md031", "md032"),
    *("md033", "md034", "md036", "md040", "md041"),
)
_PROGRAM = f"""\
import json, sys
from pymarkdown.api import PyMarkdownApi
api = PyMarkdownApi()
for rule in {_DISABLED_RULES!r}:
    api = api.disable_rule_by_identifier(rule)
results = []
for text in json.load(sys.stdin):
    text = api.fix_string(text).fixed_file if text.strip() else text
    found = api.scan_string(text).scan_failures if text.strip() else []
    problems = [[one.line_number, one.rule_id, one.rule_description] for one in found]
    results.append({{"text": text, "problems": problems}})
json.dump(results, sys.stdout)
"""


class MarkdownProblem(msgspec.Struct, frozen=True, array_like=True):
    line: int
    rule: str
    description: str


class LintedText(msgspec.Struct, frozen=True):
    text: str
    """The text, repaired as far as that can be done."""
    problems: tuple[MarkdownProblem, ...]
    """The problems that are left in it."""


class LinterFailed(Exception):
    """The linter could not be run. The message is the reason."""


_decode_results = msgspec.json.Decoder(list[LintedText]).decode


def lint_texts(texts: list[str]) -> list[LintedText]:
    """Return each text repaired, with the problems that are left.

    Raises:
        LinterFailed: it could not be run, or takes too long.
    """
    if not any(text.strip() for text in texts):
        return [LintedText(text, ()) for text in texts]
    # What is no character has no place in JSON.
    sent = [text.encode("utf-8", "replace").decode() for text in texts]
    try:
        with tempfile.TemporaryDirectory(prefix="interlock-lint-") as empty:
            result = subprocess.run(
                [sys.executable, "-I", "-c", _PROGRAM],
                input=msgspec.json.encode(sent),
                capture_output=True,
                check=False,
                timeout=SECONDS_MAX,
                cwd=empty,
            )
        if result.returncode:
            lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
            raise LinterFailed(lines[-1] if lines else f"it ended with {result.returncode}")
        results = _decode_results(result.stdout)
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        raise LinterFailed(str(error)) from error
    # Nothing is repaired where the linter would lose bytes or the ends of lines.
    return [
        LintedText(old if old != safe or "\r" in old else result.text, result.problems)
        for old, safe, result in zip(texts, sent, results, strict=True)
    ]
