"""The part of a prompt that is the same in every run: put together when a workflow is compiled."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from interlock.core.workflow.builtins import FEATURES, PASSAGES, strip_owner_prefix
from interlock.core.workflow.definition import (
    Audit,
    Delegation,
    Function,
    Parallel,
    PromptBlocks,
    RefPart,
    RichText,
    Step,
    TextPart,
    Verification,
)
from interlock.core.workflow.placeholders import PLACEHOLDER

BINDING = re.compile(r"\{\{\s*(?:wr\.|interlock\.)?bindings\.([\w-]+)\s*\}\}")
_BRACES_MAX = 84  # what is longer between two braces was not meant to be computed
_UNSUPPORTED_MAX = 20


def unsupported_placeholders(text: str) -> tuple[str, ...]:
    """What stands in double braces and is not a path: it is given to the agent as it is."""
    found: list[str] = []
    behind, closed = 0, text.find("}}")
    while closed >= 0 and len(found) < _UNSUPPORTED_MAX:
        opened = text.rfind("{{", max(behind, closed - _BRACES_MAX), closed)
        whole = text[opened : closed + 2]
        if opened >= 0 and not PLACEHOLDER.fullmatch(whole) and not BINDING.fullmatch(whole):
            found.append(whole[2:-2].strip())
        behind = closed + 2
        closed = text.find("}}", behind)
    return tuple(found)


def filled_size(text: str, bindings: Mapping[str, str]) -> int:
    """How long `text` becomes with what is bound to its slots."""
    return len(text) + sum(len(bindings.get(slot, "")) for slot in BINDING.findall(text))


def fill_slots(
    text: str, bindings: Mapping[str, str], on_missing_slot: Callable[[str], None]
) -> str:
    """`text` with what the project has put into its slots."""

    def fill(found: re.Match[str]) -> str:
        if found[1] not in bindings:
            on_missing_slot(found[1])
            return ""
        return bindings[found[1]]

    return BINDING.sub(fill, text)


def step_text(
    step: Step,
    features: tuple[str, ...],
    functions: Mapping[str, Function],
    on_missing_passage: Callable[[str], None],
) -> str:
    """What a step asks. `lost` is told of passages that do not exist."""
    parts = [step.prompt] if step.prompt else []
    blocks = _with_features(step.prompt_blocks or PromptBlocks(), features)
    parts += _block_texts(blocks, on_missing_passage)
    if step.guidance:
        parts.append(_titled_list("Guidance", step.guidance))
    if step.ask_for_files:
        parts.append("If you need files that you cannot see, ask the user for them by name.")
    parts += _function_texts(step, functions)
    return "\n\n".join(parts)


def _with_features(blocks: PromptBlocks, features: tuple[str, ...]) -> PromptBlocks:
    found = [FEATURES[name] for name in features]
    return msgspec.structs.replace(
        blocks,
        constraints=(*blocks.constraints, *(line for f in found for line in f.constraints)),
        procedure=(*blocks.procedure, *(line for f in found for line in f.procedure)),
        verify=(*blocks.verify, *(line for f in found for line in f.verify)),
    )


def _block_texts(blocks: PromptBlocks, on_missing_passage: Callable[[str], None]) -> list[str]:
    def to_text(words: RichText) -> str:
        if isinstance(words, str):
            return words
        return "".join(_part_text(part, on_missing_passage) for part in words)

    parts = [to_text(blocks.goal)] if blocks.goal else []
    if blocks.constraints:
        parts.append(_titled_list("Constraints", map(to_text, blocks.constraints)))
    if blocks.procedure:
        parts.append(_titled_list("Procedure", map(to_text, blocks.procedure), is_numbered=True))
    if blocks.output_required:
        lines = (
            f"`{name}`: {to_text(words)}" for name, words in sorted(blocks.output_required.items())
        )
        parts.append(_titled_list("What must come out", lines))
    if blocks.verify:
        parts.append(_titled_list("Check before you hand it in", map(to_text, blocks.verify)))
    return parts


def _part_text(part: TextPart | RefPart, on_missing_passage: Callable[[str], None]) -> str:
    if isinstance(part, TextPart):
        return part.text
    name = strip_owner_prefix(part.ref_id, "refs")
    if name not in PASSAGES:
        on_missing_passage(part.ref_id)
    return PASSAGES.get(name, "")


_NUMBERED = re.compile(r"\s*\d+[.)]\s")


def _titled_list(title: str, lines: Iterable[str], *, is_numbered: bool = False) -> str:
    shown: list[str] = []
    for number, line in enumerate(lines, start=1):
        mark = f"{number}. " if is_numbered else "- "
        if is_numbered and _NUMBERED.match(line):
            mark = ""  # the author has numbered it
        shown.append(mark + line.replace("\n", "\n" + " " * len(mark)))
    return "\n".join((f"{title}:", *shown))


def _function_texts(step: Step, functions: Mapping[str, Function]) -> list[str]:
    named = [name.removesuffix("()") for name in step.function_references]
    called = [call.name.removesuffix("()") for call in step.function_calls]
    lines: list[str] = []
    for name in dict.fromkeys((*named, *called)):
        if found := functions.get(name):
            lines.append(
                f"{name}({', '.join(map(_parameter_name, found.parameters))}): {found.definition}"
            )
    parts = [_titled_list("Functions that this step speaks of", lines)] if lines else []
    if step.function_calls:
        calls = (
            f"{call.name.removesuffix('()')} with {_json(call.args)}"
            for call in step.function_calls
        )
        parts.append(_titled_list("Apply", calls))
    return parts


def _parameter_name(value: Any) -> str:
    if isinstance(value, dict):
        return str(cast("dict[str, Any]", value).get("name", "…"))
    return str(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def verification_text(step: Step, verification: Verification) -> str:
    asked = f"{verification.prompt}\n\n" if verification.prompt else ""
    return (
        f"{asked}Prove that “{step.title}” is done: run this command in the workspace.\n\n"
        f"    {verification.command}\n\n"
        "Claims do not count here, only what the command says. If it fails, mend what is wrong and"
        " run it again; hand the step in when it has passed."
    )


def audit_text(step: Step, audit: Audit) -> str:
    parts = [f"Audit “{step.title}” as somebody would who did not do it.\n\n{audit.prompt}"]
    if isinstance(audit.rubric, str):
        parts.append(f"Rubric:\n{audit.rubric}")
    elif audit.rubric:
        parts.append(_titled_list("Rubric", audit.rubric))
    return "\n\n".join(parts)


DECISION_PROMPT = "Look back at this pass: at what is still unresolved, not at how much was done."


def delegations_text(step: Parallel, certain: Iterable[str]) -> str:
    """`certain` are the delegations that no condition decides about."""
    asked = f"{step.prompt}\n\n" if step.prompt else ""
    return "\n\n".join((_delegation_intro(asked), *certain))


def _delegation_intro(author_prompt: str) -> str:
    return (
        f"{author_prompt}Delegate the following, each to an agent of its own, all at the same time."
        " Give each one its goal and what it needs to know, and nothing of the others. If you"
        " cannot delegate, do them yourself, one after the other, without letting one colour the"
        " next. Keep what each reports in your notes, apart from the others; the next step brings"
        " them together."
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
