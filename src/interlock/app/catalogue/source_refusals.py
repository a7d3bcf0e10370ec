"""Refusals to add, fetch or remove a workflow source, each with its explanation."""

import re
from typing import Literal, TypeAlias, assert_never

from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal, TextRefusal
from interlock.workspace.git.checkout import UrlFault


class SourceNameTaken(TextRefusal, frozen=True):
    name: str
    location: str

    code = "source_exists"
    error = "There is a source `{name}` already: {location}"
    hint = (
        "Call this one otherwise with `--name`, or free the name with"
        " `interlock sources remove {name}`."
    )


class NameUnusable(Refusal, frozen=True):
    name: str

    def explain(self) -> Explanation:
        return Explanation(
            "source_name",
            f"`{_printable(self.name)}` cannot be the name of a source",
            "Choose one with `--name`: small letters, digits, `.`, `_` and `-`, and not"
            " `bundled`, `user` or `project`.",
        )


class LocationUnusable(Refusal, frozen=True):
    location: str
    fault: UrlFault | Literal["missing"]

    def explain(self) -> Explanation:
        return Explanation("source_location", *self._error_and_hint())

    def _error_and_hint(self) -> tuple[str, str]:
        # The part before `@` may be a password; it is not repeated.
        location = _printable(self.location.rpartition("@")[2])
        match self.fault:
            case "option":
                return (
                    f"`{location}` begins with `-`, as options do",
                    "Write a directory as `./-NAME`.",
                )
            case "characters":
                return "The location is too long or cannot be printed", "Give another one."
            case "protocol":
                protocol = re.split(r"::|://", self.location)[0]
                return (
                    f"Nothing is fetched by `{_printable(protocol)}`",
                    "Use https://, ssh://, git@HOST:PATH, file:// or a directory.",
                )
            case "credentials":
                return (
                    "The location carries a user's name or password",
                    "Leave out what stands before `@` and use a credential helper, or ssh.",
                )
            case "address":
                return (
                    f"`{location}` is no directory, and no address that git fetches from",
                    "Check how it is written: https://HOST/PATH, git@HOST:PATH or a directory.",
                )
            case "missing":
                return f"There is no directory `{location}`", "Check how it is written."
            case _:
                assert_never(self.fault)


class RefUnusable(Refusal, frozen=True):
    ref: str

    def explain(self) -> Explanation:
        return Explanation(
            "source_ref",
            f"`{_printable(self.ref)}` cannot be a ref",
            "Give a branch, a tag or a whole commit id.",
        )


class PathUnusable(Refusal, frozen=True):
    path: str

    def explain(self) -> Explanation:
        return Explanation(
            "source_path",
            f"`{_printable(self.path)}` is no directory below the location",
            "Give one from its top, without `..`, and not behind a link that leads out.",
        )


class NoSuchSource(Refusal, frozen=True):
    name: str
    known: tuple[str, ...]

    def explain(self) -> Explanation:
        known = ", ".join(f"`{name}`" for name in self.known) or "none"
        return Explanation(
            "unknown_source",
            f"No source `{_printable(self.name)}`",
            f"`interlock sources list` shows them: {known}.",
        )


AddRefusal: TypeAlias = (
    SourceNameTaken | NameUnusable | LocationUnusable | RefUnusable | PathUnusable
)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
