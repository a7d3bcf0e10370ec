"""One message of a mail server: when it was sent, and what its body says of a session.

Bodies are written by models and people, so three layouts are read alike: lines with a key and a
value, bullets with a bold key, and JSON. Whatever cannot be read is not known, and never a failure.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import msgspec

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
