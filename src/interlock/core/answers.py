"""Answers as JSON, whatever is in the files and paths that they mention."""

from collections.abc import Mapping
from typing import cast

import msgspec


def answer_json(answer: object) -> bytes:
    """Encode an answer. Bytes that are no characters, as in a file not in UTF-8, become U+FFFD."""
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replace_surrogates(msgspec.to_builtins(answer)))


def _replace_surrogates(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_replace_surrogates(item) for item in cast("list[object]", value)]
        case dict():
            items = cast("Mapping[object, object]", value).items()
            return {_replace_surrogates(key): _replace_surrogates(item) for key, item in items}
        case _:
            return value
