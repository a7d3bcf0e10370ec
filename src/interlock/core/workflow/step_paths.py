"""The steps of a compiled tree with their surroundings, and the tree with its steps replaced."""

from collections.abc import Callable, Iterator

import msgspec

from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledPart, CompiledStep


def replace_steps(
    parts: tuple[CompiledPart, ...], replace: Callable[[CompiledStep], CompiledStep]
) -> tuple[CompiledPart, ...]:
    """Return the tree with each step replaced."""
    return tuple(
        replace(part)
        if isinstance(part, CompiledStep)
        else msgspec.structs.replace(part, body=replace_steps(part.body, replace))
        for part in parts
    )


def located_parts(
    parts: tuple[CompiledPart, ...], loops: tuple[CompiledLoop, ...] = ()
) -> Iterator[tuple[CompiledPart, tuple[CompiledLoop, ...]]]:
    """Yield every part in the order of the definition, with the loops and groups around it."""
    for part in parts:
        yield part, loops
        if isinstance(part, CompiledLoop):
            yield from located_parts(part.body, (*loops, part))


def repeating_loops(loops: tuple[CompiledLoop, ...]) -> frozenset[str]:
    """Return the ids of the loops among them that may have several passes."""
    return frozenset(loop.id for loop in loops if loop.kind != "group")


def first_number(part: CompiledPart) -> int:
    """Return the number of the first step in a part; a large one if it has none."""
    numbers = (
        inner.number for inner, _ in located_parts((part,)) if isinstance(inner, CompiledStep)
    )
    return min(numbers, default=10**9)
