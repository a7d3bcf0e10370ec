"""Resolve calls of routines: find the routine, and put the arguments into its steps."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from interlock.core import canonical
from interlock.core.ids import WorkflowId
from interlock.core.workflow.definition import AnyStep, TemplateCall, Workflow

_ARGUMENT = re.compile(r"(?<!\{)\{([A-Za-z_][\w-]*)\}(?!\})")


def find_routine(called: str, routines: Mapping[WorkflowId, Workflow]) -> Workflow | None:
    """Return the routine that a call names, by our name for it or by WorkRail's."""
    name = called.removeprefix("wr.templates.routine.")
    names = (called, f"wr.routine-{name}", f"routine-{name}") if name != called else (called,)
    ids = (WorkflowId(name) for name in names)
    return next((routines[routine_id] for routine_id in ids if routine_id in routines), None)


class CallArguments(msgspec.Struct, frozen=True):
    given: dict[str, str]
    unknown: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def arguments_of(step: TemplateCall, routine: Workflow) -> CallArguments:
    given = {name: _argument_text(value) for name, value in step.template_call.args.items()}
    # A foreign routine does not declare its inputs; its steps show them.
    used = set(_ARGUMENT.findall(msgspec.json.encode(routine.steps).decode()))
    unknown = given.keys() - routine.inputs.keys() if routine.inputs else set[str]()
    unused = given.keys() - used - unknown
    missing = [name for name, declared in routine.inputs.items() if declared.required]
    for name, declared in routine.inputs.items():
        if name not in given and (declared.default is not None or not declared.required):
            given[name] = "" if declared.default is None else _argument_text(declared.default)
    missing = [name for name in missing if name not in given]
    return CallArguments(given, tuple(sorted(unknown)), tuple(sorted(unused)), tuple(missing))


def expanded_size(routine: Workflow, arguments: Mapping[str, str]) -> int:
    """Return the size of the routine's steps with the arguments put in."""
    text = msgspec.json.encode(routine.steps).decode()
    return len(text) + sum(len(arguments.get(name, "")) for name in _ARGUMENT.findall(text))


def with_arguments(step: AnyStep, arguments: Mapping[str, str]) -> AnyStep | None:
    """Return a routine's step with `{name}` replaced in every text; None if it is then invalid."""
    if not arguments:
        return step
    try:
        return msgspec.convert(_substitute(msgspec.to_builtins(step), arguments), type(step))
    except msgspec.ValidationError:
        return None


def _substitute(value: Any, arguments: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _ARGUMENT.sub(lambda match: arguments.get(match[1], match[0]), value)
        case list() | tuple():
            return [_substitute(item, arguments) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {name: _substitute(item, arguments) for name, item in items}
        case _:
            return value


def _argument_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical.encode(value).decode()
