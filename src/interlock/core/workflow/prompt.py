"""Render the prompt of a step as the agent is given it. The text is stored with the node.

`prompt_texts` has put together what is the same in every run; `render` adds what depends on it. It
chooses the fragments whose conditions hold, fills the placeholders of the role, the prompt and the
fragments from the context, the variables of loops and the quoted notes, and joins the parts in a
fixed order: loop banners, the opening (only at the start of a run), role, prompt, fragments,
delegations, and then the requests: for context, for a loop decision, for what is checked and owed,
for assessments and for a confirmation. How to submit is said by the answer around it.

Three things keep a prompt from being rendered: a placeholder without a value (`MissingContextKeys`,
unless the workflow shows unset values), a condition without an answer, and a prompt that would be
larger than `CHARS_MAX` (both an `Impasse`).
"""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import CHECKPOINTS, StepId
from interlock.core.preferences import Preferences
from interlock.core.workflow import (
    conditions,
    contracts,
    criteria,
    delegations,
    interpret,
    positions,
)
from interlock.core.workflow.compiled_workflow import (
    CompiledDelegation,
    CompiledFragment,
    CompiledLoop,
    CompiledStep,
    CompiledWorkflow,
)
from interlock.core.workflow.conditions import UnusableValue
from interlock.core.workflow.examples import (
    assessment_example,
    capability_example,
    context_example,
    own_context_example,
    user_only_example,
)
from interlock.core.workflow.interpret import Entry, Impasse
from interlock.core.workflow.passthrough import Reference
from interlock.core.workflow.placeholders import (
    NOTES_PREFIX,
    display_value,
    fill_placeholders,
    look_up,
    placeholder_paths,
)
from interlock.core.workflow.positions import EnclosingLoop, Position

CHARS_MAX = 256 * 1024
_ITEM_CHARS_MAX = 4_000  # of an item that a banner shows; a larger one is in the values
_NOT_DONE = "(this step was not done)"


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


_Part = TypeVar("_Part", CompiledFragment, CompiledDelegation)


class _ChosenParts(msgspec.Struct, Generic[_Part], frozen=True):
    parts: tuple[_Part, ...]
    trace: tuple[Entry, ...]


class RenderedPrompt(msgspec.Struct, frozen=True):
    text: str
    trace: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()


def render(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    position: Position,
    *,
    context: Mapping[str, Json],
    preferences: Preferences,
    notes: Mapping[StepId, str],
    opening: tuple[ResolvedReference, ...] | None = None,
    is_preview: bool = False,
) -> RenderedPrompt | MissingContextKeys | Impasse:
    """Return the prompt of `step`, at `position`. `opening` is given if the run begins there.

    `notes` are those of the steps that prompts of this workflow quote, as far as they were done.
    `is_preview`: no run is there, so that nobody knows what the next step needs.
    """
    loops = positions.enclosing_loops(workflow, position)
    scope = positions.scope(workflow, position, context)
    quoted = {f"{NOTES_PREFIX}{name}": notes.get(name, _NOT_DONE) for name in workflow.quoted_steps}
    scope = {**scope, **quoted}
    is_lenient = workflow.is_lenient
    fragments = _chosen_parts(step, step.fragments, "promptFragments", scope, is_lenient=is_lenient)
    work = _chosen_parts(
        step, step.delegations, "parallelDelegations", scope, is_lenient=is_lenient
    )
    if isinstance(fragments, Impasse) or isinstance(work, Impasse):
        return fragments if isinstance(fragments, Impasse) else cast("Impasse", work)
    source_texts = (step.agent_role, step.prompt, *(part.text for part in fragments.parts))
    unset = tuple(
        dict.fromkeys(
            path
            for text in (*source_texts, *(one.goal for one in work.parts))
            for path in placeholder_paths(text)
            if look_up(scope, path) is None
        )
    )
    if unset and not workflow.shows_unset:
        return MissingContextKeys(unset)
    if impasse := _size_impasse(step, source_texts, scope):
        return impasse
    role, prompt, *fragment_texts = (fill_placeholders(text, scope) for text in source_texts)
    confirms = asks_to_confirm(workflow, step, scope, preferences)
    if isinstance(confirms, Impasse):
        return confirms
    parts = [
        *_loop_banners(workflow, step, position, context),
        *(_opening_texts(workflow, step, context, opening) if opening is not None else ()),
        *((f"Your role: {role}",) if role else ()),
        prompt,
        *fragment_texts,
        *delegations.render(work.parts, scope),
        *_context_request(
            own_context_example(workflow, step, context, is_first=opening is not None)
            if is_preview
            else context_example(workflow, step, position, context, is_first=opening is not None)
        ),
        *_decision_request(step, loops, scope),
        *_demand_texts(step, preferences),
        *_assessment_requests(step),
        *((_CONFIRMATION_REQUEST,) if confirms else ()),
    ]
    warnings = tuple(f"`{path}` is not set; the prompt says so in its place." for path in unset)
    return RenderedPrompt("\n\n".join(parts), (*fragments.trace, *work.trace), warnings)


def reminder(workflow: CompiledWorkflow) -> str:
    """Return the guidance given at the start, for whoever comes back after a break."""
    return _bullet_list(_GUIDANCE_TITLE, workflow.guidance)


def repeated_instructions(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    position: Position,
    context: Mapping[str, Json],
) -> str:
    """Return what the prompt only hints at because an earlier pass has explained it."""
    loops = positions.enclosing_loops(workflow, position)
    controlled = [enclosing for enclosing in loops if enclosing.loop.is_controlled]
    is_owed = step.contract is not None and step.contract.name == "loop_control"
    if not is_owed or not controlled or controlled[-1].iteration == 1:
        return ""
    return _decision_question(controlled[-1].loop, positions.scope(workflow, position, context))


def asks_to_confirm(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    scope: Mapping[str, Json],
    preferences: Preferences,
) -> bool | Impasse:
    """Whether the user is asked before the step is submitted: only in a guided run."""
    if isinstance(step.confirms, bool):
        return step.confirms and preferences.autonomy == "guided"
    condition = conditions.unpack(step.confirms)
    answer = conditions.evaluate(condition, scope, is_lenient=workflow.is_lenient)
    if isinstance(answer, UnusableValue):
        pointer = interpret.pointer_in(step, "requireConfirmation", answer)
        return Impasse(step.id, pointer, answer.var, answer.message)
    return answer and preferences.autonomy == "guided"


_CONFIRMATION_REQUEST = (
    "Before you submit this step, show the user the result and wait for their approval."
)


def _chosen_parts(
    step: CompiledStep,
    parts: tuple[_Part, ...],
    field: str,
    scope: Mapping[str, Json],
    *,
    is_lenient: bool,
) -> _ChosenParts[_Part] | Impasse:
    """Return the parts of the prompt whose conditions hold, and the trace of the decisions."""
    chosen: list[_Part] = []
    trace: list[Entry] = []
    for index, part in enumerate(parts):
        holds = True
        if part.when is not None:
            condition = conditions.unpack(part.when)
            answer = conditions.evaluate(condition, scope, is_lenient=is_lenient)
            if isinstance(answer, UnusableValue):
                pointer = interpret.pointer_in(step, f"{field}/{index}/when", answer)
                return Impasse(step.id, pointer, answer.var, answer.message)
            holds = answer
            reason = conditions.describe(condition)
            kind = "fragment_given" if holds else "fragment_left_out"
            name = part.id if isinstance(part, CompiledFragment) else f"delegation-{index + 1}"
            trace.append(Entry(kind, f"{step.id}/{name}", reason if holds else f"not so: {reason}"))
        if holds:
            chosen.append(part)
    return _ChosenParts(tuple(chosen), tuple(trace))


def _size_impasse(
    step: CompiledStep, source_texts: tuple[str, ...], scope: Mapping[str, Json]
) -> Impasse | None:
    """Return the impasse, if the prompt would be larger than an agent can read."""
    paths = [path for text in source_texts for path in placeholder_paths(text)]
    sizes = {path: len(display_value(look_up(scope, path), path)) for path in set(paths)}
    if sum(map(len, source_texts)) + sum(sizes[path] for path in paths) <= CHARS_MAX:
        return None
    largest = max(sizes, key=lambda path: sizes[path])
    message = f"with `{largest}` filled in, the prompt has more than {CHARS_MAX} characters"
    return Impasse(step.id, step.pointer, largest, message)


def _loop_banners(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    position: Position,
    context: Mapping[str, Json],
) -> Iterator[str]:
    shown_paths = placeholder_paths(step.prompt)
    for depth, enclosing in enumerate(positions.enclosing_loops(workflow, position)):
        loop, number = enclosing.loop, enclosing.iteration
        if loop.kind == "group":
            continue
        scope = positions.scope(workflow, position[: depth + 1], context)  # outside of this loop
        title = fill_placeholders(loop.title, scope)
        if loop.kind in ("for", "forEach"):
            value = conditions.look_up(scope, loop.items or str(loop.count))
            total = positions.planned_passes(loop, scope)
            of = f" of {total}" if total else ""
            item = value[number - 1] if isinstance(value, list) and number <= len(value) else None
            yield f"“{title}”: number {number}{of}.{_item_text(loop.item_var, item, shown_paths)}"
        else:
            ending = " There is none after it." if number == loop.passes_max else ""
            focus = " Look only at what the earlier passes left unresolved." if number > 1 else ""
            yield f"“{title}”: pass {number} of at most {loop.passes_max}.{ending}{focus}"


def _item_text(name: str, item: Json, shown_paths: tuple[str, ...]) -> str:
    """The item that a pass is about, unless the prompt shows the whole of it."""
    if item is None or name in shown_paths:
        return ""
    text = display_value(item, name)
    if len(text) > _ITEM_CHARS_MAX:
        text = f"{text[:_ITEM_CHARS_MAX]}…"
    return f" It is about: {text}"


_GUIDANCE_TITLE = "These rules apply to every step"


def _opening_texts(
    workflow: CompiledWorkflow,
    step: CompiledStep,
    context: Mapping[str, Json],
    references: tuple[ResolvedReference, ...],
) -> Iterator[str]:
    if "goal" not in placeholder_paths(step.prompt) and workflow.id != CHECKPOINTS:
        yield f"Goal: {context['goal']}"
    for title, lines in (
        (_GUIDANCE_TITLE, workflow.guidance),
        ("This must be true; tell the user if it is not", workflow.preconditions),
        ("Answer these before you begin; ask the user what you cannot find", workflow.questions),
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
        forms = "\n".join(_json(capability_example(name)) for name in workflow.capabilities)
        yield f"This workflow uses: {needed}. Check whether you have it, and submit:\n{forms}"


def _reference_line(reference: Reference, resolved: ResolvedReference | None) -> str:
    authority = "; it decides where sources differ" if reference.authoritative else ""
    state = f" ({resolved.problem})" if resolved and resolved.problem else ""
    source = reference.source if reference.is_address else f"`{reference.source}`"
    return f"{reference.title}: {source}{state}, {reference.purpose}{authority}"


def _context_request(wanted: dict[str, Json]) -> Iterator[str]:
    if wanted:
        yield f"Include this `context`: {_json(wanted)}"


def _decision_request(
    step: CompiledStep, loops: tuple[EnclosingLoop, ...], scope: Mapping[str, Json]
) -> Iterator[str]:
    """Yield the question that `loop_control` answers, where the step owes it."""
    if step.contract is None or step.contract.name != "loop_control":
        return
    controlled = [enclosing for enclosing in loops if enclosing.loop.is_controlled]
    if not controlled:
        yield contracts.instructions(step.contract)
    elif controlled[-1].iteration == 1:
        yield f"{_decision_question(controlled[-1].loop, scope)}\n{step.contract.example}"
    else:
        yield f"Decide again whether to continue: {step.contract.example}"


def _decision_question(loop: CompiledLoop, scope: Mapping[str, Json]) -> str:
    return (
        f"End with a decision, as an artifact: does “{fill_placeholders(loop.title, scope)}” need"
        " another pass? Stop if you cannot name what another pass would settle."
    )


def _demand_texts(step: CompiledStep, preferences: Preferences) -> Iterator[str]:
    if step.validation_criteria is not None:
        lines = criteria.requirements(criteria.unpack(step.validation_criteria.encode()))
        yield _bullet_list("Your submission must meet these criteria", lines)
    if step.contract is not None and step.contract.name != "loop_control":
        yield contracts.instructions(step.contract)
    if step.user_only is not None:
        yield _user_only_request(step.user_only.question, preferences)


def _assessment_requests(step: CompiledStep) -> Iterator[str]:
    for assessment in step.assessments:
        lines = (
            f"{dimension.id} ({' / '.join(dimension.levels)}): {dimension.purpose}"
            for dimension in assessment.dimensions
        )
        yield (
            _bullet_list(f"Assess `{assessment.id}` ({assessment.purpose})", tuple(lines))
            + f"\nSubmit it as an artifact: {_json(assessment_example(assessment, step))}"
        )


def _user_only_request(question: str, preferences: Preferences) -> str:
    form = _json(user_only_example(preferences))
    if preferences.autonomy == "full_auto_never_stop":
        return (
            f"Only the user can settle this: {question}\nNobody will be asked. Decide as the user"
            f" would, or skip it, and say which in an artifact: {form}"
        )
    return (
        f"Only the user can settle this: {question}\nAsk the user and wait for the answer. Hand it"
        f" in as an artifact: {form}"
    )


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _bullet_list(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join((f"{title}:", *(f"- {line}" for line in lines))) if lines else ""
