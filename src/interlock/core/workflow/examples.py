"""The example of what to submit for a step: the one that `nextCall` and every correction show.

It is made from what the compiled step demands, has a blank wherever the agent decides (`blanks`),
and is complete otherwise: with its blanks replaced it is accepted.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

import msgspec

from interlock.core.canonical import Json
from interlock.core.preferences import Autonomy, Preferences
from interlock.core.workflow import conditions, criteria, interpret, positions
from interlock.core.workflow.blanks import blanks_in, choice, with_blanks
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.criteria import (
    And,
    ConditionalRule,
    ContainsRule,
    Criterion,
    LengthRule,
    Not,
    Or,
    RegexRule,
    Rule,
    SchemaRule,
)
from interlock.core.workflow.interpret import Destination, Impasse
from interlock.core.workflow.packs import EXAMPLES, LoopControlArtifact
from interlock.core.workflow.passthrough import Assessment
from interlock.core.workflow.placeholders import (
    NOTES_PREFIX,
    fill_placeholders,
    look_up,
    placeholder_paths,
)
from interlock.core.workflow.positions import Position

NOTES_BLANK = "<write your notes>"
"""The blank for the agent's notes, before what they must be like, if anything."""


class StepExample(msgspec.Struct, frozen=True):
    output: dict[str, Json] = {}
    context: dict[str, Json] = {}


def step_example(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    position: Position,
    context: Mapping[str, Json],
    preferences: Preferences,
    *,
    observed: Mapping[str, str],
    is_first: bool,
) -> StepExample:
    """Return the example for a step. `observed`: the capabilities that are already known.

    `is_first`: no step of the run is done, so this one also asks for what no step sets.
    """
    scope = positions.scope(workflow, position, context)
    criterion = (
        criteria.unpack(step.validation_criteria.encode()) if step.validation_criteria else None
    )
    artifacts: list[Json] = [
        *_contract_examples(step, scope),
        *(assessment_example(assessment, step) for assessment in step.assessments),
        *((user_only_example(preferences),) if step.user_only else ()),
        *(
            capability_example(name)
            for name, level in workflow.capabilities.items()
            if not (observed.get(name) == "available" or (name in observed and level != "required"))
        ),
        *(artifact_examples(criterion, scope) if criterion else ()),
    ]
    output: dict[str, Json] = {}
    if not step.notes_optional or criterion:
        demands = notes_demands(criterion, scope) if criterion else ()
        output["notesMarkdown"] = notes_blank(demands)
    if artifacts:
        output["artifacts"] = artifacts
    return StepExample(
        output, context_example(workflow, step, position, context, is_first=is_first)
    )


def own_context_example(
    workflow: CompiledWorkflow, step: CompiledStep, context: Mapping[str, Json], *, is_first: bool
) -> dict[str, Json]:
    """Return the keys that the step sets (also unset ones) or mentions."""
    return {
        key.name: msgspec.json.decode(key.example)
        for key in (*step.sets, *(workflow.unset_keys if is_first else ()))
        # What is set before the first step was given at the start, for this run.
        if (key.is_always_asked and not is_first) or context.get(key.name) is None
    }


def context_example(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    position: Position,
    context: Mapping[str, Json],
    *,
    is_first: bool,
) -> dict[str, Json]:
    """Return the keys to send along: those that the step sets, and those that are needed next.

    A key that the step only speaks of is left out if it is set.
    """
    example = own_context_example(workflow, step, context, is_first=is_first)
    paths = missing_paths(workflow, position, context)
    missing = tuple(path for path in paths if path.partition(".")[0] not in example)
    if not missing:
        return example
    return {**example, **example_values(context, missing, known_values(workflow))}


def example_values(
    current: Mapping[str, Json], paths: tuple[str, ...], known: Mapping[str, Json]
) -> dict[str, Json]:
    """Return context with a blank at each path, beside the values that are there already.

    `known` has the form of each value that the workflow describes.
    """
    example: dict[str, Json] = {}
    for path in paths:
        first, *inner_names = path.split(".")
        there, form = current.get(first), known.get(first)
        if form is not None and not (inner_names and isinstance(there, dict)):
            if isinstance(there, list) and isinstance(form, list):
                form = [*there, *form]  # it may only be too short
            example[first] = form
            continue
        if not inner_names:
            example[first] = f"<{path}>"
            continue
        existing = example.get(first, current.get(first))
        inner_object: dict[str, Json] = dict(existing) if isinstance(existing, dict) else {}
        example[first] = inner_object
        for name in inner_names[:-1]:
            child = inner_object.get(name)
            inner_object[name] = dict(child) if isinstance(child, dict) else {}
            inner_object = cast("dict[str, Json]", inner_object[name])
        inner_object[inner_names[-1]] = f"<{path}>"
    return example


def known_values(workflow: CompiledWorkflow) -> dict[str, Json]:
    """Return the form of each value of the context that the workflow describes, by its key."""
    schema: dict[str, Any] = msgspec.json.decode(workflow.context_schema or "{}")
    properties: dict[str, Any] = schema.get("properties") or {}
    definitions = {"$defs": schema.get("$defs", {})}
    keys = [
        *workflow.unset_keys,
        *(key for step, _ in workflow.steps_with_loops() for key in step.sets),
    ]
    return {
        **{name: with_blanks({**definitions, **properties[name]}) for name in properties},
        **{declared.name: f"<{declared.description}>" for declared in workflow.inputs},
        **{key.name: msgspec.json.decode(key.example) for key in keys},
    }


def notes_blank(demands: tuple[str, ...]) -> str:
    return f"{NOTES_BLANK[:-1]}, {', '.join(demands)}>" if demands else NOTES_BLANK


def is_notes_blank(notes: str) -> bool:
    """Whether the notes are still the blank of an example."""
    text = notes.strip()
    return text.startswith(NOTES_BLANK[:-1]) and text.endswith(">") and "\n" not in text


def assessment_example(assessment: Assessment, step: CompiledStep) -> Json:
    """Return the form of an assessment. Levels that have a consequence are named last."""
    consequential = {
        consequence.when.any_equals_level.casefold()
        for consequence in step.consequences
        if consequence.when.for_assessment in (None, assessment.id)
    }

    def is_consequential(level: str) -> bool:
        return level.casefold() in consequential

    dimensions: dict[str, Json] = {
        dimension.id: {
            "level": choice(sorted(dimension.levels, key=is_consequential)),
            "rationale": "<why>",
        }
        for dimension in assessment.dimensions
    }
    return {"kind": "assessment", "assessmentId": assessment.id, "dimensions": dimensions}


def user_only_example(preferences: Preferences) -> Json:
    """Return the form for what the user said, or where nobody is asked, for what was decided."""
    if preferences.autonomy == "full_auto_never_stop":
        return {
            "kind": "user_only",
            "resolution": "<assumed | skipped>",
            "detail": "<what you assumed and why, or why it can be skipped>",
        }
    return {"kind": "user_only", "resolution": "answered", "detail": "<what the user said>"}


def capability_example(name: str) -> Json:
    example = EXAMPLES["capability_observation"]
    assert isinstance(example, dict), "an artifact is an object"
    return {**example, "capability": name}


BLANKS = blanks_in(
    [
        *EXAMPLES.values(),
        *(user_only_example(Preferences(autonomy)) for autonomy in get_args(Autonomy)),
    ]
)
"""The blanks in artifacts of kinds that the engine reads from any step."""


def _contract_examples(step: CompiledStep, scope: Mapping[str, Json]) -> Iterator[Json]:
    if step.contract is None or not step.contract.is_required:
        return
    example: dict[str, Json] = msgspec.json.decode(step.contract.example)
    if step.verification:
        example["command"] = fill_placeholders(step.verification, scope)
    yield example


def notes_demands(criterion: Criterion, scope: Mapping[str, Json]) -> tuple[str, ...]:
    """Return what the notes must be like, in the words of a blank."""
    return tuple(demand for rule in _rules(criterion, scope) if (demand := _notes_demand(rule)))


def artifact_examples(criterion: Criterion, scope: Mapping[str, Json]) -> Iterator[Json]:
    """Yield an artifact with blanks for each schema."""
    for rule in _rules(criterion, scope):
        if isinstance(rule, SchemaRule):
            yield with_blanks(rule.schema)


def _rules(criterion: Criterion, scope: Mapping[str, Json]) -> Iterator[Rule]:
    """Yield rules that are enough to meet the criterion; of alternatives, those of the first."""
    match criterion:
        case And(parts):
            for part in parts:
                yield from _rules(part, scope)
        case Or(parts):
            yield from _rules(parts[0], scope)
        case Not():
            pass  # an example that does not say a thing need not say so
        case ConditionalRule(condition, rule):
            if conditions.evaluate(condition, scope) is True:
                yield rule
        case _:
            yield criterion


def _notes_demand(rule: Rule) -> str:
    match rule:
        case ContainsRule(value):
            return f"with “{value}”"
        case RegexRule(pattern, flags):
            return f"matching /{pattern}/{flags}"
        case LengthRule(int(least), None):
            return f"at least {least} characters"
        case LengthRule(None, int(most)):
            return f"at most {most} characters"
        case LengthRule(least, most):
            return f"{least} to {most} characters"
        case SchemaRule():
            return ""


def missing_paths(
    workflow: CompiledWorkflow, position: Position, context: Mapping[str, Json]
) -> tuple[str, ...]:
    """Return the paths that a submission of the step at `position` would lack."""
    ways: list[LoopControlArtifact | None] = [None]
    if any(one.loop.takes_decisions for one in positions.enclosing_loops(workflow, position)):
        ways.append(LoopControlArtifact("stop"))
    found = (interpret.continue_from(workflow, position, context, way) for way in ways)
    return tuple(dict.fromkeys(path for way in found for path in _missing(workflow, way, context)))


def _missing(
    workflow: CompiledWorkflow, way: Destination | Impasse, context: Mapping[str, Json]
) -> Iterator[str]:
    if isinstance(way, Impasse):
        yield from (way.var,) if way.var else ()
    elif way.step and not workflow.shows_unset:
        scope = positions.scope(workflow, way.position, context)
        loops = positions.enclosing_loops(workflow, way.position)
        lists = {one.loop.item_var: one.loop.items for one in loops if one.loop.items}
        for text in (way.step.agent_role, way.step.prompt):
            for path in placeholder_paths(text):
                if not path.startswith(NOTES_PREFIX) and look_up(scope, path) is None:
                    yield lists.get(path.partition(".")[0], path)
