"""A workflow as a whole: what an agent will see step by step, and its shape as a drawing."""

from collections.abc import Iterator, Mapping
from typing import Literal

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


class Mark(msgspec.Struct, frozen=True):
    """Something about a step that its title does not say."""

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
    ]
    words: str


class Piece(msgspec.Struct, frozen=True):
    """A step, or a loop or group with what lies in it."""

    kind: Literal["step", "loop", "group"]
    id: str
    title: str
    number: int
    """Of a step, counted from 1."""
    how: str
    """How often a block is gone through, and when."""
    marks: tuple[Mark, ...]
    body: "tuple[Piece, ...]"
    pointer: str


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
        notes = (*(_repeats(loop) for loop in loops), *(mark.words for mark in _marks(step)))
        yield Preview(step.id, step.title, step.number, notes, text)


def pieces(workflow: CompiledWorkflow) -> tuple[Piece, ...]:
    """The shape of a workflow as data, for a page."""
    return tuple(_pieces(workflow.steps))


def draw(workflow: CompiledWorkflow) -> list[str]:
    """The shape of a workflow with characters, for a terminal."""
    return [f"{workflow.id} {workflow.version}: {workflow.name}", *_drawn(workflow.steps, "")]


def mermaid(workflow: CompiledWorkflow) -> str:
    """The same as a flowchart that Markdown viewers draw."""
    chart = _Chart()
    first, last = chart.add(workflow.steps, "  ")
    lines = ["flowchart TD", "  begin((start))", "  finish((done))", *chart.lines]
    lines += [f"  begin -->{when} {name}" for name, when in first]
    lines += [f"  {name} --> finish" for name in last]
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
    return _how(loop) if loop.kind == "group" else f"in loop {loop.id}: {_how(loop)}"


def _how(loop: CompiledLoop, who: str = "you decide") -> str:
    if loop.kind == "group":
        assert loop.run_condition is not None, "a group is made for its condition"
        return f"only when {_when(loop.run_condition)}"
    how = {
        "for": f"{loop.count} times",
        "forEach": f"for each of `{loop.items}`",
        "while": f"as long as {who} to go on",
        "until": f"until {who} to stop",
    }[loop.kind]
    if loop.condition is not None:
        how = f"{loop.kind} {conditions.words(conditions.unpack(loop.condition))}"
    only = f", only when {_when(loop.run_condition)}" if loop.run_condition else ""
    return f"{how}, at most {loop.passes_max} passes{only}"


def _marks(step: CompiledStep) -> Iterator[Mark]:
    if step.run_condition:
        yield Mark("condition", f"only when {_when(step.run_condition)}")
    for fragment in step.fragments:
        if fragment.when:
            only = f"fragment {fragment.id} only when {_when(fragment.when)}"
            yield Mark("fragment", only)
    if step.confirms:
        when = f" when {_when(step.confirms)}" if isinstance(step.confirms, str) else ""
        yield Mark("confirmation", f"the user confirms it{when} (guided runs)")
    if step.approval:
        when = f" when {_when(step.approval.condition)}" if step.approval.condition else ""
        yield Mark("approval", f"waits for an approval{when}: {step.approval.question}")
    for consequence in step.consequences:
        level = consequence.when.any_equals_level
        yield Mark("consequence", f"must be done again when a level is {level}")
    for injected in step.injected:
        yield Mark("injected", f"{injected.part} brought by {injected.by}")


def _owed(step: CompiledStep) -> Iterator[Mark]:
    """What is handed in besides notes; the prompt says it, so a preview does not."""
    if step.contract:
        may = "hands in" if step.contract.is_required else "may hand in"
        yield Mark("contract", f"{may} {step.contract.name}")
    for found in step.assessments:
        yield Mark("assessment", f"assesses {found.id}")
    if step.user_only:
        yield Mark("user", f"needs the user: {step.user_only.question}")


def _pieces(parts: tuple[Part, ...]) -> Iterator[Piece]:
    for part in parts:
        if isinstance(part, CompiledStep):
            marks = (*_marks(part), *_owed(part))
            yield Piece("step", part.id, part.title, part.number, "", marks, (), part.pointer)
        else:
            kind = "group" if part.kind == "group" else "loop"
            body = tuple(_pieces(part.body))
            how = _how(part, "the agent decides")
            yield Piece(kind, part.id, part.title, 0, how, (), body, part.pointer)


def _when(condition: str) -> str:
    return conditions.words(conditions.unpack(condition))


def _drawn(parts: tuple[Part, ...], margin: str) -> Iterator[str]:
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        edge, below = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        if isinstance(part, CompiledLoop) and part.kind == "group":
            yield f"{margin}{edge}◇ {_how(part)}"
            yield from _drawn(part.body, margin + below)
            continue
        if isinstance(part, CompiledLoop):
            yield f"{margin}{edge}↻ {part.title} [{part.id}] ({_how(part)})"
            yield from _drawn(part.body, margin + below)
            continue
        marks = [f"only when {_when(part.run_condition)}"] if part.run_condition else []
        marks += [f"hands in {part.contract.name}"] if part.contract else []
        marks += [f"assesses {found.id}" for found in part.assessments]
        marks += ["asks the user"] if part.user_only or part.confirms else []
        marks += ["waits for approval"] if part.approval else []
        said = f" ({'; '.join(marks)})" if marks else ""
        yield f"{margin}{edge}{part.number}. {part.title} [{part.id}]{said}"


class _Chart:
    """Numbers the nodes: an id of a step may be anything that mermaid has a meaning for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def add(self, parts: tuple[Part, ...], margin: str) -> tuple[list[tuple[str, str]], list[str]]:
        """The nodes that one comes to first, each with its condition, and those that lead on."""
        entries: list[tuple[str, str]] = []
        ways: list[str] = []
        may_pass = True
        for part in parts:
            first, last = self._part(part, margin)
            when = f"|{_label(_when(part.run_condition))}|" if part.run_condition else ""
            self.lines += [f"{margin}{way} -->{when} {name}" for way in ways for name, _ in first]
            if may_pass:
                entries += [(name, when or inner) for name, inner in first]
            # What may be skipped leaves the ways before it open.
            ways = [*last, *ways] if part.run_condition else last
            may_pass = may_pass and part.run_condition is not None
        return entries, ways

    def _part(self, part: Part, margin: str) -> tuple[list[tuple[str, str]], list[str]]:
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
        self.lines += [f"{margin}{way} -. again .-> {back}" for way in last for back, _ in first]
        return first, last


def _label(text: str) -> str:
    return text.replace('"', "'").replace("|", "/").replace("\n", " ")[:80]
