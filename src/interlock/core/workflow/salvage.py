"""Repair a document that has not the form of a workflow, so that its meaning can be checked too.

What cannot be read is left out, or replaced by a stub where something must be there. Nothing is
ever run from a repaired document: it serves to find every problem of a file in one round.
"""

from typing import Any, Literal, cast, get_args, get_origin

import msgspec

from interlock.core.canonical import escape_pointer_part
from interlock.core.workflow.definition import (
    STEPS_MAX,
    Loop,
    Parallel,
    Step,
    TemplateCall,
    Workflow,
)
from interlock.core.workflow.parsing import is_struct, matching_struct, union_options
from interlock.core.workflow.problems import Problem, ProblemRule

_STUB_TEXTS = ("unreadable", "0.0.0", "x")
_STEP_STRUCTS = (Step, Loop, TemplateCall, Parallel)
_RULE_OF_SECTION: dict[str, ProblemRule] = {
    "contracts": "contract",
    "assessments": "assessment",
    "functionDefinitions": "function",
    "extensionPoints": "binding",
    "inputs": "context",
}
"""Where a section could not be read, problems of these rules may only follow from that."""


class SalvagedWorkflow:
    """The workflow that is left of a malformed document; `workflow` is None if nothing is."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._changed_pointers: list[str] = []
        repaired = self._repair(Workflow, document, "")
        self.workflow: Workflow | None = None
        if repaired is not _UNREADABLE:
            self.workflow = msgspec.convert(repaired, Workflow)

    def is_own_problem(self, problem: Problem) -> bool:
        """Whether the problem is one of the file, and not of the repair."""
        return not any(_follows_from(problem, changed) for changed in self._changed_pointers)

    def _repair(self, expected: Any, value: Any, at: str) -> Any:
        """Return a value of the expected type, as near to `value` as possible."""
        if _fits(expected, value):
            return value
        options = union_options(expected)
        structs = [option for option in options if is_struct(option)]
        repaired: Any = _UNREADABLE
        if structs and isinstance(value, dict):
            chosen = matching_struct(structs, cast("dict[str, Any]", value))
            if chosen:
                repaired = self._repair_object(chosen, cast("dict[str, Any]", value), at)
        for option in options:
            origin, type_arguments = get_origin(option), get_args(option)
            if origin is tuple and isinstance(value, list):
                items = cast("list[Any]", value)[:STEPS_MAX]
                repaired = [
                    self._repair(type_arguments[0], item, f"{at}/{index}")
                    for index, item in enumerate(items)
                ]
            elif origin is dict and isinstance(value, dict):
                members = cast("dict[str, Any]", value)
                repaired = {
                    name: self._repair(type_arguments[1], item, f"{at}/{escape_pointer_part(name)}")
                    for name, item in members.items()
                }
        if not _fits(expected, repaired):
            self._changed_pointers.append(at)
            return _step_stub(value, at) if set(structs) & set(_STEP_STRUCTS) else _UNREADABLE
        return repaired

    def _repair_object(self, struct: type[msgspec.Struct], value: dict[str, Any], at: str) -> Any:
        tag_field = struct.__struct_config__.tag_field
        repaired: dict[str, Any] = {tag_field: value[tag_field]} if tag_field in value else {}
        for field in msgspec.structs.fields(struct):
            name = field.encode_name
            pointer = f"{at}/{escape_pointer_part(name)}"
            item = self._repair(field.type, value[name], pointer) if name in value else _UNREADABLE
            if item is _UNREADABLE and field.required:
                self._changed_pointers.append(pointer)
                item = _stub(field.type, pointer)
            if item is not _UNREADABLE:
                repaired[name] = item
        return repaired


def _follows_from(problem: Problem, changed: str) -> bool:
    """Whether the problem may be there only because something was changed at that place."""
    parent, _, name = changed.rpartition("/")
    sections = changed.split("/")
    if any(_RULE_OF_SECTION.get(section) == problem.rule for section in sections):
        return True
    if problem.rule == "unset" and "steps" in sections:
        return True  # what could not be read may have set the key
    if problem.rule == "loop" and problem.pointer.endswith("/body") and "steps" in sections:
        return name == "id" or name.isdecimal()  # it may have been the step that the loop names
    return problem.pointer == parent or f"{problem.pointer}/".startswith(f"{changed}/")


_UNREADABLE: Any = object()


def _fits(expected: Any, value: Any) -> bool:
    if value is _UNREADABLE:
        return False
    try:
        msgspec.convert(value, expected)
    except (msgspec.ValidationError, TypeError):
        return False
    return True


def _stub(expected: Any, at: str) -> Any:
    options = union_options(expected)
    literals = [get_args(option)[0] for option in options if get_origin(option) is Literal]
    candidates: tuple[Any, ...] = (
        *literals,
        *_STUB_TEXTS,
        1,
        False,
        {},
        [],
        [_step_stub(None, at)],
    )
    structs = [option for option in options if is_struct(option)]
    objects = [
        {
            field.encode_name: _stub(field.type, at)
            for field in msgspec.structs.fields(struct)
            if field.required
        }
        for struct in structs[:1]
    ]
    fitting = (item for item in (*objects, *candidates) if _fits(expected, item))
    stub = next(fitting, _UNREADABLE)
    return f"unreadable{at.replace('/', '-').lower()}"[:64] if stub == "unreadable" else stub


def _step_stub(value: Any, at: str) -> dict[str, Any]:
    """Return a step in the place of one that cannot be read, so that the others keep theirs."""
    written_id = cast("dict[str, Any]", value).get("id") if isinstance(value, dict) else None
    name = written_id if isinstance(written_id, str) else f"unreadable{at.replace('/', '-')}"
    return {"type": "standard", "id": name, "title": "…", "prompt": "…"}
