"""The sessions that the messages of a mail server tell of, in whatever order they are read.

Of each session only the greatest of everything is kept: the newest sign of life, the newest value
of each field, the last beginning and the last end. So the order of messages does not matter, and
what is kept grows with the sessions and not with the messages. A message that does not name its
session belongs to the newest one of its sender.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from interlock.core.coordination.board import Thresholds, presence_at
from interlock.core.coordination.identities import display_name, parse_id
from interlock.core.coordination.mail_message import (
    VALUE_CHARS_MAX,
    Field,
    FieldValues,
    read_body,
    sent_ms,
)
from interlock.core.coordination.messages import kind_of
from interlock.core.coordination.session_record import ObservedSession, SessionRecord

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
