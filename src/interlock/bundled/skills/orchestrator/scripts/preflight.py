#!/usr/bin/env python3
"""Phase 0 without Interlock: who is there, by the mail, and where are they in each other's way?

Usage:
    preflight.py detect [--inbox-json JSON|-] [--now SECONDS] [--self ID] [--utc-offset SECONDS]
                        [--track NAME] [--files PATTERN ...] [--beads ID ...]
    preflight.py format-sessions [--sessions-json JSON|-] [--now SECONDS] [--plain]
    preflight.py format-conflicts [--conflicts-json JSON|-] [--plain]

Answers are JSON on stdout. Errors are JSON on stderr, with exit code 1; misuse is 2.
"""

# pyright: basic
from __future__ import annotations

import argparse
import os
import sys
from typing import Any

sys.dont_write_bytecode = True  # an uninstall must find nothing but what was installed
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import session_cleanup as cleanup  # noqa: E402
import session_identity as identity  # noqa: E402
from mail_fold import fold, observe  # noqa: E402
from path_overlap import common_path, normalise  # noqa: E402

LEASE_S = 3_600
ICONS = {"active": "🟢", "stale": "🟡", "ended": "⚪"}
PLAIN_ICONS = {"active": "*", "stale": "!", "ended": "."}


def detect(messages: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """The sessions of others, and where what we want meets what they have."""
    if isinstance(messages, dict):
        messages = messages.get("messages", messages.get("result"))
    if not isinstance(messages, list):
        raise identity.BadInput("Hand in a list of messages")
    now_ms = identity.moment_ms(arguments)
    traces = sorted(fold(messages, arguments.self, now_ms).items())
    found = [observe(name, trace, now_ms, arguments.utc_offset) for name, trace in traces]
    active = [one for one in found if one["record"]["status"] == "active"]
    stale = [
        {
            **one["record"],
            "stale_minutes": cleanup.minutes_of(one["silent_ms"]),
            "stale_reason": one["reason"],
        }
        for one in found
        if one["record"]["status"] == "stale"
    ]
    conflicts = find_conflicts(active, arguments)
    return {
        "active_sessions": [one["record"] for one in active],
        "count": len(active),
        "stale_sessions": stale,
        "conflicts": conflicts,
        "recommendations": recommend(conflicts, stale),
    }


def find_conflicts(active: list[dict[str, Any]], arguments: argparse.Namespace) -> dict[str, Any]:
    tracks: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    beads: list[dict[str, Any]] = []
    for pattern in arguments.files:
        if not normalise(pattern) and not pattern.startswith("!"):
            raise identity.BadInput(f"`{pattern}` is no pattern of paths of the project")
    for one in active:
        record, silent_s = one["record"], one["silent_ms"] // 1_000
        who = {"session_id": record["id"], "display": record["display"]}
        if arguments.track and record["track"] == arguments.track:
            action = "Work on other files and items, or on another track."
            seen = {"last_seen": f"{span(silent_s)} ago", "next_action": action}
            tracks.append({**who, "track": arguments.track, **seen})
        for pattern in record["files_reserved"]:
            common = ((each, common_path(each, pattern)) for each in arguments.files)
            requested, path = next((pair for pair in common if pair[1] is not None), ("", None))
            if path is not None:
                left_s = LEASE_S - silent_s
                action = f"Leave `{pattern}` alone for {span(left_s)}, or write to"
                detail = {"pattern": pattern, "requested": requested, "overlap": path}
                advice = {"next_action": f"{action} {record['display']}."}
                files.append({**who, **detail, "seconds_left": left_s, **advice})
        for bead in arguments.beads:
            if bead in record["beads_claimed"]:
                action = "Take another item: `bd ready` lists what is free."
                since = {"since": "at an unknown time", "next_action": action}
                beads.append({**who, "bead_id": bead, **since})
    return {
        "has_conflicts": bool(tracks or files or beads),
        "track_conflicts": tracks,
        "file_conflicts": files,
        "bead_conflicts": beads,
    }


def span(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


def recommend(conflicts: dict[str, Any], stale: list[dict[str, Any]]) -> list[str]:
    advice = [f"Ask the user about {one['display']}: take over, wait or ignore." for one in stale]
    if conflicts["has_conflicts"]:
        switch = ", switch track" if conflicts["track_conflicts"] else ""
        advice.insert(0, f"Ask the user about the conflicts: proceed{switch} or wait.")
    return advice or ["Proceed: nobody is in the way."]


def sessions_box(value: Any, now_ms: int, plain: bool) -> str:
    rows = [""]
    sessions = cleanup.records(value)
    for session in sessions:
        status = session.get("status")
        status = status if status in ICONS else "stale"
        minutes = cleanup.minutes_of(
            cleanup.presence(cleanup.seen_ms(session), now_ms)["silent_ms"]
        )
        silence = f" ({minutes} min)" if status == "stale" and minutes is not None else ""
        name = session.get("display") or session.get("id")
        rows.append(f"{(PLAIN_ICONS if plain else ICONS)[status]} {name} - {status}{silence}")
        rows.append(f"   Track: {session.get('track') or 'none'}")
        rows += [f"   {row}" for row in cleanup.holdings(session, "Beads", "Files")]
        if status == "active" and minutes is not None:
            rows.append(f"   Last seen: {minutes} min ago")
        rows.append("")
    return cleanup.draw_box(
        "ACTIVE SESSIONS", rows if sessions else ["", "no active sessions", ""], plain
    )


def conflicts_box(value: Any, plain: bool) -> str:
    value = value.get("conflicts", value) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        raise identity.BadInput("Hand in conflicts, or the whole answer of `detect`")
    sentences = {
        "track": "{display} is already on {track}",
        "file": "{display} has reserved {pattern}",
        "bead": "{bead_id} is claimed by {display}",
    }
    rows = [""]
    for kind, sentence in sentences.items():
        found = value.get(f"{kind}_conflicts")
        listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        rows += [f"{'!' if plain else '❗'} {kind.upper()} CONFLICT"] if listed else []
        blank = dict.fromkeys(("track", "pattern", "bead_id"), "?")
        for one in listed:
            who = {"display": one.get("session_id", "?")}
            rows.append("   " + sentence.format(**{**blank, **who, **one}))
    if len(rows) == 1:
        return cleanup.draw_box("CONFLICTS DETECTED", ["", "none", ""], plain)
    rows = [*rows[:40], "", "Options:", "[P]roceed anyway - work on different files/beads"]
    rows += ["[S]witch track - pick a different track"] if value.get("track_conflicts") else []
    rows.append("[W]ait - let the other session finish first")
    return cleanup.draw_box("CONFLICTS DETECTED", rows, plain)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    value = identity.read_json(arguments.option or arguments.json)
    if arguments.verb == "detect":
        return detect(value, arguments)
    if arguments.verb == "format-conflicts":
        return {"formatted": conflicts_box(value, arguments.plain)}
    return {"formatted": sessions_box(value, identity.moment_ms(arguments), arguments.plain)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    names = ("detect", "inbox"), ("format-sessions", "sessions"), ("format-conflicts", "conflicts")
    for verb, what in names:
        each = verbs.add_parser(verb)
        each.add_argument("json", nargs="?", help="the JSON; - or nothing: from stdin")
        each.add_argument(f"--{what}-json", dest="option", metavar="JSON")
        identity.add_clock(each)
        if verb != "detect":
            each.add_argument("--plain", action="store_true", help="ASCII only")
            continue
        each.add_argument("--self", default="", metavar="ID", help="our own id, never listed")
        each.add_argument("--track", default="", help="the track that we want")
        each.add_argument("--files", nargs="*", default=[], metavar="PATTERN")
        each.add_argument("--beads", nargs="*", default=[], metavar="ID")
        identity.add_zone(each)
    arguments = parser.parse_args()
    sys.setrecursionlimit(10_000)  # long patterns are compared character by character
    return identity.answer(lambda: run(arguments))


if __name__ == "__main__":
    sys.exit(main())
