"""A workflow as a whole: what an agent will see step by step, and its shape as a drawing."""

from collections.abc import Iterator, Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.preferences import Preferences
from interlock.core.workflow import conditions
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledLoop, CompiledStep, CompiledWorkflow, Part
from interlock.core.workflow.interpret import Frame, Position
from interlock.core.workflow.prompt import Rendered


class Preview(msgspec.Struct, frozen=True, rename="camel"):
    """A step as an agent would see it on its first pass."""

    step: str
    title: str
    number: int
    notes: tuple[str, ...]
    """When it is shown, and what happens with it."""
    prompt: str


def preview(
    workflow: CompiledWorkflow, context: Mapping[str, Json], preferences: Preferences
) -> Iterator[Preview]:
    """Every step in the order of the definition, whether this context would lead there or not."""
    shown = msgspec.structs.replace(workflow, shows_unset=True)
    for step, loops, position in _places(workflow.steps):
        rendered = prompts.render(
            shown,
            position,
            context=context,
            preferences=preferences,
            opening=() if step.number == 1 else None,
        )
        text = rendered.text if isinstance(rendered, Rendered) else f"(cannot be shown: {rendered})"
        notes = (*(_repeats(loop) for loop in loops), *_notes(step))
        yield Preview(step.id, step.title, step.number, notes, text)


def draw(workflow: CompiledWorkflow) -> list[str]:
    """The shape of a workflow with characters, for a terminal."""
    return [f"{workflow.id} {workflow.version}: {workflow.name}", *_drawn(workflow.steps, "")]


def mermaid(workflow: CompiledWorkflow) -> str:
    """The same as a flowchart that Markdown viewers draw."""
    lines = ["flowchart TD", "  start((start))"]
    last = _chart(workflow.steps, ["start"], lines, "")
    lines += ["  done((done))", *(f"  {way} --> done" for way in last)]
    return "\n".join(lines)


def _places(
    parts: tuple[Part, ...], around: Position = (), loops: tuple[CompiledLoop, ...] = ()
) -> Iterator[tuple[CompiledStep, tuple[CompiledLoop, ...], Position]]:
    for index, part in enumerate(parts):
        if isinstance(part, CompiledStep):
            yield part, loops, (*around, Frame(index))
        else:
            yield from _places(part.body, (*around, Frame(index, 1)), (*loops, part))


def _repeats(loop: CompiledLoop) -> str:
    how = {
        "for": f"{loop.count} times",
        "forEach": f"for each of `{loop.items}`",
        "while": "as long as you decide to go on",
        "until": "until you decide to stop",
    }[loop.kind]
    if loop.condition is not None:
        how = f"{loop.kind} {conditions.words(conditions.unpack(loop.condition))}"
    only = f", only when {_when(loop.run_condition)}" if loop.run_condition else ""
    return f"in loop {loop.id}: {how}, at most {loop.passes_max} passes{only}"


def _notes(step: CompiledStep) -> Iterator[str]:
    if step.run_condition:
        yield f"only when {_when(step.run_condition)}"
    for fragment in step.fragments:
        if fragment.when:
            yield f"fragment {fragment.id} only when {_when(fragment.when)}"
    if step.confirms:
        when = f" when {_when(step.confirms)}" if isinstance(step.confirms, str) else ""
        yield f"the user confirms it{when} (guided runs)"
    if step.approval:
        when = f" when {_when(step.approval.condition)}" if step.approval.condition else ""
        yield f"waits for an approval{when}: {step.approval.question}"
    for consequence in step.consequences:
        yield f"must be done again when a level is {consequence.when.any_equals_level}"
    for injected in step.injected:
        yield f"{injected.part} brought by {injected.by}"


def _when(condition: str) -> str:
    return conditions.words(conditions.unpack(condition))


def _drawn(parts: tuple[Part, ...], margin: str) -> Iterator[str]:
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        edge, below = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        if isinstance(part, CompiledLoop):
            yield f"{margin}{edge}↻ {part.title} [{part.id}] ({_repeats(part).partition(': ')[2]})"
            yield from _drawn(part.body, margin + below)
            continue
        marks = [f"only when {_when(part.run_condition)}"] if part.run_condition else []
        marks += [f"hands in {part.contract.name}"] if part.contract else []
        marks += [f"assesses {found.id}" for found in part.assessments]
        marks += ["asks the user"] if part.user_only or part.confirms else []
        marks += ["waits for approval"] if part.approval else []
        said = f" ({'; '.join(marks)})" if marks else ""
        yield f"{margin}{edge}{part.number}. {part.title} [{part.id}]{said}"


def _chart(parts: tuple[Part, ...], ways: list[str], lines: list[str], margin: str) -> list[str]:
    """Add `parts`; `ways` lead to the first, and what is returned leads on from the last."""
    for part in parts:
        name = part.id.replace(".", "_").replace("-", "_")
        label = _label(part.title)
        when = f"|{_label(_when(part.run_condition))}|" if part.run_condition else ""
        if isinstance(part, CompiledLoop):
            lines.append(f'{margin}  subgraph {name}["{label}, at most {part.passes_max}"]')
            first = len(lines)
            inner = _chart(part.body, [], lines, margin + "  ")
            entry = lines[first].strip().partition("[")[0].partition("{")[0]
            lines.append(f"{margin}  end")
            lines += [f"{margin}  {way} -->{when} {entry}" for way in ways]
            lines += [f"{margin}  {way} -. again .-> {entry}" for way in inner]
        else:
            shape = f'{{{{"{label}"}}}}' if part.approval else f'["{label}"]'
            lines.append(f"{margin}  {name}{shape}")
            lines += [f"{margin}  {way} -->{when} {name}" for way in ways]
            inner = [name]
        # What may be skipped leaves the ways before it open.
        ways = [*inner, *ways] if part.run_condition else inner
    return ways


def _label(text: str) -> str:
    return text.replace('"', "'").replace("|", "/").replace("\n", " ")[:80]
