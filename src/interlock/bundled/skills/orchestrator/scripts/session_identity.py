#!/usr/bin/env python3
"""The id of a session: `BlueLake-1735689600` inside, `BlueLake (session 10:30)` for people.

Usage:
    session_identity.py generate BASE [--now SECONDS] [--taken ID ...] [--utc-offset SECONDS]
    session_identity.py parse ID [--utc-offset SECONDS]
    session_identity.py format ID [--utc-offset SECONDS]

Answers are JSON on stdout. Errors are JSON on stderr, with exit code 1; misuse is 2.
"""

# pyright: basic
from __future__ import annotations

import argparse
import json
import re
import sys
import time
from typing import Any, Callable

INCREMENTS_MAX = 3
BASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ID = re.compile(r"(.+)-([0-9]{10}|[0-9]{13})")


class BadInput(Exception):
    """Something that was handed in cannot be used; the text says what."""


def parse_id(text: str) -> tuple[str, int] | None:
    """The base name, and the time in milliseconds; None if it is no id."""
    match = ID.fullmatch(text)
    if match is None:
        return None
    return match[1], int(match[2]) * (1_000 if len(match[2]) == len("1735689600") else 1)


def choose_id(base: str, taken: list[str], now_ms: int) -> str:
    """An id that nobody has: the next seconds are tried, and then milliseconds."""
    for increment in range(INCREMENTS_MAX + 1):
        name = f"{base}-{now_ms // 1_000 + increment}"
        if name not in taken:
            return name
    while f"{base}-{now_ms}" in taken:
        now_ms += 1
    return f"{base}-{now_ms}"


def display_name(identity: str, utc_offset_s: int = 0) -> str:
    parsed = parse_id(identity)
    if parsed is None:
        return identity
    minutes = (parsed[1] // 1_000 + utc_offset_s) // 60
    return f"{parsed[0]} (session {minutes // 60 % 24:02}:{minutes % 60:02})"


def describe(identity: str, utc_offset_s: int = 0) -> dict[str, Any]:
    parsed = parse_id(identity)
    if parsed is None:
        raise BadInput(f"`{identity}` is no session id: it has no time at its end")
    return {
        "id": identity,
        "display": display_name(identity, utc_offset_s),
        "base_agent": parsed[0],
        "created_ts": parsed[1] // 1_000,
    }


def moment_ms(arguments: argparse.Namespace) -> int:
    """The time that was handed in with `--now`, else that of the clock."""
    return round((time.time() if arguments.now is None else arguments.now) * 1_000)


def add_clock(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--now", type=float, help="the time in seconds; default: the clock's")


def add_zone(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--utc-offset", type=int, default=0, metavar="SECONDS", help="the zone of names; UTC"
    )


def read_json(text: str | None) -> Any:
    """The JSON that was handed in: on stdin if it is `-`, or nothing."""
    if text in (None, "-"):
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError) as error:
        raise BadInput(f"That is no JSON: {error}") from None


def answer(run: Callable[[], dict[str, Any]]) -> int:
    """Print what `run` returns as JSON; an error goes to stderr."""
    try:
        reply = json.dumps(run(), ensure_ascii=True, indent=2)
    except BadInput as error:
        sys.stderr.write(json.dumps({"error": str(error)}) + "\n")
        return 1
    sys.stdout.write(reply + "\n")
    return 0


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.verb == "generate":
        if not BASE.fullmatch(arguments.base):
            raise BadInput(f"`{arguments.base}` cannot be the name of an agent")
        arguments.id = choose_id(arguments.base, arguments.taken, moment_ms(arguments))
    return describe(arguments.id, arguments.utc_offset)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    generate = verbs.add_parser("generate", help="make an id that nobody has")
    generate.add_argument("base")
    generate.add_argument("--taken", nargs="*", default=[], metavar="ID")
    add_clock(generate)
    add_zone(generate)
    for verb, what in (("parse", "take an id apart"), ("format", "the name for people")):
        each = verbs.add_parser(verb, help=what)
        each.add_argument("id")
        add_zone(each)
    arguments = parser.parse_args()
    return answer(lambda: run(arguments))


if __name__ == "__main__":
    sys.exit(main())
