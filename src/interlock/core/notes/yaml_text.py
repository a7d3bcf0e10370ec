"""Values as YAML text, quoted wherever a reader of YAML might take it for something else."""

from interlock.core.canonical import Json
from interlock.core.notes.note import Metadata

DEPTH_MAX = 64  # as deep as our JSON goes; deeper is somebody's accident
KEY_CHARS_MAX = 1000  # YAML looks 1024 characters ahead for the colon of a plain key

# YAML 1.1 takes these for booleans and null, whatever their case.
_RESERVED_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "none"})
_PLAIN_MARKS = frozenset(" _-./()'+;=")

# Characters that may not be in a file, and those that some readers take for the end of a line.
_UNPRINTABLE = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_ESCAPES = {code: f"\\u{code:04x}" for code in _UNPRINTABLE} | {
    ord("\n"): "\\n",
    ord("\t"): "\\t",
    ord("\r"): "\\r",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def block(values: Metadata, newline: str, indent: str) -> str:
    """Return a line for each key, with lists and mappings below theirs."""
    return "".join(f"{line}{newline}" for line in _block_lines(values, indent))


def inline(value: Json) -> str:
    """Return the value on one line, quoted for a place where commas and brackets have a meaning."""
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_key(key)}: {inline(inner)}" for key, inner in value.items())
        return f"{{{', '.join(pairs)}}}"
    return _scalar(value)


def value_as_parsed(value: Json) -> Json:
    """Return the value that a reader gets which leaves every scalar a string."""
    if isinstance(value, list):
        return [value_as_parsed(inner) for inner in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): value_as_parsed(inner) for key, inner in value.items()}
    return _without_surrogates(value) if isinstance(value, str) else _scalar(value)


def is_too_deep(value: Json) -> bool:
    # A loop and not recursion: the value may be nested as deeply as an attacker likes.
    waiting: list[tuple[int, Json]] = [(1, value)]
    while waiting:
        depth, inner = waiting.pop()
        if isinstance(inner, list | dict):
            if depth > DEPTH_MAX:
                return True
            children = inner if isinstance(inner, list) else inner.values()
            waiting += [(depth + 1, child) for child in children]
    return False


def _block_lines(values: Metadata, indent: str) -> list[str]:
    lines: list[str] = []
    for key, value in values.items():
        head = f"{indent}{_key(key)}:"
        if head.startswith("? ", len(indent)):
            lines.append(head[:-1])
            head = f"{indent}:"
        if isinstance(value, dict) and value:
            lines += [head, *_block_lines(value, f"{indent}  ")]
        elif isinstance(value, list) and value:
            lines += [head, *(f"{indent}  - {inline(inner)}" for inner in value)]
        else:
            lines.append(f"{head} {inline(value)}")
    return lines


def _key(key: str) -> str:
    text = _scalar(key)
    return f"? {text}" if len(text) > KEY_CHARS_MAX else text


def _scalar(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, str):
        value = _without_surrogates(value)
        return value if _is_plain(value) else f'"{value.translate(_ESCAPES)}"'
    return str(value)


def _float_text(value: float) -> str:
    if value != value:  # noqa: PLR0124 (only NaN differs from itself)
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    digits, exponent, power = repr(value).partition("e")
    return f"{digits if '.' in digits else f'{digits}.0'}{exponent}{power}"


def _without_surrogates(text: str) -> str:
    """Return the text without halves of characters, which no file in UTF-8 can hold."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_plain(text: str) -> bool:
    """True if it begins with a letter, so is no number or date, and has no YAML marks in it."""
    return (
        text[:1].isalpha()
        and not text[-1].isspace()
        and text.lower() not in _RESERVED_WORDS
        and all(mark.isalnum() or mark in _PLAIN_MARKS for mark in text)
    )
