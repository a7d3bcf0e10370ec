"""The sessions that messages of a mail server tell of, in any order; used by preflight.py."""

# pyright: basic
from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

from session_cleanup import SKEW_MS, WINDOW_MS, presence
from session_identity import display_name, parse_id

KINDS = (
    *("SESSION START", "HEARTBEAT", "SESSION END", "TAKEOVER", "TRACK COMPLETE", "PROGRESS"),
    *("COMPLETE", "DEP", "BLOCKER", "PING", "CONFLICT", "LEASE LOST"),
)
FIELDS = {
    **dict.fromkeys(("id", "session_id", "session"), "id"),
    **dict.fromkeys(("track", "current_track"), "track"),
    **dict.fromkeys(("beads_claimed", "beads", "bead", "claimed_beads"), "beads"),
    **dict.fromkeys(("files_reserved", "files", "reserved_files", "reservations"), "files"),
    "epoch": "epoch",
}
NOTHING = ("", "-", "none", "null", "n/a", "unknown")
KEY = "[A-Za-z][A-Za-z _-]{0,30}"
LINE = re.compile(rf"[ \t]*(?:[-*+][ \t]+)?(?:\*\*({KEY})(?::\*\*|\*\*[ \t]*:)|({KEY}):)[ \t]*(.*)")
ITEM = re.compile(r"[ \t]*[-*+][ \t]+(.+)")
COMMA = re.compile(r",(?![^{]*\})")
TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?:Z|([+-])(\d\d):?(\d\d))?", re.ASCII
)


def sent_ms(value: Any) -> int | str:
    """When a message was sent; in words why that is not known."""
    if value is None or value == "":
        return "no_heartbeat"
    match = TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    try:
        if match:
            clock = datetime.fromisoformat(f"{match[1]}T{match[2]}").replace(tzinfo=timezone.utc)
            offset_s = int(match[5]) * 3_600 + int(match[6]) * 60 if match[4] else 0
            seconds = int(clock.timestamp()) - (-offset_s if match[4] == "-" else offset_s)
            moment = seconds * 1_000 + int((match[3] or "0")[:3].ljust(3, "0"))
        else:
            number = float(value) if isinstance(value, (int, float, str)) else 0.0
            moment = round(number if number >= 10**11 else number * 1_000)
    except (ValueError, OverflowError):
        return "invalid_timestamp"
    return moment if moment > 0 and not isinstance(value, bool) else "invalid_timestamp"


def read_body(body: Any) -> dict[str, tuple[str, ...]]:
    """The fields that a body names, in whichever of the three layouts."""
    if isinstance(body, str):
        text = body[:16_000].strip().strip("`")
        text = (text[4:] if text.startswith("json") else text).strip()
        try:
            body = json.loads(text) if text.startswith("{") else body[:16_000]
        except (ValueError, RecursionError):
            body = body[:16_000]
    fields: dict[str, tuple[str, ...]] = {}
    listed = None
    if isinstance(body, dict):
        for key, value in body.items():
            if normal_key(str(key)) in FIELDS:
                field = FIELDS[normal_key(str(key))]
                fields[field] = split_values(field, value)
    for line in body.split("\n") if isinstance(body, str) else ():
        match, item = LINE.match(line), ITEM.match(line)
        if match:
            field = FIELDS.get(normal_key(match[1] or match[2]))
            if field:
                fields[field] = split_values(field, match[3])
            listed = None if match[3].strip() else field
        elif listed and item:
            fields[listed] = (*fields[listed], *split_values(listed, item[1]))[:50]
    return fields


def normal_key(key: str) -> str:
    return key.strip(" _-").lower().replace(" ", "_").replace("-", "_")


def split_values(field: str, value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, str) and field in ("beads", "files"):
        text = value.strip()
        parts = COMMA.split(text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text)
    elif isinstance(value, str):
        parts = [value.strip()]
    usable = (str(one) for one in parts[:50] if type(one) in (str, int))
    cleaned = (re.sub(r"\s+\([^()]*\)$", "", one[:200].strip()).strip("`\"' ") for one in usable)
    return tuple(dict.fromkeys(one for one in cleaned if one.lower() not in NOTHING))


def new_trace() -> dict[str, Any]:
    return {"is_session": False, "seen": 0, "ahead": 0, "is_invalid": False, "epoch": 1,
            "start": (0, -1), "end": (0, -1), "values": {}}  # fmt: skip


def fold(messages: list[Any], own: str, now_ms: int) -> dict[str, dict[str, Any]]:
    """The newest of everything about each session of others, by its id."""
    traces: dict[str, dict[str, Any]] = {own: new_trace()} if own else {}
    for message in messages:
        if isinstance(message, dict):
            take_in(traces, message, now_ms)
    newest: dict[str, tuple[int, str]] = {}
    for name in traces:
        base, created_ms = parse_id(name) or ("", 0)
        if base:
            newest[base] = max(newest.get(base, (0, "")), (created_ms, name))
    for sender in [name for name in newest if name in traces]:
        created_ms, name = newest[sender]
        absorb(traces[name], traces.pop(sender), created_ms - SKEW_MS)
    return {name: one for name, one in traces.items() if name != own and one["is_session"]}


def take_in(traces: dict[str, dict[str, Any]], message: dict[str, Any], now_ms: int) -> None:
    moment = sent_ms(message.get("created_ts"))
    if isinstance(moment, int) and now_ms - moment > WINDOW_MS:
        return
    sender = message.get("sender") or message.get("from")
    sender = sender[:200].strip() if isinstance(sender, str) else ""
    subject = message.get("subject")
    subject = subject.lstrip() if isinstance(subject, str) else ""
    match = re.match(r"\[([A-Z][A-Z ]*)\]", subject)
    kind = match[1] if match and match[1] in KINDS else ""
    fields = read_body(message.get("body") or message.get("body_md"))
    text = "".join(fields.pop("epoch", ()))
    epoch = int(text) if re.fullmatch("[0-9]{1,15}", text) else 1
    named = "".join(fields.pop("id", ()))
    parsed = parse_id(named)
    is_own = parsed is not None and sender in ("", named, parsed[0]) and kind != "TAKEOVER"
    if kind == "TAKEOVER" and parsed and named != sender:
        over = traces.setdefault(named, new_trace())
        over["is_session"] = True
        over["end"] = max(over["end"], (epoch, moment if isinstance(moment, int) else 0))
    name = named if is_own else sender
    if not name:
        return
    trace, at_ms = traces.setdefault(name, new_trace()), 0
    if isinstance(moment, str):
        trace["is_invalid"] |= moment == "invalid_timestamp"
    elif moment > now_ms + SKEW_MS:
        trace["ahead"] = max(trace["ahead"], moment)
    else:
        trace["seen"], at_ms = max(trace["seen"], moment), moment
    if not kind or kind == "TAKEOVER":
        return
    trace["is_session"], trace["epoch"] = True, max(trace["epoch"], epoch)
    side = {"SESSION START": "start", "SESSION END": "end"}.get(kind)
    if side:
        trace[side] = max(trace[side], (epoch, at_ms))
    track = re.match(r"\[HEARTBEAT\] Track ([^:\s]+)", subject)
    fields = {"track": (track[1],), **fields} if track else fields
    for field, value in fields.items():
        trace["values"][field] = max(trace["values"].get(field, (-1, ())), (at_ms, value))


def observe(name: str, trace: dict[str, Any], now_ms: int, utc_offset_s: int) -> dict[str, Any]:
    """The record of a session, and what is known of its silence."""
    seen_ms = trace["seen"] or trace["ahead"] or (0 if trace["is_invalid"] else None)
    there = presence(seen_ms, now_ms)
    start, end, values = trace["start"], trace["end"], trace["values"]
    is_over = end[1] >= 0 and not (start[0] > end[0] and start[1] >= end[1])
    base, created_ms = parse_id(name) or (name, None)
    record = {
        "id": name,
        "display": display_name(name, utc_offset_s),
        "base_agent": base,
        "created_ts": None if created_ms is None else created_ms // 1_000,
        "track": next(iter(values.get("track", (0, ()))[1]), None),
        "beads_claimed": list(values.get("beads", (0, ()))[1]),
        "files_reserved": list(values.get("files", (0, ()))[1]),
        "last_heartbeat": trace["seen"] // 1_000 or None,
        "status": "ended" if is_over else there["status"],
        "epoch": trace["epoch"],
    }
    return {"record": record, "silent_ms": there["silent_ms"], "reason": there["reason"]}


def absorb(trace: dict[str, Any], other: dict[str, Any], since_ms: int) -> None:
    """Take over what a sender has said since this session of theirs began."""
    for key in ("seen", "ahead", "is_invalid", "epoch", "start"):
        trace[key] = max(trace[key], other[key])
    if other["end"][1] >= since_ms or other["end"][1] == 0:
        trace["end"] = max(trace["end"], other["end"])
    for field, (at_ms, value) in other["values"].items():
        if at_ms >= since_ms or not at_ms:
            trace["values"][field] = max(trace["values"].get(field, (-1, ())), (at_ms, value))
