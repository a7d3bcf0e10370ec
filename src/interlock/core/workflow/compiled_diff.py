"""Compare two compiled workflows by what they mean, not by how their files are written."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Literal

import msgspec

from interlock.core.workflow import step_paths
from interlock.core.workflow.compiled_workflow import CompiledPart, CompiledWorkflow

_PLACE_FIELDS = ("number", "pointer", "isElsewhere", "injected", "body", "type")
_STEP_FIELDS = ("steps", "stepCount", "compilerVersion")


class CompiledDifference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One difference. `before` and `after` are the values of a field, as JSON."""

    kind: Literal["added", "removed", "moved", "changed"]
    part: str
    """The id of a step or loop; empty for the workflow itself."""
    field: str = ""
    before: Any = None
    after: Any = None


def differences(old: CompiledWorkflow, new: CompiledWorkflow) -> tuple[CompiledDifference, ...]:
    old_parts, new_parts = _parts_by_id(old), _parts_by_id(new)
    return (
        *_changed_fields("", _fields(old, _STEP_FIELDS), _fields(new, _STEP_FIELDS)),
        *(CompiledDifference("removed", name) for name in old_parts if name not in new_parts),
        *(CompiledDifference("added", name) for name in new_parts if name not in old_parts),
        *(CompiledDifference("moved", name) for name in _find_moved(old_parts, new_parts)),
        *(
            difference
            for name, (part, _) in old_parts.items()
            if name in new_parts
            for difference in _changed_fields(
                name, _fields(part, _PLACE_FIELDS), _fields(new_parts[name][0], _PLACE_FIELDS)
            )
        ),
    )


_PartsById = dict[str, tuple[CompiledPart, tuple[str, ...]]]


def _parts_by_id(workflow: CompiledWorkflow) -> _PartsById:
    """Return the parts, each with the ids of the loops around it."""
    return {
        part.id: (part, tuple(loop.id for loop in loops))
        for part, loops in step_paths.located_parts(workflow.steps)
    }


def _find_moved(old_parts: _PartsById, new_parts: _PartsById) -> Iterator[str]:
    old_order = [name for name in old_parts if name in new_parts]
    new_order = [name for name in new_parts if name in old_parts]
    matcher = SequenceMatcher(None, old_order, new_order, autojunk=False)
    in_place = {
        name
        for block in matcher.get_matching_blocks()
        for name in old_order[block.a : block.a + block.size]
    }
    for name in old_order:
        if name not in in_place or old_parts[name][1] != new_parts[name][1]:
            yield name


def _fields(value: msgspec.Struct, ignored: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(value)
    return {name: field for name, field in fields.items() if name not in ignored}


def _changed_fields(
    part: str, old: dict[str, Any], new: dict[str, Any]
) -> Iterator[CompiledDifference]:
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield CompiledDifference("changed", part, name, old.get(name), new.get(name))
