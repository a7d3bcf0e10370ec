"""Criteria: the demands of a workflow author on a step's output (`validationCriteria`), as data.

Four rules, and three ways to join them; a bare list means `and`:

    {"type": "contains", "value": "…"}               the notes contain the text
    {"type": "regex", "pattern": "…", "flags": "i"}  it is found in the notes (flags: i, m, s)
    {"type": "length", "min": 40, "max": 400}        of the notes, in characters
    {"type": "schema", "schema": {…}}                at least one artifact satisfies it (2020-12)
    {"and": […]}  {"or": […]}  {"not": …}

A rule may carry a `message`: the author's words, which are then put before ours; and a
`condition`: where that does not hold, the rule does not count, as if it were not written. Capitals
count in `contains`, as they always did in these files; a regex with the flag `i` ignores them.

`parse` reads the tree and collects its rules, then adds up the cost of their patterns and schemas
(`schemas.CostTally`); it returns all flaws at once. `check` walks the tree with three outcomes for
each part: issues, no issues (it is met), or None (it does not count). A condition without an answer
makes an issue of its own; a part with only such issues may be met or not: `not`, `or` pass them on.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import conditions, schemas
from interlock.core.workflow.conditions import Condition, Flaw, UnusableValue
from interlock.core.workflow.operators import clip, quote
from interlock.core.workflow.patterns import compile_pattern

TEXT_LENGTH_MAX = 1_000
BYTES_MAX = 256 * 1024
COUNT_MAX = 100
NESTING_MAX = 16
LINES_MAX = 8

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LENGTH_MAX)]
Size = Annotated[int, msgspec.Meta(ge=1)]


class _RuleStruct(
    msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, omit_defaults=True
):
    pass


class ContainsRule(_RuleStruct, frozen=True, tag="contains"):
    value: Text
    message: Text | None = None


class RegexRule(_RuleStruct, frozen=True, tag="regex"):
    pattern: Text
    flags: Annotated[str, msgspec.Meta(pattern="^i?m?s?$")] = ""
    message: Text | None = None


class LengthRule(_RuleStruct, frozen=True, tag="length"):
    min: Size | None = None
    max: Size | None = None
    message: Text | None = None


class SchemaRule(_RuleStruct, frozen=True, tag="schema"):
    schema: dict[str, Any]
    message: Text | None = None


Rule: TypeAlias = ContainsRule | RegexRule | LengthRule | SchemaRule


class ConditionalRule(msgspec.Struct, frozen=True):
    """A rule that counts only where its condition holds."""

    condition: Condition
    rule: Rule


class And(msgspec.Struct, frozen=True):
    parts: "tuple[Criterion, ...]"


class Or(msgspec.Struct, frozen=True):
    parts: "tuple[Criterion, ...]"


class Not(msgspec.Struct, frozen=True):
    part: "Criterion"


Criterion: TypeAlias = Rule | ConditionalRule | And | Or | Not


class Issue(msgspec.Struct, frozen=True):
    """One demand that is not met. `pointer` is its place in the output of `to_json`."""

    rule: Literal["contains", "regex", "length", "schema", "or", "not", "condition"]
    pointer: str
    message: str
    suggestion: str


class _OutputUnderCheck(msgspec.Struct, frozen=True):
    """The output that criteria are checked against. `artifacts` have canonical forms."""

    notes: str
    artifacts: Sequence[Json]
    context: Mapping[str, Json]
    is_lenient: bool


def parse(value: Json, pointer: str = "") -> Criterion | tuple[Flaw, ...]:
    """Return the criteria, or everything that is wrong with them. `pointer` is their place."""
    result = schemas.canonical_value(value, pointer, bytes_max=BYTES_MAX)
    if isinstance(result, Flaw):
        return (result,)
    state = _CriteriaParseState()
    criterion = _read_criterion(result[0], pointer, state)
    if len(state.rules) > COUNT_MAX:
        state.refuse(pointer, f"more than {COUNT_MAX} rules")
    for at, rule in state.rules[:COUNT_MAX]:
        _weigh_rule(rule, at, state)
        if state.refuse_excess(at):
            break
    if criterion is None or state.flaws:
        return tuple(dict.fromkeys(state.flaws))
    return criterion


def unpack(content: bytes | msgspec.Raw) -> Criterion:
    """Return criteria that `parse` accepted before; their cost is not checked again."""
    state = _CriteriaParseState(is_trusted=True)
    criterion = _read_criterion(msgspec.json.decode(content), "", state)
    assert not state.flaws, f"these criteria were never taken: {state.flaws}"
    return cast("Criterion", criterion)


def to_json(criterion: Criterion) -> Json:
    """Return the one form of the criteria that is hashed, whichever way they were written."""
    match criterion:
        case And(parts):
            return {"and": [to_json(part) for part in parts]}
        case Or(parts):
            return {"or": [to_json(part) for part in parts]}
        case Not(part):
            return {"not": to_json(part)}
        case ConditionalRule(condition, rule):
            rule_json = cast("dict[str, Json]", to_json(rule))
            return {**rule_json, "condition": conditions.to_json(condition)}
        case _:
            return msgspec.json.decode(msgspec.json.encode(criterion))


def check(
    criterion: Criterion,
    *,
    notes: str,
    artifacts: Sequence[Json],
    context: Mapping[str, Json] = {},
    is_lenient: bool = False,
) -> tuple[Issue, ...]:
    """Return the demands that are not met, if any. `artifacts` have canonical forms."""
    return _issues_of(criterion, _OutputUnderCheck(notes, artifacts, context, is_lenient), "") or ()


def _issues_of(
    criterion: Criterion, output: _OutputUnderCheck, at: str
) -> tuple[Issue, ...] | None:
    """Return the issues, or None if the criterion does not count.

    Where all issues are about conditions, nobody knows whether the criterion is met.
    """
    match criterion:
        case ConditionalRule(condition, rule):
            answer = conditions.evaluate(condition, output.context, is_lenient=output.is_lenient)
            if isinstance(answer, UnusableValue):
                return (_condition_issue(answer, at),)
            return _issues_of(rule, output, at) if answer else None
        case And(parts):
            issues_of_parts = _issues_of_parts(parts, output, f"{at}/and")
            return (
                tuple(issue for issues in issues_of_parts for issue in issues)
                if issues_of_parts
                else None
            )
        case Or(parts):
            issues_of_parts = _issues_of_parts(parts, output, f"{at}/or")
            return _unmet_alternatives(issues_of_parts, at) if issues_of_parts else None
        case Not(part):
            issues = _issues_of(part, output, f"{at}/not")
            if issues is None or (issues and all(map(_is_condition_issue, issues))):
                return issues
            message = f"This is so and must not be: {_describe(part)}"
            remedy = f"Make a change, so that this is not so: {_describe(part)}."
            return () if issues else (Issue("not", at, message, remedy),)
        case _:
            fault_and_remedy = _fault_and_remedy(criterion, output.notes, output.artifacts)
            kind: Any = criterion.__struct_config__.tag
            return (Issue(kind, at, *fault_and_remedy),) if fault_and_remedy else ()


def _issues_of_parts(
    parts: Sequence[Criterion], output: _OutputUnderCheck, at: str
) -> list[tuple[Issue, ...]]:
    issues_or_none = [_issues_of(part, output, f"{at}/{index}") for index, part in enumerate(parts)]
    return [issues for issues in issues_or_none if issues is not None]


def _unmet_alternatives(issues_of_parts: list[tuple[Issue, ...]], at: str) -> tuple[Issue, ...]:
    """Return the issues of alternatives that count: none, if one of them is met."""
    if not all(issues_of_parts):
        return ()
    if undecided := [issues for issues in issues_of_parts if all(map(_is_condition_issue, issues))]:
        return tuple(issue for issues in undecided for issue in issues)
    fewest = min(issues_of_parts, key=len)
    message = clip("; nor: ".join(issues[0].message for issues in issues_of_parts), 1_000)
    message = f"None of the {len(issues_of_parts)} alternatives is met: {message}"
    return (Issue("or", at, message, " ".join(issue.suggestion for issue in fewest)),)


def _condition_issue(unusable: UnusableValue, at: str) -> Issue:
    message = f"Whether this rule counts cannot be said: {unusable.message}"
    remedy = f"Set `{unusable.var}` in the context to a value that can be compared."
    return Issue("condition", f"{at}/condition{unusable.pointer}", message, remedy)


def _is_condition_issue(issue: Issue) -> bool:
    return issue.rule == "condition"


def requirements(criterion: Criterion) -> tuple[str, ...]:
    """Return the demands in a few lines, for whoever has to meet them."""
    parts = criterion.parts if isinstance(criterion, And) else (criterion,)
    lines = [clip(_describe(part), 500) for part in parts]
    if len(lines) > LINES_MAX:
        omitted_count = len(lines) - LINES_MAX + 1
        lines[LINES_MAX - 1 :] = [
            f"and {omitted_count} more; a rejection names those that are not met"
        ]
    return tuple(line[0].upper() + line[1:] for line in lines)


class _CriteriaParseState(schemas.CostTally):
    """The flaws, costs and rules so far."""

    rules: list[tuple[str, Rule | ConditionalRule]] = msgspec.field(
        default_factory=list[tuple[str, Rule | ConditionalRule]]
    )
    is_trusted: bool = False
    """Whether these criteria were parsed and accepted before."""


def _read_criterion(
    value: Any, at: str, state: _CriteriaParseState, depth: int = 0
) -> Criterion | None:
    if depth > NESTING_MAX:
        return state.refuse(at, f"nested more than {NESTING_MAX} deep")
    match value:
        case [_, *_]:
            return And(_read_parts(value, at, state, depth))
        case {"and": [_, *_] as parts, **rest} if not rest:
            return And(_read_parts(parts, f"{at}/and", state, depth))
        case {"or": [_, *_] as parts, **rest} if not rest:
            return Or(_read_parts(parts, f"{at}/or", state, depth))
        case {"not": inner, **rest} if not rest:
            part = _read_criterion(inner, f"{at}/not", state, depth + 1)
            return Not(part) if part else None
        case {"type": "contains" | "regex" | "length" | "schema"}:
            return _read_rule(value, at, state)
        case _:
            message = "wants a `type` (contains, regex, length or schema), or just one of"
            return state.refuse(
                at, f"{message} `and`, `or` (with a list that is not empty) and `not`"
            )


def _read_parts(
    parts: Sequence[Any], at: str, state: _CriteriaParseState, depth: int
) -> tuple[Criterion, ...]:
    parsed = [_read_criterion(part, f"{at}/{i}", state, depth + 1) for i, part in enumerate(parts)]
    return tuple(part for part in parsed if part)


def _read_rule(
    value: dict[str, Any], at: str, state: _CriteriaParseState
) -> Rule | ConditionalRule | None:
    condition = _read_condition(value.get("condition"), f"{at}/condition", state)
    try:
        rule = msgspec.convert({key: value[key] for key in value if key != "condition"}, Rule)
    except msgspec.ValidationError as error:
        # msgspec says "message - at `$.value`"; the path is left out when it is the whole rule.
        message, _, path = str(error).partition(" - at `$")
        return state.refuse(at + path.rstrip("`").replace(".", "/"), message)
    criterion = ConditionalRule(condition, rule) if condition else rule
    state.rules.append((at, criterion))
    return criterion


def _read_condition(value: Json, at: str, state: _CriteriaParseState) -> Condition | None:
    if value is None or state.is_trusted:
        return None if value is None else conditions.unpack(msgspec.json.encode(value))
    parsed = conditions.parse(value, at)
    if not isinstance(parsed, tuple):
        return parsed
    for flaw in parsed:
        state.refuse(flaw.pointer, flaw.message)
    return None


def _weigh_rule(rule: Rule | ConditionalRule, at: str, state: _CriteriaParseState) -> None:
    """Refuse a rule that makes no sense, and add up the cost of the rest."""
    match rule:
        case ConditionalRule(condition, inner):
            for pattern in _patterns_in(conditions.to_json(condition)):
                schemas.weigh_pattern(pattern, f"{at}/condition", state)
            _weigh_rule(inner, at, state)
        case RegexRule(pattern, flags):
            schemas.weigh_pattern(pattern, f"{at}/pattern", state, flags)
        case LengthRule(None, None):
            state.refuse(at, "wants `min` or `max`")
        case LengthRule(int(least), int(most)) if least > most:
            state.refuse(at, f"no text has at least {least} and at most {most} characters")
        case SchemaRule(schema):
            schemas.weigh(schema, f"{at}/schema", state)
        case _:
            pass


def _patterns_in(condition: Json) -> Iterator[str]:
    """Yield all patterns in a condition, as `conditions.to_json` returns it."""
    match condition:
        case {"and": list(parts)} | {"or": list(parts)}:
            for part in parts:
                yield from _patterns_in(part)
        case {"not": part}:
            yield from _patterns_in(part)
        case {"matches": str(pattern)}:
            yield pattern
        case _:
            pass


def _fault_and_remedy(rule: Rule, notes: str, artifacts: Sequence[Json]) -> tuple[str, str] | None:
    """Return the fault and its remedy; None if the rule is met."""
    size, text = len(notes), notes.encode(errors="replace")
    match rule:
        case ContainsRule(value) if value not in notes:
            capitals_hint = " with these capitals" if value.lower() in notes.lower() else ""
            fault = f"The notes do not contain {quote(value, BYTES_MAX)}{capitals_hint}"
            remedy = f"Write this in the notes: {quote(value, BYTES_MAX)}"
        case RegexRule(pattern, flags) if not compile_pattern(pattern, flags).search(text):
            fault = f"Nothing in the notes matches /{pattern}/{flags}"
            remedy = f"Write something in the notes that matches /{pattern}/{flags}"
        case LengthRule(int(least)) if size < least:
            fault = f"The notes are too short: {size} of at least {least} characters"
            remedy = f"Add {least - size} or more characters."
        case LengthRule(_, int(most)) if size > most:
            fault = f"The notes are too long: {size} of at most {most} characters"
            remedy = f"Remove {size - most} or more characters."
        case SchemaRule(schema) if not any(map(schemas.validator(schema), artifacts)):
            fault = _schema_mismatch(schema, artifacts)
            remedy = f"Submit an artifact that satisfies this schema: {quote(schema, 2_000)}"
        case _:
            return None
    return (f"{rule.message.rstrip('.:')}: {fault}" if rule.message else fault), remedy


def _schema_mismatch(schema: dict[str, Any], artifacts: Sequence[Json]) -> str:
    if not artifacts:
        return "There is no artifact; one is wanted that satisfies the schema"
    subject = "The artifact" if len(artifacts) == 1 else f"The first of {len(artifacts)} artifacts"
    error = schemas.first_error(schema, artifacts[0])
    if error is None:
        return f"{subject} does not satisfy the schema"
    location = f" at {error.pointer}" if error.pointer else ""
    return f"{subject} does not satisfy the schema{location}: {error.message}"


def _describe(criterion: Criterion) -> str:
    """Return the demand as a clause."""
    match criterion:
        case And(parts):
            return f"all of these: ({'; and '.join(map(_describe, parts))})"
        case Or(parts):
            return f"one of these: ({'; or '.join(map(_describe, parts))})"
        case Not(part):
            return f"this is not so: ({_describe(part)})"
        case ConditionalRule(condition, rule):
            return f"if {conditions.describe(condition)}: {_describe(rule)}"
        case ContainsRule(value):
            demand = f"the notes contain {quote(value, BYTES_MAX)}"
        case RegexRule(pattern, flags):
            demand = f"something in the notes matches /{pattern}/{flags}"
        case LengthRule(least, most):
            bounds = [f"at {word} {n}" for word, n in (("least", least), ("most", most)) if n]
            demand = f"the notes have {' and '.join(bounds)} characters"
        case SchemaRule(schema):
            demand = f"an artifact satisfies the JSON Schema {quote(schema, 300)}"
    return f"{criterion.message.rstrip('.')} ({demand})" if criterion.message else demand
