"""Steering keys: which step sets each key of the context that the workflow reads.

A key is set by the steps whose `sets` name it; where no step declares it, by the steps before the
place that reads it, or in the same loop, whose own text names it. Keys that nothing sets are given
at the start of a run, or the workflow has a mistake: each is named in a warning.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.workflow import step_paths
from interlock.core.workflow.compiled_workflow import CompiledPart, CompiledStep, SetKey
from interlock.core.workflow.definition import Workflow
from interlock.core.workflow.key_examples import key_example
from interlock.core.workflow.key_uses import KeyUse, key_uses
from interlock.core.workflow.placeholders import PLACEHOLDER
from interlock.core.workflow.problems import Problem, suggest_nearest, warning

_WORD = re.compile(r"[A-Za-z_][\w-]*")


def with_steering_keys(
    parts: tuple[CompiledPart, ...], workflow: Workflow, problems: list[Problem]
) -> tuple[tuple[CompiledPart, ...], tuple[SetKey, ...]]:
    """Return the steps with the keys that they set, and the keys that nothing sets."""
    steering = _Steering(parts, workflow)
    problems += steering.problems()
    return step_paths.replace_steps(parts, steering.with_keys), steering.unset_keys()


class _Steering:
    def __init__(self, parts: tuple[CompiledPart, ...], workflow: Workflow) -> None:
        self._workflow = workflow
        self._schema: dict[str, Any] = workflow.context_schema or {}
        properties = self._schema.get("properties")
        self._declared_in_schema = cast("dict[str, Any]", properties or {})
        self._given = {"goal", *workflow.inputs}
        steps = [
            (part, step_paths.repeating_loops(loops))
            for part, loops in step_paths.located_parts(parts)
            if isinstance(part, CompiledStep)
        ]
        self._uses: dict[str, list[KeyUse]] = {}
        for use in key_uses(parts):
            if use.name not in self._given:
                self._uses.setdefault(use.name, []).append(use)
        self._setters: dict[str, list[tuple[CompiledStep, frozenset[str]]]] = {}
        for step, loops in steps:
            for key in step.sets:
                self._setters.setdefault(key.name, []).append((step, loops))
        declared = set(self._setters)
        readings = {name: _Readings(uses) for name, uses in self._uses.items()}
        for step, loops in steps:
            for name in (_words_of(step) & self._uses.keys()) - declared:
                if readings[name].may_follow(step, loops):
                    self._setters.setdefault(name, []).append((step, loops))
        self._inferred_by_step: dict[str, list[tuple[str, bool]]] = {}
        """Names, and whether the step is in a loop, whose passes may change the value."""
        for name, setters in self._setters.items():
            for step, loops in setters if name not in declared else ():
                inferred = (name, bool(loops))
                self._inferred_by_step.setdefault(step.id, []).append(inferred)

    def with_keys(self, step: CompiledStep) -> CompiledStep:
        declared = (
            key if key.example else SetKey(key.name, self._example(key.name), is_always_asked=True)
            for key in step.sets
        )
        inferred = (
            SetKey(name, self._example(name), is_always_asked=is_repeated)
            for name, is_repeated in sorted(self._inferred_by_step.get(step.id, ()))
        )
        return msgspec.structs.replace(step, sets=(*declared, *inferred))

    def unset_keys(self) -> tuple[SetKey, ...]:
        return tuple(
            SetKey(name, self._example(name))
            for name in sorted(self._uses)
            if name not in self._setters
        )

    def problems(self) -> Iterator[Problem]:
        for name, uses in self._uses.items():
            own_uses = [use for use in uses if not use.is_elsewhere]
            if self._declared_in_schema and name not in self._declared_in_schema and own_uses:
                yield self._undeclared_problem(name, own_uses[0])
            elif name not in self._setters:
                yield self._unset(name, uses[0])
            elif not any(_Readings(uses[:1]).may_follow(*setter) for setter in self._setters[name]):
                message = f"`{name}` is read here before any step can have set it"
                yield warning("unset", uses[0].pointer, message)
            for use in own_uses if self._declared_in_schema else ():
                yield from self._impossible_values(use)

    def _undeclared_problem(self, name: str, use: KeyUse) -> Problem:
        message = f"`{name}` is not declared in `contextSchema`"
        known = {*self._declared_in_schema, *self._given}
        rule = "prompt" if use.question == "text" else "condition"
        return warning(rule, use.pointer, message, _near(name, known))

    def _unset(self, name: str, use: KeyUse) -> Problem:
        known = {*self._setters, *self._given, *self._declared_in_schema, *self._uses} - {name}
        hint = _near(name, known) or "Name it in `sets` of a step, or in `inputs`."
        return warning("unset", use.pointer, f"no step sets `{name}`", hint)

    def _impossible_values(self, use: KeyUse) -> Iterator[Problem]:
        allowed = _allowed_values(self._declared_in_schema, use.path)
        if allowed is None or use.question not in ("value", "contains"):
            return
        for value in use.values:
            if value is not None and _fold_case(value) not in {_fold_case(one) for one in allowed}:
                message = f"`{use.path}` is never {_json(value)}: `contextSchema` does not allow it"
                options = ", ".join(map(_json, allowed))
                yield warning("condition", use.pointer, message, f"It allows: {options}.")

    def _example(self, name: str) -> str:
        return _json(key_example(name, self._uses.get(name, ()), self._schema))


class _Readings:
    """The places that read one key, taken together."""

    def __init__(self, uses: list[KeyUse]) -> None:
        self._last_number = max(use.number for use in uses)
        self._numbers_at_end = {use.number for use in uses if use.is_at_end}
        self._loops = frozenset[str]().union(*(use.loops for use in uses))

    def may_follow(self, step: CompiledStep, loops: frozenset[str]) -> bool:
        """Whether the key may be read after the step was done."""
        is_before = step.number < self._last_number or step.number in self._numbers_at_end
        return is_before or bool(loops & self._loops)


def _words_of(step: CompiledStep) -> set[str]:
    """Return the words that a step's own texts have outside of placeholders."""
    texts = (step.prompt, *(fragment.text for fragment in step.fragments))
    return {word for text in texts for word in _WORD.findall(PLACEHOLDER.sub(" ", text))}


def _allowed_values(properties: dict[str, Any], path: str) -> list[Json] | None:
    """Return the values that the context schema allows at a path; None where it does not say."""
    node: dict[str, Any] = {"properties": properties}
    for part in path.split("."):
        inner = node.get("items") if part.isdecimal() else node.get("properties", {}).get(part)
        node = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    if node.get("type") == "array" and isinstance(node.get("items"), dict):
        node = node["items"]
    if node.get("type") == "boolean":
        return [True, False]
    return [node["const"]] if "const" in node else node.get("enum")


def _fold_case(value: Json) -> str:
    """Return a value as `equals` compares it."""
    return (value if isinstance(value, str) else _json(value)).casefold()


def _json(value: Json) -> str:
    return canonical.encode(value).decode()


def _near(name: str, known: set[str]) -> str:
    hint = suggest_nearest(name, known)
    return hint if hint.startswith("Did") else ""
