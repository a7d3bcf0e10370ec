"""The prompt of a step, as the agent is given it. What is written here is stored with the node."""

import re
from collections.abc import Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.preferences import Preferences
from interlock.core.workflow import criteria
from interlock.core.workflow.compiled import CompiledStep, CompiledWorkflow

_NOTES_AT_FIRST = """\
When you have done this step, write notes for it: what you did, found and decided, and what is \
still open. The notes are kept, and are what you (or another agent) will be shown when the \
conversation is lost or shortened, so write what you would want to read then. Each step has its \
own notes; do not repeat earlier ones."""
_NOTES_LATER = "Finish with notes for this step: what you did, found and decided, and what is open."
_HOLE = re.compile(r"\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")


class Unset(msgspec.Struct, frozen=True):
    """The prompt speaks of context that nobody has set."""

    keys: tuple[str, ...]


def render(
    workflow: CompiledWorkflow,
    cursor: int,
    *,
    context: Mapping[str, Json],
    preferences: Preferences,
) -> str | Unset:
    """The words for the step at `cursor`."""
    step = workflow.steps[cursor]
    if unset := tuple(
        dict.fromkeys(key for key in holes(step.prompt) if _value(context, key) is None)
    ):
        return Unset(unset)
    parts = [_HOLE.sub(lambda hole: _shown(_value(context, hole[1])), step.prompt)]
    if cursor == 0:
        if "goal" not in holes(step.prompt):
            parts.insert(0, f"Goal: {context['goal']}")
        parts += _capabilities(workflow)
    parts += _demands(step, preferences)
    if not step.notes_optional:
        parts.append(_NOTES_AT_FIRST if cursor == 0 else _NOTES_LATER)
    return "\n\n".join(parts)


def holes(text: str) -> tuple[str, ...]:
    """The context paths that `text` speaks of."""
    return tuple(_HOLE.findall(text))


def _value(context: Mapping[str, Json], path: str) -> Json:
    value: Json = dict(context)
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _demands(step: CompiledStep, preferences: Preferences) -> list[str]:
    parts: list[str] = []
    if step.validation_criteria is not None:
        lines = criteria.requirements(criteria.unpack(step.validation_criteria.encode()))
        parts.append("What you hand in is checked:\n" + "\n".join(f"- {line}" for line in lines))
    if step.user_only is not None:
        parts.append(_user_only(step.user_only.question, preferences))
    return parts


def _user_only(question: str, preferences: Preferences) -> str:
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


def _capabilities(workflow: CompiledWorkflow) -> list[str]:
    if not workflow.capabilities:
        return []
    wanted = ", ".join(f"{name} ({level})" for name, level in workflow.capabilities.items())
    return [
        f"This workflow uses: {wanted}. Find out whether you have it and hand in for each an"
        ' artifact: {"kind": "capability_observation", "capability": "…", "status": "available" or'
        ' "unavailable", "evidence": "…"}'
    ]
