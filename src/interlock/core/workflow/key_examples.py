"""Make the example of a key's value from what the workflow says and asks about it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from interlock.core.canonical import Json
from interlock.core.workflow.blanks import choice, with_blanks
from interlock.core.workflow.key_uses import KeyUse

_OPTIONS_MAX = 12


def key_example(name: str, uses: Sequence[KeyUse], context_schema: Mapping[str, Any]) -> Json:
    """Return a value with blanks; the context schema says most about it, where there is one."""
    properties = context_schema.get("properties")
    declared: Any = cast("dict[str, Any]", properties or {}).get(name)
    if isinstance(declared, dict) and declared:
        shared = {key: context_schema[key] for key in ("$defs",) if key in context_schema}
        return with_blanks({**shared, **cast("dict[str, Any]", declared)})
    return _example([(use.path.split(".")[1:], use) for use in uses])


def _example(uses: list[tuple[list[str], KeyUse]]) -> Json:
    """Return the example of a value from the uses of it and of its parts."""
    parts: dict[str, list[tuple[list[str], KeyUse]]] = {}
    for path, use in uses:
        if path:
            parts.setdefault(path[0], []).append((path[1:], use))
    own_uses = [use for path, use in uses if not path]
    questions = {use.question for use in own_uses}
    is_list = "items" in questions or ("contains" in questions and "words" not in questions)
    if is_list or any(name.isdecimal() or name == "length" for name in parts):
        inner = [use for name, found in parts.items() if name.isdecimal() for use in found]
        contained = [
            value for use in own_uses if use.question == "contains" for value in use.values
        ]
        return [_example(inner) if inner else _value_blank(contained)]
    if parts:
        return {name: _example(found) for name, found in parts.items()}
    return _leaf(own_uses)


def _leaf(uses: list[KeyUse]) -> Json:
    counts = [use.passes_max for use in uses if use.question == "count"]
    if counts:
        return f"<whole number, 1 to {min(counts)}>"
    if any(use.question == "order" for use in uses):
        return "<number>"
    values: list[Json] = [value for use in uses for value in use.values if value is not None]
    if not values and any(use.question == "truth" for use in uses):
        return "<true or false>"
    return _value_blank(values)


def _value_blank(values: list[Json]) -> Json:
    texts = [str(value).lower() if isinstance(value, bool) else value for value in values]
    options = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
    if options and {option.casefold() for option in options} <= {"true", "false"}:
        return "<true or false>"
    if values and all(isinstance(value, int | float) for value in values):
        return "<number>"
    distinct = {option.casefold(): option for option in reversed(options)}
    options = [option for option in options if distinct[option.casefold()] == option]
    options = [option for option in options if option and "|" not in option and ">" not in option]
    if len(options) > 1:
        # Conditions name only some of the values that the author may have in mind.
        return choice((*options[:_OPTIONS_MAX], "another value"))
    return f"<text, like “{options[0]}”>" if options else "<text>"
