"""Compose the part of a prompt that is the same in every run, when a workflow is compiled."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from interlock.core.workflow.builtins import PASSAGES, Feature, strip_owner_prefix
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
_BRACES_MAX = 84  # longer text between braces is not meant as a placeholder
_UNSUPPORTED_MAX = 20


def unsupported_placeholders(text: str) -> tuple[str, ...]:
    """Return the texts in double braces that are not paths: the agent is shown them as they are."""
    unsupported: list[str] = []
    searched_to, end = 0, text.find("}}")
    while end >= 0 and len(unsupported) < _UNSUPPORTED_MAX:
        start = text.rfind("{{", max(searched_to, end - _BRACES_MAX), end)
        placeholder = text[start : end + 2]
        if (
            start >= 0
            and not PLACEHOLDER.fullmatch(placeholder)
            and not BINDING.fullmatch(placeholder)
        ):
            unsupported.append(placeholder[2:-2].strip())
        searched_to = end + 2
        end = text.find("}}", searched_to)
    return tuple(unsupported)


def filled_size(text: str, bindings: Mapping[str, str]) -> int:
    """Return the length of `text` with its slots filled in."""
    return len(text) + sum(len(bindings.get(slot, "")) for slot in BINDING.findall(text))


def fill_slots(
    text: str, bindings: Mapping[str, str], on_missing_slot: Callable[[str], None]
) -> str:
    """Return `text` with its slots filled in; `on_missing_slot` is called for the unbound ones."""

    def fill(match: re.Match[str]) -> str:
        if match[1] not in bindings:
            on_missing_slot(match[1])
            return ""
        return bindings[match[1]]

    return BINDING.sub(fill, text)


def step_text(
    step: Step,
    features: Iterable[Feature],
    functions: Mapping[str, Function],
    on_missing_passage: Callable[[str], None],
) -> str:
    """Return the text of a step. `on_missing_passage` is called for passages that do not exist."""
    parts = [step.prompt] if step.prompt else []
    blocks = _with_features(step.prompt_blocks or PromptBlocks(), features)
    parts += _block_texts(blocks, on_missing_passage)
    if guidance := [line for line in step.guidance if line.strip()]:
        parts.append(_titled_list("Guidance", guidance))
    if step.ask_for_files:
        parts.append("If you need files that you cannot see, ask the user for them by name.")
    parts += _function_texts(step, functions)
    return "\n\n".join(parts)


def _with_features(blocks: PromptBlocks, features: Iterable[Feature]) -> PromptBlocks:
    chosen = tuple(features)
    return msgspec.structs.replace(
        blocks,
        constraints=(
            *blocks.constraints,
            *(line for feature in chosen for line in feature.constraints),
        ),
        procedure=(*blocks.procedure, *(line for feature in chosen for line in feature.procedure)),
        verify=(*blocks.verify, *(line for feature in chosen for line in feature.verify)),
    )


def _block_texts(blocks: PromptBlocks, on_missing_passage: Callable[[str], None]) -> list[str]:
    def to_text(rich_text: RichText) -> str:
        if isinstance(rich_text, str):
            return rich_text
        return "".join(_part_text(part, on_missing_passage) for part in rich_text)

    parts = [to_text(blocks.goal)] if blocks.goal else []
    if blocks.constraints:
        parts.append(_titled_list("Constraints", map(to_text, blocks.constraints)))
    if blocks.procedure:
        parts.append(_titled_list("Procedure", map(to_text, blocks.procedure), is_numbered=True))
    if blocks.output_required:
        lines = (
            f"`{name}`: {to_text(rich_text)}"
            for name, rich_text in sorted(blocks.output_required.items())
        )
        parts.append(_titled_list("What must come out", lines))
    if blocks.verify:
        parts.append(_titled_list("Check before you submit it", map(to_text, blocks.verify)))
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
    items: list[str] = []
    for number, line in enumerate(filter(str.strip, lines), start=1):
        mark = f"{number}. " if is_numbered else "- "
        if is_numbered and _NUMBERED.match(line):
            mark = ""  # the author has numbered it
        items.append(mark + line.replace("\n", "\n" + " " * len(mark)))
    return "\n".join((f"{title}:", *items))


def _function_texts(step: Step, functions: Mapping[str, Function]) -> list[str]:
    referenced = [name.removesuffix("()") for name in step.function_references]
    called = [call.name.removesuffix("()") for call in step.function_calls]
    lines: list[str] = []
    for name in dict.fromkeys((*referenced, *called)):
        if function := functions.get(name):
            parameters = ", ".join(map(_parameter_name, function.parameters))
            lines.append(f"{name}({parameters}): {function.definition}")
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
    author_prompt = f"{verification.prompt}\n\n" if verification.prompt else ""
    return (
        f"{author_prompt}Prove that “{step.title}” is done. Run exactly this command, alone, in the"
        f" workspace:\n\n    {verification.command}\n\n"
        "Only how the command ends counts. If it fails, fix the cause and run it again. Where hooks"
        " record your commands, that run is the proof; elsewhere report how it ended."
    )


def audit_text(step: Step, audit: Audit) -> str:
    parts = [f"Audit “{step.title}” as somebody would who did not do it.\n\n{audit.prompt}"]
    if isinstance(audit.rubric, str):
        parts.append(f"Rubric:\n{audit.rubric}")
    elif audit.rubric:
        parts.append(_titled_list("Rubric", audit.rubric))
    return "\n\n".join(parts)


DECISION_PROMPT = "Look back at this pass: at what is still unresolved, not at how much was done."


def delegations_text(step: Parallel) -> str:
    """Return the text of the delegating step, before its delegations."""
    author_prompt = f"{step.prompt}\n\n" if step.prompt else ""
    ending = (
        "the next step brings them together"
        if step.synthesis
        else "then say what they mean taken together"
    )
    return (
        f"{author_prompt}Delegate the work below, each part to an agent of its own and all at the"
        " same time. Give each agent its goal and values, and nothing of the others. If you cannot"
        " delegate, do the parts yourself, one after the other, and do not let one influence the"
        f" next. Write down what each reports, apart from the others; {ending}."
    )


def delegation_goal(delegation: Delegation) -> str:
    """Return the goal; where the file gives none, the name of the work or of the workflow."""
    name = delegation.args.get("familyName") or delegation.workflow_id
    return delegation.goal or f"Run {name}"
