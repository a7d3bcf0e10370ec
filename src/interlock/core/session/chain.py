"""The digest chain: each event's digest covers the one before it, so damage cannot hide."""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Literal, cast

import msgspec

from interlock.core import canonical
from interlock.core.ids import SessionId
from interlock.core.session.events import ENVELOPE_VERSION, Envelope, decode_envelope

GENESIS = bytes(32)

ChainState = Literal["healthy", "corrupt_tail", "corrupt_head", "unknown_version"]


class ChainLink(msgspec.Struct, frozen=True):
    """One event as it is stored: its bytes, and the digest that ties it to all before it."""

    seq: int
    body: bytes
    digest: bytes


class Health(msgspec.Struct, frozen=True):
    """How far a stream can be trusted. `valid` events from the start are sound."""

    state: ChainState
    valid: int
    reason: str = ""


class _EnvelopeVersion(msgspec.Struct):
    v: int


def digest(previous: bytes, body: bytes) -> bytes:
    return hashlib.sha256(previous + body).digest()


def verify(session: SessionId, links: Iterable[ChainLink], *, version: int, end: bytes) -> Health:
    """Walk a stream from its start: `version` events that should end in the digest `end`."""
    previous, expected = GENESIS, 0
    for link in links:
        if reason := _damage(session, link, expected, previous):
            return _unsound_health(expected, reason, link.body)
        previous, expected = link.digest, expected + 1
    if expected != version:
        return Health(
            "corrupt_tail", expected, f"{version - expected} events are missing at the end"
        )
    if previous != end:
        return Health("corrupt_tail", expected, "the last digest is not the recorded one")
    return Health("healthy", expected)


def verify_tail(links: Sequence[ChainLink], *, version: int, end: bytes) -> Health:
    """Check only the last links (all there are, or two), which an append builds on.

    Costs the same for a stream of any length; `verify` walks the whole stream.
    """
    valid = max(0, version - len(links))
    for previous_link, link in zip((None, *links), links, strict=False):
        if link.seq != valid:
            return Health("corrupt_tail", valid, f"event {valid} is missing")
        previous = previous_link.digest if previous_link else GENESIS if valid == 0 else None
        if previous is not None and digest(previous, link.body) != link.digest:
            return Health("corrupt_tail", valid, f"event {valid} does not match its digest")
        valid += 1
    if not links or links[-1].digest != end:
        return Health("corrupt_tail", max(0, valid - 1), "the last digest is not the recorded one")
    return Health("healthy", valid)


def verify_one(session: SessionId, link: ChainLink, *, before: bytes) -> Health:
    """Check one event against the digest `before` it."""
    if reason := _damage(session, link, link.seq, before):
        return _unsound_health(link.seq, reason, link.body)
    return Health("healthy", link.seq + 1)


def _damage(session: SessionId, link: ChainLink, expected: int, previous: bytes) -> str:
    """Return what is wrong with a link, or nothing."""
    if link.seq != expected:
        return f"event {expected} is missing"
    if digest(previous, link.body) != link.digest:
        return f"event {expected} does not match its digest"
    try:
        envelope = decode_envelope(link.body)
    except msgspec.MsgspecError as error:
        return f"event {expected} cannot be read: {error}"
    if (envelope.session, envelope.seq) != (session, expected):
        return f"event {expected} belongs elsewhere"
    if envelope.v != ENVELOPE_VERSION or not _is_own_form(link.body, canonical.encode(envelope)):
        return f"event {expected} is not in a form this version writes"
    return ""


def _is_own_form(body: bytes, encoded: bytes) -> bool:
    """Whether an event is stored as it is written now, or as an older version wrote it.

    That may have stated a value that is left out now because everything without it has it, or the
    other way round.
    """
    return body == encoded or _says_the_same(
        msgspec.json.decode(body), msgspec.json.decode(encoded)
    )


def _says_the_same(old: object, new: object) -> bool:
    match old, new:
        case dict(), dict():
            fields = cast("list[dict[str, object]]", [old, new])
            return all(
                _says_the_same(fields[0][name], fields[1][name])
                if name in fields[0] and name in fields[1]
                else not (fields[0].get(name) or fields[1].get(name))
                for name in fields[0] | fields[1]
            )
        case list(), list():
            pairs = zip_longest(cast("list[object]", old), cast("list[object]", new))
            return all(a == b or _says_the_same(a, b) or not (a or b) for a, b in pairs)
        case _:
            return old == new


def _unsound_health(expected: int, reason: str, body: bytes) -> Health:
    if _version_of(body) > ENVELOPE_VERSION:
        return Health(
            "unknown_version", expected, f"event {expected} was written by a newer Interlock"
        )
    return Health("corrupt_tail" if expected else "corrupt_head", expected, reason)


def _version_of(body: bytes) -> int:
    try:
        return msgspec.json.decode(body, type=_EnvelopeVersion).v
    except msgspec.MsgspecError:
        return 0


def seal(envelope: Envelope, previous: bytes) -> ChainLink:
    body = canonical.encode(envelope)
    return ChainLink(envelope.seq, body, digest(previous, body))
