"""Find where a compiled workflow reads keys of the context, and what it asks about them."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import conditions, delegations, step_paths
from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledPart, CompiledStep
from interlock.core.workflow.conditions import Comparison, Condition, Join, Negation, TruthTest
from interlock.core.workflow.placeholders import NOTES_PREFIX, placeholder_paths

KeyQuestion = Literal["value", "order", "contains", "words", "truth", "items", "count", "text"]


class KeyUse(msgspec.Struct, frozen=True):
    """One place that reads a key. Items of a list are read at `LIST.0`."""

    path: str
    question: KeyQuestion
    pointer: str
    number: int
    """Of the step before which, or in which, it is read."""
    loops: frozenset[str]
    """The loops around that place, and the loop itself where its rule reads the key."""
    values: tuple[Json, ...] = ()
    """The values that it is compared with."""
    passes_max: int = 0
    is_elsewhere: bool = False
    is_at_end: bool = False
    """Whether it is read when the step is submitted, with what the step has set."""

    @property
    def name(self) -> str:
        return self.path.partition(".")[0]


def key_uses(parts: tuple[CompiledPart, ...]) -> Iterator[KeyUse]:
    for part, loops in step_paths.located_parts(parts):
        uses = _uses_of_step(part) if isinstance(part, CompiledStep) else _uses_of_loop(part)
        number, own_loops = step_paths.first_number(part), step_paths.repeating_loops(loops)
        for use in uses:
            source = _outside_of_loop_variables(use.path, loops)
            if source is None:
                continue
            path, depth = source
            is_item = depth < len(loops)
            around = step_paths.repeating_loops(loops[:depth]) if is_item else own_loops
            if isinstance(part, CompiledLoop) and use.pointer == f"/{part.condition_at}":
                around |= {part.id}  # its own passes may set what it depends on
            yield KeyUse(
                path,
                use.question,
                part.pointer if part.is_elsewhere else part.pointer + use.pointer,
                step_paths.first_number(loops[depth]) if is_item else number,
                around,
                use.values,
                use.passes_max,
                part.is_elsewhere,
                use.is_at_end,
            )


def _outside_of_loop_variables(
    path: str, loops: tuple[CompiledLoop, ...]
) -> tuple[str, int] | None:
    """Return the path of a list's item instead of its variable, and how many loops are around the
    loop that reads the list; None for a counter of passes.
    """
    name, dot, rest = path.partition(".")
    for depth in range(len(loops) - 1, -1, -1):
        loop = loops[depth]
        if loop.kind == "forEach" and name == loop.item_var:
            items_path = f"{loop.items}.0{dot}{rest}"
            outer = _outside_of_loop_variables(items_path, loops[:depth])
            return outer and (outer[0], min(depth, outer[1]))
        if loop.kind != "group" and name in (loop.iteration_var, loop.index_var):
            return None
    return path, len(loops)


def _uses_of_step(step: CompiledStep) -> Iterator[KeyUse]:
    yield from _condition_uses(step.run_condition, "/runCondition")
    for text in (step.title, step.agent_role, step.prompt, step.verification):
        yield from _text_uses(text, "")
    for index, fragment in enumerate(step.fragments):
        yield from _condition_uses(fragment.when, f"/promptFragments/{index}/when")
        yield from _text_uses(fragment.text, f"/promptFragments/{index}/text")
    if isinstance(step.confirms, str):
        yield from _condition_uses(step.confirms, "/requireConfirmation")
    for delegation in step.delegations:
        yield from _condition_uses(delegation.when, "")
        for text in delegations.source_texts(delegation):
            yield from _text_uses(text, "")
    at_end = [*_criteria_uses(step.validation_criteria)]
    if step.approval:
        at_end += _condition_uses(step.approval.condition, "/requireConfirmation/condition")
    yield from (msgspec.structs.replace(use, is_at_end=True) for use in at_end)


def _uses_of_loop(loop: CompiledLoop) -> Iterator[KeyUse]:
    yield from _condition_uses(loop.run_condition, "/runCondition")
    yield from _condition_uses(loop.condition, f"/{loop.condition_at}")
    if loop.kind == "group":
        return
    yield from _text_uses(loop.title, "/title")
    if loop.items:
        yield KeyUse(loop.items, "items", "/loop/items", 0, frozenset())
    if isinstance(loop.count, str):
        yield KeyUse(loop.count, "count", "/loop/count", 0, frozenset(), passes_max=loop.passes_max)


def _text_uses(text: str, pointer: str) -> Iterator[KeyUse]:
    for path in dict.fromkeys(placeholder_paths(text)):
        if not path.startswith(NOTES_PREFIX):
            yield KeyUse(path, "text", pointer, 0, frozenset())


@lru_cache(maxsize=256)  # many steps ask the same
def _condition_uses(content: str | None, pointer: str) -> tuple[KeyUse, ...]:
    return tuple(_uses_in(conditions.unpack(content), pointer)) if content is not None else ()


def _uses_in(condition: Condition, pointer: str) -> Iterator[KeyUse]:
    match condition:
        case Join(_, parts):
            for part in parts:
                yield from _uses_in(part, pointer)
        case Negation(part):
            yield from _uses_in(part, pointer)
        case TruthTest(var):
            yield KeyUse(var, "truth", pointer, 0, frozenset())
        case Comparison(var, "contains", value):
            yield KeyUse(var, "contains", pointer, 0, frozenset(), (value,))
        case Comparison(var, "gt" | "gte" | "lt" | "lte", value):
            yield KeyUse(var, "order", pointer, 0, frozenset(), (value,))
        case Comparison(var, "in", list(values)):
            yield KeyUse(var, "value", pointer, 0, frozenset(), tuple(values))
        case Comparison(var, "equals" | "not_equals" | "equalsExactly", value):
            yield KeyUse(var, "value", pointer, 0, frozenset(), (value,))
        case Comparison(var, "startsWith" | "endsWith", value):
            yield KeyUse(var, "words", pointer, 0, frozenset(), (value,))
        case Comparison(var):
            yield KeyUse(var, "words", pointer, 0, frozenset())


def _criteria_uses(content: str | None) -> Iterator[KeyUse]:
    """Yield what the conditions of rules read."""
    pending: list[Any] = [msgspec.json.decode(content)] if content else []
    while pending:
        match pending.pop():
            case {"condition": condition}:
                encoded = msgspec.json.encode(condition).decode()
                yield from _condition_uses(encoded, "/validationCriteria")
            case {"and": parts} | {"or": parts}:
                pending += cast("list[Any]", parts)
            case {"not": part}:
                pending.append(part)
            case _:
                pass
