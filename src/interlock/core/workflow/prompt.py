"""Render the prompt of a step as the agent is given it. The text is stored with the node.

`prompt_texts` has put together what is the same in every run; `render` adds what depends on it. It
chooses the fragments whose conditions hold, fills the placeholders of the role, the prompt and the
fragments from the context and the variables of loops, and joins the parts in a fixed order: loop
banners, the opening (only at the start of a run), role, prompt, requests for a loop decision, for
what is checked and owed, for assessments and for a confirmation, notes, and fragments last. Three
things keep a prompt from being rendered: a placeholder without a value (`MissingContextKeys`,
unless the workflow shows unset values), a condition without an answer, and a prompt that would be
larger than `CHARS_MAX` (both an `Impasse`).
"""

from collections.abc import Iterator, Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.preferences import Preferences
from interlock.core.workflow import conditions, contracts, criteria, interpret, positions
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.conditions import UnusableValue
from interlock.core.workflow.interpret import Entry, Impasse
from interlock.core.workflow.passthrough import Assessment, Reference
from interlock.core.workflow.placeholders import PLACEHOLDER, placeholder_paths
from interlock.core.workflow.positions import EnclosingLoop, Position

CHARS_MAX = 256 * 1024
_NOTES_AT_FIRST = """\
When you have done this step, write notes for it: what you did, found and decided, and what is \
still open. The notes are kept, and are what you (or another agent) will be shown when the \
conversation is lost or shortened, so write what you would want to read then. Each step has its \
own notes; do not repeat earlier ones."""
_NOTES_LATER = "Finish with notes for this step: what you did, found and decided, and what is open."


class MissingContextKeys(msgspec.Struct, frozen=True):
    """The context keys that the prompt refers to and nobody has set."""

    keys: tuple[str, ...]


class ResolvedReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A reference as it was when the run began."""

    id: str
    digest: str | None = None
    """`sha256:…` of its content; None for an address, which is never fetched."""
    problem: str = ""
    """The reason why it has no digest."""


class RenderedPrompt(msgspec.Struct, frozen=True):
    text: str
    confirms: bool = False
    """Whether it asks the agent to get the user's confirmation."""
    trace: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()


def render(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    position: Position,
    *,
    context: Mapping[str, Json],
    preferences: Preferences,
    opening: tuple[ResolvedReference, ...] | None = None,
) -> RenderedPrompt | MissingContextKeys | Impasse:
    """Return the prompt of `step`, at `position`. `opening` is given if the run begins there."""
    loops = positions.enclosing_loops(workflow, position)
    scope = positions.scope(workflow, position, context)
    selection = _chosen_fragments(step, scope)
    if isinstance(selection, Impasse):
        return selection
    fragments, trace = selection
    source_texts = (step.agent_role, step.prompt, *fragments)
    unset = tuple(
        dict.fromkeys(
            path
            for text in source_texts
            for path in placeholder_paths(text)
            if conditions.look_up(scope, path) is None
        )
    )
    if unset and not workflow.shows_unset:
        return MissingContextKeys(unset)
    if impasse := _size_impasse(step, source_texts, scope):
        return impasse
    role, prompt, *fragment_texts = (_fill_placeholders(text, scope) for text in source_texts)
    confirms = asks_to_confirm(step, scope, preferences)
    if isinstance(confirms, Impasse):
        return confirms
    parts = [
        *_loop_banners(workflow, position, context),
        *(_opening_texts(workflow, step, context, opening) if opening is not None else ()),
        *((f"Your role: {role}",) if role else ()),
        prompt,
        *_decision_request(step, loops),
        *_demand_texts(step, preferences),
        *_assessment_requests(step),
        *((_CONFIRMATION_REQUEST,) if confirms else ()),
        *(() if step.notes_optional else (_NOTES_LATER if opening is None else _NOTES_AT_FIRST,)),
        *fragment_texts,
    ]
    warnings = tuple(f"`{path}` is not set; the prompt says so in its place." for path in unset)
    return RenderedPrompt("\n\n".join(parts), confirms, trace, warnings)


def reminder(workflow: CompiledWorkflow) -> str:
    """Return the guidance given at the start, for whoever comes back after a break."""
    return _bullet_list("This holds throughout the workflow", workflow.guidance)


def asks_to_confirm(
    step: CompiledStep, scope: Mapping[str, Json], preferences: Preferences
) -> bool | Impasse:
    """Whether the user is asked before the step is handed in: only where a run is guided."""
    if isinstance(step.confirms, bool):
        return step.confirms and preferences.autonomy == "guided"
    answer = conditions.evaluate(conditions.unpack(step.confirms), scope)
    if isinstance(answer, UnusableValue):
        pointer = interpret.pointer_in(step, "requireConfirmation", answer)
        return Impasse(step.id, pointer, answer.var, answer.message)
    return answer and preferences.autonomy == "guided"


def confirms_at(
    workflow: CompiledWorkflow,
    position: Position,
    context: Mapping[str, Json],
    preferences: Preferences,
) -> bool:
    """Whether the user is asked at `position`, where that could be decided before."""
    step = positions.step_at(workflow, position)
    scope = positions.scope(workflow, position, context)
    return step is not None and asks_to_confirm(step, scope, preferences) is True


_CONFIRMATION_REQUEST = (
    "Before you hand this step in, show the user what came of it and wait for a yes."
)


def _chosen_fragments(
    step: CompiledStep, scope: Mapping[str, Json]
) -> tuple[tuple[str, ...], tuple[Entry, ...]] | Impasse:
    """Return the texts of the fragments whose conditions hold, and the trace of the decisions."""
    texts: list[str] = []
    trace: list[Entry] = []
    for index, fragment in enumerate(step.fragments):
        holds = True
        if fragment.when is not None:
            condition = conditions.unpack(fragment.when)
            answer = conditions.evaluate(condition, scope)
            if isinstance(answer, UnusableValue):
                pointer = interpret.pointer_in(step, f"promptFragments/{index}/when", answer)
                return Impasse(step.id, pointer, answer.var, answer.message)
            holds = answer
            reason = conditions.describe(condition)
            kind = "fragment_given" if holds else "fragment_left_out"
            trace.append(
                Entry(kind, f"{step.id}/{fragment.id}", reason if holds else f"not so: {reason}")
            )
        if holds:
            texts.append(fragment.text)
    return tuple(texts), tuple(trace)


def _size_impasse(
    step: CompiledStep, source_texts: tuple[str, ...], scope: Mapping[str, Json]
) -> Impasse | None:
    """Return the impasse, if the prompt would be larger than an agent can read."""
    paths = [path for text in source_texts for path in placeholder_paths(text)]
    sizes = {
        path: len(_display_value(conditions.look_up(scope, path), path)) for path in set(paths)
    }
    if sum(map(len, source_texts)) + sum(sizes[path] for path in paths) <= CHARS_MAX:
        return None
    largest = max(sizes, key=lambda path: sizes[path])
    message = f"with `{largest}` filled in, the prompt has more than {CHARS_MAX} characters"
    return Impasse(step.id, step.pointer, largest, message)


def _fill_placeholders(text: str, scope: Mapping[str, Json]) -> str:
    return PLACEHOLDER.sub(
        lambda match: _display_value(conditions.look_up(scope, match[1]), match[1]), text
    )


def _display_value(value: Json, path: str) -> str:
    if value is None:
        return f"(not set: {path})"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _loop_banners(
    workflow: CompiledWorkflow, position: Position, context: Mapping[str, Json]
) -> Iterator[str]:
    for depth, enclosing in enumerate(positions.enclosing_loops(workflow, position)):
        if enclosing.loop.kind == "group":
            continue
        scope = positions.scope(workflow, position[: depth + 1], context)  # outside of this loop
        loop, number = enclosing.loop, enclosing.iteration
        if loop.kind in ("for", "forEach"):
            name = loop.items if loop.kind == "forEach" else str(loop.count)
            value = conditions.look_up(scope, name)
            total = len(value) if isinstance(value, list) else value or loop.count
            yield f"“{loop.title}”: number {number} of {total}."
        elif number == 1:
            yield f"This is the first pass of “{loop.title}”, of at most {loop.passes_max}."
        else:
            ending = " There is none after it." if number == loop.passes_max else ""
            yield (
                f"This is pass {number} of at most {loop.passes_max} of “{loop.title}”.{ending}"
                " Look only at what the passes before have left unresolved."
            )


def _opening_texts(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    context: Mapping[str, Json],
    references: tuple[ResolvedReference, ...],
) -> Iterator[str]:
    if "goal" not in placeholder_paths(step.prompt):
        yield f"Goal: {context['goal']}"
    for title, lines in (
        ("This holds throughout the workflow", workflow.guidance),
        (
            "It takes for granted; say so if something of this is not the case",
            workflow.preconditions,
        ),
        ("Find out before you begin; ask the user what you cannot find", workflow.questions),
    ):
        if lines:
            yield _bullet_list(title, lines)
    if workflow.references:
        resolved = {reference.id: reference for reference in references}
        lines = tuple(
            _reference_line(reference, resolved.get(reference.id))
            for reference in workflow.references
        )
        yield _bullet_list("Read these where they matter", lines)
    if workflow.capabilities:
        needed = ", ".join(f"{name} ({level})" for name, level in workflow.capabilities.items())
        yield (
            f"This workflow uses: {needed}. Find out whether you have it and hand in for each an"
            ' artifact: {"kind": "capability_observation", "capability": "…", "status": "available"'
            ' or "unavailable", "evidence": "…"}'
        )


def _reference_line(reference: Reference, resolved: ResolvedReference | None) -> str:
    authority = "; it decides where sources differ" if reference.authoritative else ""
    state = f" ({resolved.problem})" if resolved and resolved.problem else ""
    source = reference.source if reference.is_address else f"`{reference.source}`"
    return f"{reference.title}: {source}{state}, {reference.purpose}{authority}"


def _decision_request(step: CompiledStep, loops: tuple[EnclosingLoop, ...]) -> Iterator[str]:
    """Yield the question that `loop_control` answers, where the step owes it."""
    if step.contract is None or step.contract.name != "loop_control":
        return
    controlled = [enclosing.loop for enclosing in loops if enclosing.loop.is_controlled]
    if controlled:
        yield (
            f"End with a decision: does “{controlled[-1].title}” need another pass? Stop if you"
            " cannot say what it would settle."
        )


def _demand_texts(step: CompiledStep, preferences: Preferences) -> Iterator[str]:
    if step.validation_criteria is not None:
        lines = criteria.requirements(criteria.unpack(step.validation_criteria.encode()))
        yield _bullet_list("What you hand in is checked", lines)
    if step.contract is not None:
        yield contracts.instructions(step.contract)
    if step.user_only is not None:
        yield _user_only_request(step.user_only.question, preferences)


def _assessment_requests(step: CompiledStep) -> Iterator[str]:
    for assessment in step.assessments:
        lines = (
            f"{dimension.id} ({' / '.join(dimension.levels)}): {dimension.purpose}"
            for dimension in assessment.dimensions
        )
        example = msgspec.json.encode(assessment_example(assessment, step)).decode()
        yield (
            _bullet_list(f"Assess `{assessment.id}` ({assessment.purpose})", tuple(lines))
            + f"\nHand it in as an artifact: {example}"
        )


def assessment_example(assessment: Assessment, step: CompiledStep) -> dict[str, Json]:
    """Return an example that is accepted, with levels without consequences where possible."""
    dimensions: dict[str, Json] = {}
    for dimension in assessment.dimensions:
        consequential_levels = {
            consequence.when.any_equals_level.casefold()
            for consequence in step.consequences
            if consequence.when.for_assessment in (None, assessment.id)
        }
        harmless_levels = [
            level for level in dimension.levels if level.casefold() not in consequential_levels
        ]
        level = harmless_levels[-1] if harmless_levels else dimension.levels[-1]
        dimensions[dimension.id] = {"level": level, "rationale": "<why>"}
    return {"kind": "assessment", "assessmentId": assessment.id, "dimensions": dimensions}


def _user_only_request(question: str, preferences: Preferences) -> str:
    if preferences.autonomy == "full_auto_never_stop":
        return (
            f"Only the user can settle this: {question}\nNobody will be asked. Decide as the user"
            " would, or skip it, and say which in an artifact: "
            '{"kind": "user_only", "resolution": "assumed" or "skipped", "detail": "…"}'
        )
    return (
        f"Only the user can settle this: {question}\nAsk the user and wait for the answer. Hand it"
        ' in as an artifact: {"kind": "user_only", "resolution": "answered", "detail": "…"}'
    )


def _bullet_list(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join((f"{title}:", *(f"- {line}" for line in lines))) if lines else ""
