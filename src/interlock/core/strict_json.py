"""Decode JSON on a bare interpreter, where importing `json` would take as long as Python's start.

It accepts only what no two readers of JSON understand differently; the caller leaves the rest to a
complete reader.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NUMBER_CHARS_MAX = 18  # no two readers differ about a number this short


def decode(content: bytes) -> "Any":
    """Decode one JSON value.

    Raises:
        Exception: it is not JSON, or readers may differ about it.
    """
    import _json  # noqa: PLC0415 (not every Python has it)

    if b"\\ud" in content.lower():
        raise ValueError("half a surrogate is an error to some readers and a character to others")
    text = content.decode()
    value, end = _json.make_scanner(_Settings)(text, 0)  # pyright: ignore[reportArgumentType]
    if text[end:].strip(" \t\r\n"):
        raise ValueError("there is more than one value")
    return value


def as_object(value: "Any") -> "dict[str, Any]":
    """The value if it is an object of JSON, else an empty one."""
    return value if type(value) is dict else {}  # pyright: ignore[reportUnknownVariableType]


def _number(text: str) -> int | float:
    if len(text) > NUMBER_CHARS_MAX or text.strip("-.0123456789"):
        raise ValueError(f"readers may differ about {text}")  # so may they about `NaN`
    return float(text) if "." in text else int(text)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key comes twice")
    return members


class _Settings:
    """The settings of `_json`."""

    strict = True
    object_hook = None
    object_pairs_hook = _object
    parse_float = parse_int = parse_constant = _number
