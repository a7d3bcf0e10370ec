"""Examples for criteria: what the notes must be like, and artifacts that satisfy the schemas."""

from collections.abc import Iterator, Mapping

from interlock.core.canonical import Json
from interlock.core.workflow import conditions
from interlock.core.workflow.blanks import with_blanks
from interlock.core.workflow.criteria import (
    And,
    ConditionalRule,
    ContainsRule,
    Criterion,
    LengthRule,
    Not,
    Or,
    RegexRule,
    Rule,
    SchemaRule,
)


def notes_demands(criterion: Criterion, scope: Mapping[str, Json]) -> tuple[str, ...]:
    """Return what the notes must be like, in the words of a blank."""
    return tuple(demand for rule in _rules(criterion, scope) if (demand := _notes_demand(rule)))


def artifacts(criterion: Criterion, scope: Mapping[str, Json]) -> Iterator[Json]:
    """Yield an artifact with blanks for each schema."""
    for rule in _rules(criterion, scope):
        if isinstance(rule, SchemaRule):
            yield with_blanks(rule.schema)


def _rules(criterion: Criterion, scope: Mapping[str, Json]) -> Iterator[Rule]:
    """Yield rules that are enough to meet the criterion; of alternatives, those of the first."""
    match criterion:
        case And(parts):
            for part in parts:
                yield from _rules(part, scope)
        case Or(parts):
            yield from _rules(parts[0], scope)
        case Not():
            pass  # an example that does not say a thing need not say so
        case ConditionalRule(condition, rule):
            if conditions.evaluate(condition, scope) is True:
                yield rule
        case _:
            yield criterion


def _notes_demand(rule: Rule) -> str:
    match rule:
        case ContainsRule(value):
            return f"with “{value}”"
        case RegexRule(pattern, flags):
            return f"matching /{pattern}/{flags}"
        case LengthRule(int(least), None):
            return f"at least {least} characters"
        case LengthRule(None, int(most)):
            return f"at most {most} characters"
        case LengthRule(least, most):
            return f"{least} to {most} characters"
        case SchemaRule():
            return ""
