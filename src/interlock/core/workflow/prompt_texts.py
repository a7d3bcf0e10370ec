"""The part of a prompt that is the same in every run: put together when a workflow is compiled."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from interlock.core.workflow.builtins import FEATURES, PASSAGES, plain
from interlock.core.workflow.definition import (
    Audit,
    Delegation,
    Function,
    Parallel,
    PromptBlocks,
    RefPart,
    Step,
    TextPart,
    Verification,
    Words,
)
from interlock.core.workflow.placeholders import HOLE

BINDING = re.compile(r"\{\{\s*(?:wr\.|interlock\.)?bindings\.([\w-]+)\s*\}\}")
_BRACES_MAX = 84  # what is longer between two braces was not meant to be computed
_NOT_COMPUTED_MAX = 20


def not_computed(text: str) -> tuple[str, ...]:
    """What stands in double braces and is not a path: it is given to the agent as it is."""
    found: list[str] = []
    behind, closed = 0, text.find("}}")
    while closed >= 0 and len(found) < _NOT_COMPUTED_MAX:
        opened = text.rfind("{{", max(behind, closed - _BRACES_MAX), closed)
        whole = text[opened : closed + 2]
        if opened >= 0 and not HOLE.fullmatch(whole) and not BINDING.fullmatch(whole):
            found.append(whole[2:-2].strip())
        behind = closed + 2
        closed = text.find("}}", behind)
    return tuple(found)


def bound_size(text: str, bindings: Mapping[str, str]) -> int:
    """How long `text` becomes with what is bound to its slots."""
    return len(text) + sum(len(bindings.get(slot, "")) for slot in BINDING.findall(text))


def bound(text: str, bindings: Mapping[str, str], missing: Callable[[str], None]) -> str:
    """`text` with what the project has put into its slots."""

    def fill(found: re.Match[str]) -> str:
        if found[1] not in bindings:
            missing(found[1])
            return ""
        return bindings[found[1]]

    return BINDING.sub(fill, text)


def step_text(
    step: Step,
    features: tuple[str, ...],
    functions: Mapping[str, Function],
    lost: Callable[[str], None],
) -> str:
    """What a step asks. `lost` is told of passages that do not exist."""
    parts = [step.prompt] if step.prompt else []
    blocks = _with_features(step.prompt_blocks or PromptBlocks(), features)
    parts += _blocks(blocks, lost)
    if step.guidance:
        parts.append(_list("Guidance", step.guidance))
    if step.ask_for_files:
        parts.append("If you need files that you cannot see, ask the user for them by name.")
    parts += _functions(step, functions)
    return "\n\n".join(parts)


def _with_features(blocks: PromptBlocks, features: tuple[str, ...]) -> PromptBlocks:
    found = [FEATURES[name] for name in features]
    return msgspec.structs.replace(
        blocks,
        constraints=(*blocks.constraints, *(line for f in found for line in f.constraints)),
        procedure=(*blocks.procedure, *(line for f in found for line in f.procedure)),
        verify=(*blocks.verify, *(line for f in found for line in f.verify)),
    )


def _blocks(blocks: PromptBlocks, lost: Callable[[str], None]) -> list[str]:
    def said(words: Words) -> str:
        if isinstance(words, str):
            return words
        return "".join(_part(part, lost) for part in words)

    parts = [said(blocks.goal)] if blocks.goal else []
    if blocks.constraints:
        parts.append(_list("Constraints", map(said, blocks.constraints)))
    if blocks.procedure:
        parts.append(_list("Procedure", map(said, blocks.procedure), is_numbered=True))
    if blocks.output_required:
        lines = (
            f"`{name}`: {said(words)}" for name, words in sorted(blocks.output_required.items())
        )
        parts.append(_list("What must come out", lines))
    if blocks.verify:
        parts.append(_list("Check before you hand it in", map(said, blocks.verify)))
    return parts


def _part(part: TextPart | RefPart, lost: Callable[[str], None]) -> str:
    if isinstance(part, TextPart):
        return part.text
    name = plain(part.ref_id, "refs")
    if name not in PASSAGES:
        lost(part.ref_id)
    return PASSAGES.get(name, "")


_NUMBERED = re.compile(r"\s*\d+[.)]\s")


def _list(title: str, lines: Iterable[str], *, is_numbered: bool = False) -> str:
    shown: list[str] = []
    for number, line in enumerate(lines, start=1):
        mark = f"{number}. " if is_numbered else "- "
        if is_numbered and _NUMBERED.match(line):
            mark = ""  # the author has numbered it
        shown.append(mark + line.replace("\n", "\n" + " " * len(mark)))
    return "\n".join((f"{title}:", *shown))


def _functions(step: Step, functions: Mapping[str, Function]) -> list[str]:
    named = [name.removesuffix("()") for name in step.function_references]
    called = [call.name.removesuffix("()") for call in step.function_calls]
    lines: list[str] = []
    for name in dict.fromkeys((*named, *called)):
        if found := functions.get(name):
            lines.append(
                f"{name}({', '.join(map(_parameter, found.parameters))}): {found.definition}"
            )
    parts = [_list("Functions that this step speaks of", lines)] if lines else []
    if step.function_calls:
        calls = (
            f"{call.name.removesuffix('()')} with {_json(call.args)}"
            for call in step.function_calls
        )
        parts.append(_list("Apply", calls))
    return parts


def _parameter(value: Any) -> str:
    if isinstance(value, dict):
        return str(cast("dict[str, Any]", value).get("name", "…"))
    return str(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def verification_text(step: Step, wanted: Verification) -> str:
    asked = f"{wanted.prompt}\n\n" if wanted.prompt else ""
    return (
        f"{asked}Prove that “{step.title}” is done: run this command in the workspace.\n\n"
        f"    {wanted.command}\n\n"
        "Claims do not count here, only what the command says. If it fails, mend what is wrong and"
        " run it again; hand the step in when it has passed."
    )


def audit_text(step: Step, wanted: Audit) -> str:
    parts = [f"Audit “{step.title}” as somebody would who did not do it.\n\n{wanted.prompt}"]
    if isinstance(wanted.rubric, str):
        parts.append(f"Rubric:\n{wanted.rubric}")
    elif wanted.rubric:
        parts.append(_list("Rubric", wanted.rubric))
    return "\n\n".join(parts)


DECISION = "Look back at this pass: at what is still unresolved, not at how much was done."


def delegations_text(step: Parallel, certain: Iterable[str]) -> str:
    """`certain` are the delegations that no condition decides about."""
    asked = f"{step.prompt}\n\n" if step.prompt else ""
    return "\n\n".join((_delegations(asked), *certain))


def _delegations(asked: str) -> str:
    return (
        f"{asked}Delegate the following, each to an agent of its own, all at the same time. Give"
        " each one its goal and what it needs to know, and nothing of the others. If you cannot"
        " delegate, do them yourself, one after the other, without letting one colour the next."
        " Keep what each reports in your notes, apart from the others; the next step brings them"
        " together."
    )


def delegation_text(delegation: Delegation, number: int) -> str:
    lines = [f"Delegation {number}: {delegation.goal}"]
    if delegation.workflow_id:
        lines.append(f"  workflow: `{delegation.workflow_id}` (start_workflow in its own session)")
    for name, value in (
        ("context to hand over", delegation.context_mapping),
        ("arguments", delegation.args),
    ):
        if value:
            lines.append(f"  {name}: {_json(value)}")
    if delegation.model_tier:
        lines.append(f"  model: {delegation.model_tier}")
    if delegation.allowed_tools:
        lines.append(f"  tools: {', '.join(delegation.allowed_tools)}")
    return "\n".join(lines)
