"""Render delegations: each with its values, as the agent who takes the work needs them."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow.compiled_workflow import CompiledDelegation
from interlock.core.workflow.placeholders import (
    PLACEHOLDER,
    fill_placeholders,
    look_up,
    placeholder_paths,
)


def render(delegations: Sequence[CompiledDelegation], scope: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the texts of the delegations that are to be done: their conditions hold."""
    return tuple(
        "\n".join(_lines(delegation, number, scope))
        for number, delegation in enumerate(delegations, start=1)
    )


def source_texts(delegation: CompiledDelegation) -> tuple[str, ...]:
    """Return the texts that a run fills in."""
    return (delegation.goal, *delegation.context.values())


def _lines(delegation: CompiledDelegation, number: int, scope: Mapping[str, Json]) -> Iterator[str]:
    goal = fill_placeholders(delegation.goal, scope)
    values = {
        name: _resolve_value(msgspec.json.decode(content), scope)
        for name, content in delegation.context.items()
    }
    known_values: dict[str, Json] = {
        name: value for name, value in values.items() if value is not None
    }
    yield f"{number}. {goal}"
    if delegation.workflow_id:
        call: dict[str, Json] = {"workflowId": delegation.workflow_id, "goal": goal}
        if known_values:
            call["context"] = known_values
        yield f"   start_workflow {_json(call)}"
    else:
        yield from (f"   {name}: {_text(value)}" for name, value in known_values.items())
    for name in values.keys() - known_values.keys():
        paths = ", ".join(f"`{path}`" for path in placeholder_paths(delegation.context[name]))
        yield f"   not handed over, because {paths} is not set: {name}"
    if delegation.model_tier:
        yield f"   model: {delegation.model_tier}"
    if delegation.allowed_tools:
        yield f"   tools: {', '.join(delegation.allowed_tools)}"
    if delegation.result_key:
        yield f"   Send its result as `{delegation.result_key}` in your context."


def _resolve_value(value: Json, scope: Mapping[str, Json]) -> Json:
    """Return a value with its placeholders replaced; one that stands alone keeps its type."""
    match value:
        case str() if match := PLACEHOLDER.fullmatch(value):
            return look_up(scope, match[1])
        case str():
            return fill_placeholders(value, scope)
        case list():
            return [_resolve_value(item, scope) for item in value]
        case dict():
            return {name: _resolve_value(item, scope) for name, item in value.items()}
        case _:
            return value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
