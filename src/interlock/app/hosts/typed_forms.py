"""Rewrite our commands in an answer to the form that the client's user types."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from interlock.agents.hosts.registry import all_hosts
from interlock.agents.hosts.typed_form import as_typed


def as_typed_in(client: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer in the form of this client (its name, perhaps with its version)."""
    name = client.partition(" ")[0]
    host = next((one for one in all_hosts() if name and one.fixed_listing_name == name), None)
    if host is None:
        return answer
    return cast("Mapping[str, Any]", _replace_texts(answer, partial(as_typed, host)))


def _replace_texts(value: object, replace: Callable[[str], str]) -> object:
    match value:
        case str():
            return replace(value)
        case list() | tuple():
            return [_replace_texts(item, replace) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {key: _replace_texts(item, replace) for key, item in items}
        case _:
            return value
