"""Calls of routines: which routine is meant, and its steps with the arguments put in."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from interlock.core import canonical
from interlock.core.ids import WorkflowId
from interlock.core.workflow.definition import AnyStep, TemplateCall, Workflow

_ARGUMENT = re.compile(r"(?<!\{)\{([A-Za-z_][\w-]*)\}(?!\})")


def find_routine(called: str, routines: Mapping[WorkflowId, Workflow]) -> Workflow | None:
    """The routine that a call means, under our name for it or under WorkRail's."""
    name = called.removeprefix("wr.templates.routine.")
    names = (called, f"wr.routine-{name}", f"routine-{name}") if name != called else (called,)
    known = (WorkflowId(found) for found in names)
    return next((routines[found] for found in known if found in routines), None)


class CallArguments(msgspec.Struct, frozen=True):
    given: dict[str, str]
    unknown: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def arguments_of(step: TemplateCall, routine: Workflow) -> CallArguments:
    given = {name: _argument_text(value) for name, value in step.template_call.args.items()}
    # A routine of other origin does not say what it takes; its steps do.
    spoken = set(_ARGUMENT.findall(msgspec.json.encode(routine.steps).decode()))
    unknown = given.keys() - routine.inputs.keys() if routine.inputs else set[str]()
    unused = given.keys() - spoken - unknown
    missing = [name for name, wanted in routine.inputs.items() if wanted.required]
    for name, wanted in routine.inputs.items():
        if name not in given and (wanted.default is not None or not wanted.required):
            given[name] = "" if wanted.default is None else _argument_text(wanted.default)
    missing = [name for name in missing if name not in given]
    return CallArguments(given, tuple(sorted(unknown)), tuple(sorted(unused)), tuple(missing))


def expanded_size(routine: Workflow, given: Mapping[str, str]) -> int:
    """How many bytes the routine's steps have once the arguments are in."""
    text = msgspec.json.encode(routine.steps).decode()
    return len(text) + sum(len(given.get(name, "")) for name in _ARGUMENT.findall(text))


def with_arguments(step: AnyStep, given: Mapping[str, str]) -> AnyStep | None:
    """A routine's step with `{name}` replaced in every text; None if it is no step any more."""
    if not given:
        return step
    try:
        return msgspec.convert(_substitute(msgspec.to_builtins(step), given), type(step))
    except msgspec.ValidationError:
        return None


def _substitute(value: Any, given: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _ARGUMENT.sub(lambda found: given.get(found[1], found[0]), value)
        case list() | tuple():
            return [_substitute(item, given) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {name: _substitute(item, given) for name, item in items}
        case _:
            return value


def _argument_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical.encode(value).decode()
