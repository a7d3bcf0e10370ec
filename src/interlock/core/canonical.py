"""Canonical JSON (RFC 8785): the one form of a value that is hashed, chained or compared."""

import hashlib
from typing import TYPE_CHECKING, Any, NewType, TypeAlias, cast

import msgspec

from interlock.core.ids import BlobRef

CanonicalBytes = NewType("CanonicalBytes", bytes)

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = Any  # msgspec, which reads these at run time, does not know recursive types

INT_MAX = 2**53 - 1  # beyond it a double, and so JavaScript, cannot tell neighbours apart
DEPTH_MAX = 64  # deeper JSON is somebody's accident, and recursion has a limit

_encoder = msgspec.json.Encoder(order="sorted")


class NotCanonical(ValueError):
    """The value has no canonical form. `pointer` (RFC 6901) is the place, `reason` the cause."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer or '(the whole value)'}: {reason}")
        self.pointer = pointer
        self.reason = reason


def encode(value: "msgspec.Struct | Json") -> CanonicalBytes:
    """Return the canonical bytes of one of our structs, or of JSON that came from outside.

    Our structs have ASCII field names, no floats and small integers, and carry foreign JSON only
    as bytes that went through here before (`msgspec.Raw`); on that domain the fast encoder and
    RFC 8785 agree, which a property test checks against the reference implementation.

    Raises:
        NotCanonical: NaN, an integer of 2^53 or more, a lone surrogate, nesting beyond `DEPTH_MAX`.
    """
    if isinstance(value, msgspec.Struct):
        return CanonicalBytes(_encoder.encode(value))
    import rfc8785  # noqa: PLC0415 (16 ms, and a plain advance carries no foreign JSON)

    check_canonical(value)
    return CanonicalBytes(rfc8785.dumps(value))


def short_digest(content: msgspec.Struct) -> str:
    """Return a short name for what is in a struct."""
    return hashlib.sha256(encode(content)).hexdigest()[:16]


def blob_ref(content: bytes) -> BlobRef:
    """Return the name of a blob: the hash of its content."""
    return BlobRef(f"sha256:{hashlib.sha256(content).hexdigest()}")


def check_canonical(root: Json) -> None:
    """Raise `NotCanonical` where `encode` would."""
    # A loop and not recursion: the value may be nested as deeply as an attacker likes.
    pending: list[tuple[str, int, object]] = [("", 0, root)]
    while pending:
        pointer, depth, value = pending.pop()
        if depth > DEPTH_MAX:
            raise NotCanonical(pointer, f"nested more than {DEPTH_MAX} levels deep")
        if isinstance(value, dict):
            for key, item in cast("dict[object, object]", value).items():
                if not isinstance(key, str):
                    raise NotCanonical(pointer, f"the key {key!r} is not a string")
                _check_scalar(pointer, key)
                pending.append((f"{pointer}/{escape_pointer_part(key)}", depth + 1, item))
        elif isinstance(value, list):
            items = cast("list[object]", value)
            pending.extend((f"{pointer}/{i}", depth + 1, item) for i, item in enumerate(items))
        else:
            _check_scalar(pointer, value)


def _check_scalar(pointer: str, value: object) -> None:
    match value:
        case None | bool():
            pass
        case int():
            if abs(value) > INT_MAX:
                raise NotCanonical(pointer, "the integer is 2^53 or more; send it as a string")
        case float():
            if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 (NaN)
                raise NotCanonical(pointer, f"{value} is not JSON")
        case str():
            # Cheap on the common case: `isascii` is a flag lookup.
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise NotCanonical(pointer, "the text has half of a surrogate pair")
        case _:
            raise NotCanonical(pointer, f"{type(value).__name__} is not JSON")


def escape_pointer_part(key: str) -> str:
    """Escape one part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
