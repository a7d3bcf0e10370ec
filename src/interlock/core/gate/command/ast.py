"""Written: what a shell command consists of before anything of it is expanded."""

import re
from typing import Literal

import msgspec

from interlock.core.gate.paths import PATH_MAX

DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")
"""Files of which nothing is left when they are written."""
BRACES_MAX = 8  # groups in one word
ALTERNATIVES_MAX = 64
_BRACES = re.compile(r"\{([^{}]*)\}")
_ALL_BRACES = re.compile(r"\{.*\}", re.DOTALL)

Kind = Literal["exact", "one", "some", "open"]


class Word(msgspec.Struct, frozen=True):
    """`exact`: it is `text`. `one`: one word, `some`: any number, all beginning with `prefix`.

    `open`: any number of words, of which nothing is known. Where a word is not exact, its `text`
    is as written, and `pattern` has `**` for what is not known.
    """

    text: str
    raw: str
    kind: Kind = "exact"
    prefix: str = ""
    pattern: str = ""

    @property
    def is_exact(self) -> bool:
        return self.kind == "exact"

    @property
    def may_be_option(self) -> bool:
        """Whether a program may take it, or one of those it becomes, for an option."""
        if self.kind == "open":
            return True
        return self.start.startswith("-") or (not self.start and not self.is_exact)

    @property
    def start(self) -> str:
        """As much of its beginning as is known."""
        return self.text if self.is_exact else self.prefix

    @property
    def paths(self) -> list[str]:
        """The files that it may name, each maybe a pattern."""
        if self.is_exact:
            return [f"./{self.text}" if self.text.startswith("~") else self.text]
        return _brace_alternatives(self.pattern)


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def _brace_alternatives(pattern: str) -> list[str]:
    """The words that `{a,b}` stands for; one with `*` for all braces if there are too many."""
    words = [pattern]
    for _ in range(BRACES_MAX):
        groups = [_BRACES.search(word) for word in words if len(pattern) <= PATH_MAX]
        if not groups or not groups[0] or len(words) > ALTERNATIVES_MAX:
            break
        words = [
            f"{group.string[: group.start()]}{part}{group.string[group.end() :]}"
            for group in groups
            if group
            for part in (["*"] if ".." in group[1] else group[1].split(","))
        ]
    is_whole = len(words) <= ALTERNATIVES_MAX and "{" not in words[0]
    return list(dict.fromkeys(words)) if is_whole else [_ALL_BRACES.sub("*", pattern)]


class Redirect(msgspec.Struct, frozen=True):
    operator: str
    target: Word


class SimpleCommand(msgspec.Struct, frozen=True):
    """A simple command as written, or the redirections of a compound one."""

    assignments: tuple[Word, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    scope: tuple[int, ...] = ()
    """The subshells around it, from the outermost, each by a number."""


class Doubt(msgspec.Struct, frozen=True):
    """Something that runs, of which nobody can say what it does."""

    why: str


class Script(msgspec.Struct, frozen=True):
    """Text between backticks; a shell reads it afresh."""

    text: str
    depth: int


Event = SimpleCommand | Doubt | Script


class UnreadableShellText(Exception):
    """The text cannot be read any further; the message says why."""


_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[)?")
_NUMBER = re.compile(r"-?[0-9]+\Z")


def assigned_variable(word: Word) -> str:
    """The variable that `NAME=…` sets, if the word is written so; with `[` for an element of it."""
    name = _ASSIGNMENT.match(word.raw)
    if not name:
        return ""
    if name.group(2):
        return name.group() if "]=" in word.raw or "]+=" in word.raw else ""
    return name.group() if word.raw.startswith(("=", "+="), name.end()) else ""


def is_number(word: Word) -> bool:
    """Whether it is a number whatever the variables are."""
    if word.is_exact:
        return bool(_NUMBER.match(word.text))
    return word.raw.strip('"') in {"$?", "$#", "$$", "$!", "${#}"}
