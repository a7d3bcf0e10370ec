#!/usr/bin/env python3
"""Sessions that have fallen silent: find them, and ask what to do about them.

Usage:
    session_cleanup.py find-stale [--sessions-json JSON|-] [--now SECONDS] [--threshold MINUTES]
    session_cleanup.py format-prompt [--session-json JSON|-] [--now SECONDS] [--plain]
    session_cleanup.py format-summary [--sessions-json JSON|-] [--now SECONDS]

Sessions are records as `preflight.py detect` prints them. Nothing is released or reset by this.
"""

# pyright: basic
from __future__ import annotations

import argparse
import os
import sys
import unicodedata
from typing import Any, Iterable

sys.dont_write_bytecode = True  # an uninstall must find nothing but what was installed
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from session_identity import BadInput, add_clock, answer, moment_ms, read_json  # noqa: E402

STALE_MS, WINDOW_MS, SKEW_MS = 600_000, 1_800_000, 120_000
COLUMNS = 78
UNDRAWN = dict.fromkeys(map(ord, "\u200c\u200d\ufe0e\ufe0f"))


def presence(seen_ms: int | None, now_ms: int, stale_ms: int = STALE_MS) -> dict[str, Any]:
    """Whether who was last seen then is active, for how long it is silent, and why it is stale."""
    reason = ""
    if seen_ms is None:
        reason = "no_heartbeat"
    elif seen_ms <= 0:
        reason = "invalid_timestamp"
    elif now_ms - seen_ms < -SKEW_MS:
        reason = "clock_skew"
    if reason or seen_ms is None:
        return {"status": "stale", "silent_ms": None, "reason": reason}
    silent_ms = max(0, now_ms - seen_ms)
    if silent_ms > stale_ms:
        return {"status": "stale", "silent_ms": silent_ms, "reason": "heartbeat_timeout"}
    return {"status": "active", "silent_ms": silent_ms, "reason": ""}


def minutes_of(silent_ms: int | None) -> int | None:
    return None if silent_ms is None else silent_ms // 60_000


def find_stale(sessions: Any, now_ms: int, stale_ms: int = STALE_MS) -> list[dict[str, Any]]:
    """The stale ones, each with `stale_minutes` and `stale_reason`. Who ended is not stale."""
    found: list[dict[str, Any]] = []
    for session in records(sessions):
        is_known = "stale_reason" in session and session.get("last_heartbeat") is None
        there = presence(seen_ms(session), now_ms, stale_ms)
        if session.get("status") == "ended" or there["status"] != "stale":
            continue
        reason = session["stale_reason"] if is_known else there["reason"]
        minutes = minutes_of(there["silent_ms"])
        found.append({**session, "stale_minutes": minutes, "stale_reason": reason})
    return found


def seen_ms(session: dict[str, Any]) -> int | None:
    seconds = session.get("last_heartbeat")
    if seconds is None:
        return None
    is_time = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return round(seconds * 1_000) if is_time and 0 < seconds < 1e11 else 0


def records(value: Any) -> list[dict[str, Any]]:
    """Sessions, as a list of records, or as the whole answer of `detect`."""
    if isinstance(value, dict):
        value = [*value.get("active_sessions", [value]), *value.get("stale_sessions", [])]
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise BadInput("Hand in a list of session records")
    return value


def texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def holdings(session: dict[str, Any], beads: str, files: str) -> list[str]:
    claimed = [f"{bead} (in_progress)" for bead in texts(session.get("beads_claimed"))]
    reserved = texts(session.get("files_reserved"))
    return [
        f"{beads}: {', '.join(claimed) or 'none'}",
        f"{files}: {', '.join(reserved) or 'none'}",
    ]


def draw_box(title: str, rows: Iterable[str], plain: bool) -> str:
    """A box whose lines are all equally wide, whatever others have written into it."""
    top, across, corner, side, low, end = "+-+|++" if plain else "┌─┐│└┘"
    heading = f"{top}{across} {title} "
    lines = [heading + across * (COLUMNS - len(heading) - 1) + corner]
    for row in rows:
        text, width = fit(row, COLUMNS - 4, plain)
        lines.append(f"{side} {text}{' ' * (COLUMNS - 4 - width)} {side}")
    return "\n".join([*lines, low + across * (COLUMNS - 2) + end])


def fit(text: str, columns: int, plain: bool) -> tuple[str, int]:
    """The text, visible and cut to its place, and the columns that it takes."""
    drawn = text[: columns * 4].translate(UNDRAWN)
    visible = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in drawn)
    if plain:
        visible = visible.encode("ascii", "backslashreplace").decode("ascii")
    mark = "..." if plain else "…"
    total = room = room_width = 0
    for at, character in enumerate(visible):
        total += columns_of(character)
        if total <= columns - len(mark):
            room, room_width = at + 1, total
        if total > columns or at > columns * 2:
            return visible[:room] + mark, room_width + len(mark)
    return visible, total


def columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def stale_box(session: dict[str, Any], now_ms: int, plain: bool) -> str:
    minutes = minutes_of(presence(seen_ms(session), now_ms)["silent_ms"])
    silence = f"inactive for {minutes} minutes" if minutes is not None else "inactive since ?"
    rows = ["", f"{session.get('display') or session.get('id')} {silence}", ""]
    rows += [*holdings(session, "Claimed beads", "Reserved files"), ""]
    choices = (
        f"{'!' if plain else '❗'} Warning: May have uncommitted work",
        "",
        "[T]ake over - release reservations, reset beads to open",
        "[W]ait - check again in 5 min",
        "[I]gnore - proceed without their files/beads",
    )
    return draw_box("STALE SESSION DETECTED", [*rows, *choices], plain)


def summarise(sessions: Any, now_ms: int) -> str:
    stale = find_stale(sessions, now_ms)
    names = [f"{one.get('display') or one.get('id')} ({one['stale_reason']})" for one in stale]
    return f"{len(stale)} stale: {', '.join(names)}" if stale else "no stale sessions"


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    now_ms = moment_ms(arguments)
    value = read_json(arguments.option or arguments.json)
    if arguments.verb == "find-stale":
        stale = find_stale(value, now_ms, round(arguments.threshold * 60_000))
        return {"stale_sessions": stale, "count": len(stale), "threshold_min": arguments.threshold}
    if arguments.verb == "format-summary":
        return {"summary": summarise(value, now_ms)}
    if not isinstance(value, dict):
        raise BadInput("Hand in one session record")
    return {
        "prompt": stale_box(value, now_ms, arguments.plain),
        "options": ["take_over", "wait", "ignore"],
        "default": "wait",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("find-stale", "format-prompt", "format-summary"):
        each = verbs.add_parser(verb)
        each.add_argument("json", nargs="?", help="the JSON; - or nothing: from stdin")
        each.add_argument("--session-json", "--sessions-json", dest="option")
        if verb == "find-stale":
            each.add_argument("--threshold", type=float, default=10.0, metavar="MINUTES")
        each.add_argument("--plain", action="store_true", help="ASCII only")
        add_clock(each)
    arguments = parser.parse_args()
    return answer(lambda: run(arguments))


if __name__ == "__main__":
    sys.exit(main())
