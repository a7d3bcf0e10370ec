"""Keep the values that avoid an approval out of examples."""

from collections.abc import Iterator
from typing import Any

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import conditions, step_paths
from interlock.core.workflow.blanks import choice, is_blank
from interlock.core.workflow.compiled_workflow import CompiledPart, CompiledStep
from interlock.core.workflow.conditions import Comparison, Condition, Join, Negation

_LIKE = ", like "


def guards_of(parts: tuple[CompiledPart, ...]) -> Iterator[Condition]:
    """Yield the conditions under which an approval is requested."""
    for part, loops in step_paths.located_parts(parts):
        if isinstance(part, CompiledStep) and (part.approval or part.confirms):
            around = (part.run_condition, *(loop.run_condition for loop in loops))
            asked = part.confirms if isinstance(part.confirms, str) else None
            own = part.approval.condition if part.approval else None
            yield from (conditions.unpack(one) for one in (own, asked, *around) if one)


def without_shortcuts(example: Json, path: str, guards: tuple[Condition, ...]) -> Json:
    """Return the example of the value at `path` with hints at which an approval is asked for."""
    match example:
        case dict():
            return {
                name: without_shortcuts(item, f"{path}.{name}", guards)
                for name, item in example.items()
            }
        case list():
            return [
                without_shortcuts(item, f"{path}.{at}", guards) for at, item in enumerate(example)
            ]
        case str() if is_blank(example):
            own = [
                _restrict_to_path(guard, path)
                for guard in guards
                if path in conditions.variables(guard)
            ]
            return _neutral_blank(example, path, own) if own else example
        case _:
            return example


def _neutral_blank(blank: str, path: str, guards: list[Condition]) -> str:
    inside, _, hint = blank[1:-1].partition(_LIKE)

    def is_asked(value: Json) -> bool:
        for name in reversed(path.split(".")):
            value = {name: value}
        scope: Any = value
        return all(conditions.evaluate(guard, scope, is_lenient=True) is True for guard in guards)

    if inside == "true or false":
        if_true, if_false = (is_asked(flag) for flag in (True, False))
        return f"<{inside}{_LIKE}false>" if if_false and not if_true else blank
    if " | " in inside and not inside.startswith("number: "):
        return choice(sorted(inside.split(" | "), key=lambda option: not is_asked(option)))
    if inside.startswith(("number", "whole number")):
        near = [0, *(number for guard in guards for number in _numbers(guard))]
        asked = next((number for number in near if is_asked(number)), 0)
        return f"<{inside}{_LIKE}{asked}>" if asked else blank
    return f"<{inside}>" if hint and not is_asked(hint.strip("“”")) else blank


def _restrict_to_path(condition: Condition, path: str) -> Condition:
    """Return the condition without the parts that do not read the path."""
    if not isinstance(condition, Join):
        return condition
    parts = [part for part in condition.parts if path in conditions.variables(part)]
    return msgspec.structs.replace(
        condition, parts=tuple(_restrict_to_path(part, path) for part in parts)
    )


def _numbers(condition: Condition) -> Iterator[int]:
    """Yield integers around the numbers in the condition."""
    match condition:
        case Join(_, parts):
            for part in parts:
                yield from _numbers(part)
        case Negation(part):
            yield from _numbers(part)
        case Comparison(_, _, int() | float() as value):
            yield from (int(value), int(value) + 1, int(value) - 1)
        case _:
            pass
