"""The sessions that the messages of a mail server tell of, in whatever order they are read.

Of each session only the greatest of everything is kept: the newest sign of life, the newest value
of each field, the last beginning and the last end. So the order of messages does not matter, and
what is kept grows with the sessions and not with the messages. A message that does not name its
session belongs to the newest one of its sender.

Bodies are written by models and people, so three layouts are read alike: lines with a key and a
value, bullets with a bold key, and JSON. Whatever cannot be read is not known, and never a failure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import msgspec

from interlock.core.coordination.board import Thresholds, presence_at
from interlock.core.coordination.identities import display_name, parse_id
from interlock.core.coordination.messages import kind_of
from interlock.core.coordination.session_record import ObservedSession, SessionRecord

Field = Literal["id", "track", "beads", "files", "epoch"]
FieldValues: TypeAlias = dict[Field, tuple[str, ...]]
TimeFault = Literal["no_heartbeat", "invalid_timestamp"]

BODY_CHARS_MAX, VALUE_CHARS_MAX, VALUES_MAX = 16_000, 200, 50
_FIELDS: dict[str, Field] = {
    **dict.fromkeys(("id", "session_id", "session"), "id"),
    **dict.fromkeys(("track", "current_track"), "track"),
    **dict.fromkeys(("beads_claimed", "beads", "bead", "claimed_beads"), "beads"),
    **dict.fromkeys(("files_reserved", "files", "reserved_files", "reservations"), "files"),
    "epoch": "epoch",
}
_NOTHING = frozenset(("", "-", "none", "null", "n/a", "unknown"))
_MILLISECONDS_FROM = 10**11
"""A number that is larger counts milliseconds."""
_KEY = "[A-Za-z][A-Za-z _-]{0,30}"
_LINE = re.compile(
    rf"[ \t]*(?:[-*+][ \t]+)?(?:\*\*({_KEY})(?::\*\*|\*\*[ \t]*:)|({_KEY}):)[ \t]*(.*)"
)
_ITEM = re.compile(r"[ \t]*[-*+][ \t]+(.+)")
_COMMA = re.compile(r",(?![^{]*\})")
_REMARK = re.compile(r"\s+\([^()]*\)$")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?:Z|([+-])(\d\d):?(\d\d))?", re.ASCII
)


def sent_ms(value: object) -> int | TimeFault:
    """When a message was sent: text as ISO 8601 has it, UTC unless it says, or a number."""
    if value is None or value == "":
        return "no_heartbeat"
    if isinstance(value, str) and (match := _TIME.fullmatch(value.strip())):
        return _clock_ms(match)
    try:
        number = float(value) if isinstance(value, int | float | str) else 0.0
        number = number if number >= _MILLISECONDS_FROM else number * 1_000
        moment = round(number)
    except (ValueError, OverflowError):
        return "invalid_timestamp"
    return moment if moment > 0 and not isinstance(value, bool) else "invalid_timestamp"


def _clock_ms(match: re.Match[str]) -> int | TimeFault:
    try:
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}").replace(tzinfo=UTC)
    except ValueError:
        return "invalid_timestamp"
    offset_s = (int(match[5]) * 3_600 + int(match[6]) * 60) if match[4] else 0
    seconds = int(moment.timestamp()) - (-offset_s if match[4] == "-" else offset_s)
    moment_ms = seconds * 1_000 + int((match[3] or "0")[:3].ljust(3, "0"))
    return moment_ms if moment_ms > 0 else "invalid_timestamp"


def read_body(body: object) -> FieldValues:
    """The fields that a body names. An empty value says that there is nothing of the kind."""
    if isinstance(body, str):
        text = body[:BODY_CHARS_MAX]
        values = _read_json(text)
        return _read_lines(text) if values is None else _from_object(values)
    return _from_object(body) if isinstance(body, Mapping) else {}  # pyright: ignore[reportUnknownArgumentType]


def _read_json(text: str) -> Mapping[str, object] | None:
    text = text.strip().strip("`").removeprefix("json").strip()
    if not text.startswith("{"):
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _from_object(values: Mapping[object, object] | Mapping[str, object]) -> FieldValues:
    fields: FieldValues = {}
    for key, value in values.items():
        if field := _FIELDS.get(_normal_key(str(key))):
            fields[field] = _split(field, value)
    return fields


def _read_lines(text: str) -> FieldValues:
    fields: FieldValues = {}
    listed: Field | None = None
    for line in text.split("\n"):
        if match := _LINE.match(line):
            field = _FIELDS.get(_normal_key(match[1] or match[2]))
            if field:
                fields[field] = _split(field, match[3])
            listed = None if match[3].strip() else field
        elif listed and (item := _ITEM.match(line)):
            fields[listed] = (*fields[listed], *_split(listed, item[1]))[:VALUES_MAX]
    return fields


def _normal_key(key: str) -> str:
    return key.strip(" _-").lower().replace(" ", "_").replace("-", "_")


def _split(field: Field, value: object) -> tuple[str, ...]:
    """The values of a field: of a list its elements, of a text what stands between its commas."""
    if isinstance(value, str):
        text = value.strip()
        if field in ("beads", "files") and text.startswith("[") and text.endswith("]"):
            text = text[1:-1]
        parts: Sequence[object] = _COMMA.split(text) if field in ("beads", "files") else (text,)
    else:
        parts = value if isinstance(value, Sequence) else (value,)  # pyright: ignore[reportUnknownVariableType]
    cleaned = (_clean(part) for part in parts[:VALUES_MAX])
    return tuple(dict.fromkeys(text for text in cleaned if text.lower() not in _NOTHING))


def _clean(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return _REMARK.sub("", str(value)[:VALUE_CHARS_MAX].strip()).strip("`\"' ")


_HEARTBEAT_TRACK = re.compile(r"\[HEARTBEAT\] Track ([^:\s]+)")
EPOCH_DIGITS_MAX = 15
_STATUS_ORDER = ("active", "stale", "ended")
_DEFAULTS = Thresholds()
_Moment: TypeAlias = tuple[int, int]
"""An epoch, and a time within it."""


def fold_inbox(
    messages: Iterable[object],
    *,
    own: str,
    now_ms: int,
    thresholds: Thresholds = _DEFAULTS,
    utc_offset_s: int = 0,
) -> tuple[ObservedSession, ...]:
    """The sessions of others that were heard of within the window, the ended ones included.

    A message is an object with `sender` or `from`, `subject`, `body` or `body_md`, and
    `created_ts`, as text or as a number. Others are passed over.
    """
    traces: dict[str, _Trace] = {own: _Trace()} if own else {}
    for message in messages:
        if isinstance(message, Mapping):
            _take_in(traces, message, now_ms, thresholds)  # pyright: ignore[reportUnknownArgumentType]
    _assign_to_sessions(traces, thresholds.skew_ms)
    found = [
        _observe(name, trace, now_ms, thresholds, utc_offset_s)
        for name, trace in traces.items()
        if name != own and trace.is_session
    ]
    return tuple(
        sorted(found, key=lambda one: (_STATUS_ORDER.index(one.record.status), one.record.id))
    )


class _Trace:
    """All that is kept of one session, or of a sender whose messages name none."""

    def __init__(self) -> None:
        self.is_session = False
        self.seen_ms = self.ahead_ms = 0
        self.has_invalid_time = False
        self.epoch = 1
        self.start: _Moment | None = None
        self.end: _Moment | None = None
        self.values: dict[Field, tuple[int, tuple[str, ...]]] = {}

    def add_time(self, moment: int | str, now_ms: int, skew_ms: int) -> int:
        """Count a sign of life. Returns the time by which what was said then is compared."""
        if isinstance(moment, str):
            self.has_invalid_time |= moment == "invalid_timestamp"
            return 0
        if moment > now_ms + skew_ms:
            self.ahead_ms = max(self.ahead_ms, moment)
            return 0
        self.seen_ms = max(self.seen_ms, moment)
        return moment

    def add_value(self, field: Field, at_ms: int, value: tuple[str, ...]) -> None:
        self.values[field] = max(self.values.get(field, (-1, ())), (at_ms, value))

    def add_start(self, moment: _Moment) -> None:
        self.start = max(self.start or moment, moment)

    def add_end(self, moment: _Moment) -> None:
        self.end = max(self.end or moment, moment)

    def absorb(self, other: "_Trace", since_ms: int) -> None:
        """Take over what a sender has said since a session of theirs began."""
        self.seen_ms = max(self.seen_ms, other.seen_ms)
        self.ahead_ms = max(self.ahead_ms, other.ahead_ms)
        self.has_invalid_time |= other.has_invalid_time
        self.epoch = max(self.epoch, other.epoch)
        if other.start:
            self.add_start(other.start)
        if other.end and (other.end[1] >= since_ms or not other.end[1]):
            self.add_end(other.end)
        for field, (at_ms, value) in other.values.items():
            if at_ms >= since_ms or not at_ms:
                self.add_value(field, at_ms, value)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and did not begin again later in a higher epoch."""
        if self.end is None:
            return False
        is_revived = self.start and self.start[0] > self.end[0] and self.start[1] >= self.end[1]
        return not is_revived


def _take_in(
    traces: dict[str, _Trace],
    message: Mapping[object, object],
    now_ms: int,
    thresholds: Thresholds,
) -> None:
    moment = sent_ms(message.get("created_ts"))
    if not isinstance(moment, str) and now_ms - moment > thresholds.window_ms:
        return
    sender = _text(message.get("sender") or message.get("from"))[:VALUE_CHARS_MAX].strip()
    subject = _text(message.get("subject")).lstrip()
    kind = kind_of(subject)
    fields = read_body(message.get("body") or message.get("body_md"))
    epoch = _epoch_of(fields)
    named = "".join(fields.pop("id", ()))
    name = named if _speaks_for(sender, named) and kind != "TAKEOVER" else sender
    if kind == "TAKEOVER" and parse_id(named) and named != sender:
        over = traces.setdefault(named, _Trace())
        over.is_session = True
        over.add_end((epoch, 0 if isinstance(moment, str) else moment))
    if not name:
        return
    trace = traces.setdefault(name, _Trace())
    at_ms = trace.add_time(moment, now_ms, thresholds.skew_ms)
    if not kind or kind == "TAKEOVER":
        return  # a sign of life, and nothing else
    trace.is_session = True
    trace.epoch = max(trace.epoch, epoch)
    if kind == "SESSION START":
        trace.add_start((epoch, at_ms))
    elif kind == "SESSION END":
        trace.add_end((epoch, at_ms))
    if (track := _HEARTBEAT_TRACK.match(subject)) and "track" not in fields:
        fields["track"] = (track[1],)
    for field, value in fields.items():
        trace.add_value(field, at_ms, value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _epoch_of(fields: FieldValues) -> int:
    text = "".join(fields.pop("epoch", ()))
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= EPOCH_DIGITS_MAX else 1


def _speaks_for(sender: str, named: str) -> bool:
    """Whether a message tells of its sender's own session: nobody speaks for another one."""
    parsed = parse_id(named)
    return parsed is not None and sender in ("", named, parsed.base)


def _assign_to_sessions(traces: dict[str, _Trace], skew_ms: int) -> None:
    newest: dict[str, tuple[int, str]] = {}
    for name in traces:
        if parsed := parse_id(name):
            newest[parsed.base] = max(newest.get(parsed.base, (0, "")), (parsed.created_ms, name))
    for sender in newest.keys() & traces.keys():
        created_ms, name = newest[sender]
        traces[name].absorb(traces.pop(sender), created_ms - skew_ms)


def _observe(
    name: str, trace: _Trace, now_ms: int, thresholds: Thresholds, utc_offset_s: int
) -> ObservedSession:
    seen_ms = trace.seen_ms or trace.ahead_ms or (0 if trace.has_invalid_time else None)
    presence = presence_at(seen_ms, now_ms, thresholds)
    parsed = parse_id(name)
    track = trace.values.get("track", (0, ()))[1]
    record = SessionRecord(
        id=name,
        display=display_name(name, utc_offset_s=utc_offset_s),
        base_agent=parsed.base if parsed else name,
        created_ts=parsed.created_ms // 1_000 if parsed else None,
        track=track[0] if track else None,
        beads_claimed=trace.values.get("beads", (0, ()))[1],
        files_reserved=trace.values.get("files", (0, ()))[1],
        last_heartbeat=trace.seen_ms // 1_000 if trace.seen_ms else None,
        status="ended" if trace.is_over else "active" if presence.status == "active" else "stale",
        epoch=trace.epoch,
    )
    return ObservedSession(record, presence.silent_ms, presence.reason)
