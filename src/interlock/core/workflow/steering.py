"""Steering keys: which step sets each key of the context that the workflow reads.

A key is set by the steps whose `sets` name it; where no step declares it, by the steps before the
place that reads it, or in the same loop, whose own text names it. Keys that nothing sets are given
at the start of a run, or the workflow has a mistake: each is named in a warning.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.workflow import step_paths
from interlock.core.workflow.approval_hints import guards_of, without_shortcuts
from interlock.core.workflow.blanks import choice, with_blanks
from interlock.core.workflow.compiled_workflow import CompiledPart, CompiledStep, SetKey
from interlock.core.workflow.definition import Workflow
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
        self._guards = tuple(guards_of(parts))
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
        self._mentioned = {*declared}
        """Keys that a step sets or names, possibly too late."""
        for step, loops in steps:
            named = (_words_of(step) & self._uses.keys()) - declared
            self._mentioned |= named
            for name in named:
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
            if not self._is_set_in_time(name) and self._may_be_set(name)
        )

    def _is_set_in_time(self, name: str) -> bool:
        """Whether a step can set the key before it is read for the first time."""
        first_reading = _Readings(self._uses[name][:1])
        return any(first_reading.may_follow(*setter) for setter in self._setters.get(name, ()))

    def _may_be_set(self, name: str) -> bool:
        is_closed = self._schema.get("additionalProperties") is False
        return name in self._declared_in_schema or not is_closed

    def problems(self) -> Iterator[Problem]:
        for name, uses in self._uses.items():
            own_uses = [use for use in uses if not use.is_elsewhere]
            if self._declared_in_schema and name not in self._declared_in_schema and own_uses:
                yield self._undeclared_problem(name, own_uses[0])
            elif name not in self._mentioned:
                yield self._unset(name, uses[0])
            elif not self._is_set_in_time(name):
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
        example = key_example(name, self._uses.get(name, ()), self._schema)
        return _json(without_shortcuts(example, name, self._guards))


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


_OPTIONS_MAX = 12


def key_example(name: str, uses: Sequence[KeyUse], context_schema: Mapping[str, Any]) -> Json:
    """Return a value with blanks; the context schema says most about it, where there is one."""
    properties = context_schema.get("properties")
    declared: Any = cast("dict[str, Any]", properties or {}).get(name)
    if isinstance(declared, dict) and declared:
        shared = {key: context_schema[key] for key in ("$defs",) if key in context_schema}
        return with_blanks({**shared, **cast("dict[str, Any]", declared)})
    return _example([(use.path.split(".")[1:], use) for use in uses])


def _example(uses: list[tuple[list[str], KeyUse]]) -> Json:
    """Return the example of a value from the uses of it and of its parts."""
    parts: dict[str, list[tuple[list[str], KeyUse]]] = {}
    for path, use in uses:
        if path:
            parts.setdefault(path[0], []).append((path[1:], use))
    own_uses = [use for path, use in uses if not path]
    questions = {use.question for use in own_uses}
    is_list = "items" in questions or ("contains" in questions and "words" not in questions)
    if is_list or any(name.isdecimal() or name == "length" for name in parts):
        inner = [use for name, found in parts.items() if name.isdecimal() for use in found]
        contained = [
            value for use in own_uses if use.question == "contains" for value in use.values
        ]
        return [_example(inner) if inner else _value_blank(contained)]
    if parts:
        return {name: _example(found) for name, found in parts.items()}
    return _leaf(own_uses)


def _leaf(uses: list[KeyUse]) -> Json:
    counts = [use.passes_max for use in uses if use.question == "count"]
    if counts:
        return f"<whole number, 1 to {min(counts)}>"
    if any(use.question == "order" for use in uses):
        return "<number>"
    values: list[Json] = [value for use in uses for value in use.values if value is not None]
    if not values and any(use.question == "truth" for use in uses):
        return "<true or false>"
    return _value_blank(values)


def _value_blank(values: list[Json]) -> Json:
    texts = [str(value).lower() if isinstance(value, bool) else value for value in values]
    options = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
    if options and {option.casefold() for option in options} <= {"true", "false"}:
        return "<true or false>"
    if values and all(isinstance(value, int | float) for value in values):
        return "<number>"
    distinct = {option.casefold(): option for option in reversed(options)}
    options = [option for option in options if distinct[option.casefold()] == option]
    options = [option for option in options if option and "|" not in option and ">" not in option]
    if len(options) > 1:
        # Conditions name only some of the values that the author may have in mind.
        return choice((*options[:_OPTIONS_MAX], "another value"))
    return f"<text, like “{options[0]}”>" if options else "<text>"
