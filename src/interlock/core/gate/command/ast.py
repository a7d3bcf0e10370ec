"""Written: what a shell command consists of before anything of it is expanded."""

import re
from typing import Literal

import msgspec

Kind = Literal["exact", "one", "some", "open"]


class Word(msgspec.Struct, frozen=True):
    """`exact`: it is `text`. `one`: one word, `some`: any number, all beginning with `prefix`.

    `open`: any number of words, of which nothing is known. Where a word is not exact, its `text`
    is as written.
    """

    text: str
    raw: str
    kind: Kind = "exact"
    prefix: str = ""

    @property
    def is_exact(self) -> bool:
        return self.kind == "exact"

    @property
    def may_be_option(self) -> bool:
        """Whether a program may take it, or one of those it becomes, for an option."""
        if self.kind == "open":
            return True
        start = self.text if self.is_exact else self.prefix
        return start.startswith("-") or (not start and not self.is_exact)

    @property
    def path(self) -> str | None:
        """The file that this word names, if that can be said."""
        if self.is_exact:
            return f"./{self.text}" if self.text.startswith("~") else self.text
        return self.text if self.kind == "one" and self.prefix == self.text else None


class Redirect(msgspec.Struct, frozen=True):
    operator: str
    target: Word


class SimpleCommand(msgspec.Struct, frozen=True):
    """A simple command as written, or the redirections of a compound one."""

    assignments: tuple[Word, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


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
