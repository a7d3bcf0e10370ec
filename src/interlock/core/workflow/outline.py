"""A workflow as a whole: previews of its steps as an agent sees them, and drawings of its shape."""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from interlock.core.canonical import Json
from interlock.core.counting import pluralise
from interlock.core.preferences import Preferences
from interlock.core.workflow import conditions
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled_workflow import (
    CompiledLoop,
    CompiledPart,
    CompiledStep,
    CompiledWorkflow,
)
from interlock.core.workflow.positions import Frame, Position
from interlock.core.workflow.prompt import RenderedPrompt


class Preview(msgspec.Struct, frozen=True, rename="camel"):
    """A step as an agent would see it on its first pass."""

    step: str
    title: str
    number: int
    notes: tuple[str, ...]
    """The conditions under which it is shown, and its consequences."""
    prompt: str


class StepMark(msgspec.Struct, frozen=True):
    """A property of a step that its title does not show."""

    kind: Literal[
        "condition",
        "fragment",
        "confirmation",
        "approval",
        "consequence",
        "injected",
        "contract",
        "assessment",
        "user",
        "reading",
    ]
    words: str


class OutlinePiece(msgspec.Struct, frozen=True):
    """A step, or a loop or group with the pieces in it."""

    kind: Literal["step", "loop", "group"]
    id: str
    title: str
    number: int
    """The number of a step, counted from 1; 0 for a loop or group."""
    how: str
    """The number of passes of a loop or group, and its condition."""
    marks: tuple[StepMark, ...]
    body: "tuple[OutlinePiece, ...]"
    pointer: str


def preview(
    workflow: CompiledWorkflow, context: Mapping[str, Json], preferences: Preferences
) -> Iterator[Preview]:
    """Yield every step in the order of the definition, whether this context leads there or not."""
    showing_unset = msgspec.structs.replace(workflow, shows_unset=True)
    given = {one.name: f"<{one.description or one.name}>" for one in workflow.inputs}
    context = {**given, **workflow.input_defaults(), **context}
    for step, loops, position in _steps_with_positions(workflow.steps):
        rendered = prompts.render(
            showing_unset,
            step,
            position,
            context=context,
            preferences=preferences,
            notes={name: f"(the notes of `{name}`)" for name in workflow.quoted_steps},
            opening=() if step.number == 1 else None,
            is_preview=True,
        )
        text = (
            rendered.text
            if isinstance(rendered, RenderedPrompt)
            else f"(cannot be shown: {rendered})"
        )
        notes = (*(_loop_note(loop) for loop in loops), *(mark.words for mark in _marks(step)))
        yield Preview(step.id, step.title, step.number, notes, text)


def pieces(workflow: CompiledWorkflow) -> tuple[OutlinePiece, ...]:
    """Return the shape of a workflow as data, for a page."""
    return tuple(_pieces(workflow.steps))


def draw(workflow: CompiledWorkflow) -> list[str]:
    """Return the shape of a workflow as lines of text, for a terminal."""
    return [f"{workflow.id} {workflow.version}: {workflow.name}", *_tree_lines(workflow.steps, "")]


def mermaid(workflow: CompiledWorkflow) -> str:
    """Return the shape of a workflow as a flowchart that Markdown viewers draw."""
    chart = _MermaidChart()
    first, last = chart.add(workflow.steps, "  ")
    lines = ["flowchart TD", "  begin((start))", "  finish((done))", *chart.lines]
    lines += [f"  begin -->{when} {name}" for name, when in first]
    lines += [f"  {name} --> finish" for name in last]
    return "\n".join(lines)


def _steps_with_positions(
    parts: tuple[CompiledPart, ...], enclosing: Position = (), loops: tuple[CompiledLoop, ...] = ()
) -> Iterator[tuple[CompiledStep, tuple[CompiledLoop, ...], Position]]:
    for index, part in enumerate(parts):
        if isinstance(part, CompiledStep):
            yield part, loops, (*enclosing, Frame(index))
        else:
            yield from _steps_with_positions(
                part.body, (*enclosing, Frame(index, 1)), (*loops, part)
            )


def _loop_note(loop: CompiledLoop) -> str:
    return (
        _describe_repetition(loop)
        if loop.kind == "group"
        else f"in loop {loop.id}: {_describe_repetition(loop)}"
    )


def _describe_repetition(loop: CompiledLoop, decider: str = "you decide") -> str:
    if loop.kind == "group":
        assert loop.run_condition is not None, "a group is made for its condition"
        return f"only when {_describe_condition(loop.run_condition)}"
    repetition = {
        "for": "once" if loop.count == 1 else f"{loop.count} times",
        "forEach": f"for each of `{loop.items}`",
        "while": f"as long as {decider} to go on",
        "until": f"until {decider} to stop",
    }[loop.kind]
    if loop.condition is not None:
        repetition = f"{loop.kind} {conditions.describe(conditions.unpack(loop.condition))}"
    condition = (
        f", only when {_describe_condition(loop.run_condition)}" if loop.run_condition else ""
    )
    return f"{repetition}, at most {pluralise(loop.passes_max, 'pass')}{condition}"


def _marks(step: CompiledStep) -> Iterator[StepMark]:
    if step.run_condition:
        yield StepMark("condition", f"only when {_describe_condition(step.run_condition)}")
    if step.read_only:
        yield StepMark("reading", "only reads")
    for fragment in step.fragments:
        if fragment.when:
            words = f"fragment {fragment.id} only when {_describe_condition(fragment.when)}"
            yield StepMark("fragment", words)
    if step.confirms:
        when = (
            f" when {_describe_condition(step.confirms)}" if isinstance(step.confirms, str) else ""
        )
        yield StepMark("confirmation", f"the user confirms it{when} (guided runs)")
    if step.approval:
        when = (
            f" when {_describe_condition(step.approval.condition)}"
            if step.approval.condition
            else ""
        )
        yield StepMark("approval", f"waits for an approval{when}: {step.approval.question}")
    for consequence in step.consequences:
        level = consequence.when.any_equals_level
        yield StepMark("consequence", f"must be done again when a level is {level}")
    for injected in step.injected:
        yield StepMark("injected", f"{injected.part} brought by {injected.by}")


def _owed_marks(step: CompiledStep) -> Iterator[StepMark]:
    """Yield the submission besides notes; a preview omits it, because the prompt states it."""
    if step.contract:
        verb = "submits" if step.contract.is_required else "may submit"
        yield StepMark("contract", f"{verb} {step.contract.name}")
    for assessment in step.assessments:
        yield StepMark("assessment", f"assesses {assessment.id}")
    if step.user_only:
        yield StepMark("user", f"needs the user: {step.user_only.question}")


def _pieces(parts: tuple[CompiledPart, ...]) -> Iterator[OutlinePiece]:
    for part in parts:
        if isinstance(part, CompiledStep):
            marks = (*_marks(part), *_owed_marks(part))
            yield OutlinePiece(
                "step", part.id, part.title, part.number, "", marks, (), part.pointer
            )
        else:
            kind = "group" if part.kind == "group" else "loop"
            body = tuple(_pieces(part.body))
            repetition = _describe_repetition(part, "the agent decides")
            yield OutlinePiece(kind, part.id, part.title, 0, repetition, (), body, part.pointer)


def _describe_condition(condition: str) -> str:
    return conditions.describe(conditions.unpack(condition))


def _tree_lines(parts: tuple[CompiledPart, ...], margin: str) -> Iterator[str]:
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        edge, below = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        if isinstance(part, CompiledLoop) and part.kind == "group":
            yield f"{margin}{edge}◇ {_describe_repetition(part)}"
            yield from _tree_lines(part.body, margin + below)
            continue
        if isinstance(part, CompiledLoop):
            yield f"{margin}{edge}↻ {part.title} [{part.id}] ({_describe_repetition(part)})"
            yield from _tree_lines(part.body, margin + below)
            continue
        marks = (
            [f"only when {_describe_condition(part.run_condition)}"] if part.run_condition else []
        )
        marks += ["only reads"] if part.read_only else []
        marks += [f"submits {part.contract.name}"] if part.contract else []
        marks += [f"assesses {assessment.id}" for assessment in part.assessments]
        marks += ["asks the user"] if part.user_only or part.confirms else []
        marks += ["waits for approval"] if part.approval else []
        suffix = f" ({'; '.join(marks)})" if marks else ""
        yield f"{margin}{edge}{part.number}. {part.title} [{part.id}]{suffix}"


class _MermaidChart:
    """A flowchart with numbered nodes: the id of a step may have a meaning in mermaid."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def add(
        self, parts: tuple[CompiledPart, ...], margin: str
    ) -> tuple[list[tuple[str, str]], list[str]]:
        """Return the nodes that come first, each with its condition, and those that lead on."""
        entries: list[tuple[str, str]] = []
        open_ends: list[str] = []
        may_come_first = True
        for part in parts:
            first, last = self._add_part(part, margin)
            when = (
                f"|{_label(_describe_condition(part.run_condition))}|" if part.run_condition else ""
            )
            self.lines += [
                f"{margin}{end} -->{when} {name}" for end in open_ends for name, _ in first
            ]
            if may_come_first:
                entries += [(name, when or inner) for name, inner in first]
            # A part that may be skipped leaves the ends before it open.
            open_ends = [*last, *open_ends] if part.run_condition else last
            may_come_first = may_come_first and part.run_condition is not None
        return entries, open_ends

    def _add_part(self, part: CompiledPart, margin: str) -> tuple[list[tuple[str, str]], list[str]]:
        self._count += 1
        name, label = f"n{self._count}", _label(part.title)
        if isinstance(part, CompiledStep):
            shape = f'{{{{"{label}"}}}}' if part.approval else f'["{label}"]'
            self.lines.append(f"{margin}{name}{shape}")
            return [(name, "")], [name]
        if part.kind == "group":
            return self.add(part.body, margin)
        self.lines.append(f'{margin}subgraph {name}["{label}, at most {part.passes_max}"]')
        first, last = self.add(part.body, f"{margin}  ")
        self.lines.append(f"{margin}end")
        self.lines += [f"{margin}{end} -. again .-> {entry}" for end in last for entry, _ in first]
        return first, last


def _label(text: str) -> str:
    return text.replace('"', "'").replace("|", "/").replace("\n", " ")[:80]
