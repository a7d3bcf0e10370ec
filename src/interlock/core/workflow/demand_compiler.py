"""Compile the demands of steps and loops: conditions, contracts, criteria, approvals.

Each public method of `DemandCompiler` takes fields as they are written and returns the compiled
form. A field that is wrong adds to the problems of the compilation and does not stop it, so that
one pass over the file finds everything. A condition that was accepted is not parsed again for the
same JSON, nor a local contract for the same workflow and name. While a routine is expanded, names
of contracts and assessments are those of the routine (`resolving_names_in`).
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from interlock.core import canonical
from interlock.core.workflow import conditions, contracts, criteria, packs
from interlock.core.workflow.compiled_workflow import CompiledApproval
from interlock.core.workflow.contracts import Contract
from interlock.core.workflow.definition import (
    ApprovalWish,
    Assessment,
    ConditionSource,
    LoopRule,
    OutputContract,
    Step,
    Workflow,
)
from interlock.core.workflow.parsing import collect_problems
from interlock.core.workflow.placeholders import placeholder_paths
from interlock.core.workflow.problems import Problem, ProblemRule, suggest_nearest, warning

PointerTo = Callable[[str], str]
"""Return the pointer in the file for a path inside of a step."""


class Repetition(msgspec.Struct, frozen=True):
    """The number of passes of a loop: a condition, a decision of the agent, a list or a count."""

    condition: str | None = None
    condition_at: str = ""
    """The path of the condition within the loop."""
    control_id: str = ""
    items: str = ""
    count: int | str = 0


class DemandCompiler:
    """Compiles the demands of steps. Lives for one compilation and adds to its problems."""

    def __init__(self, workflow: Workflow, problems: list[Problem]) -> None:
        self._problems = problems
        self.current_workflow = workflow
        """The workflow whose steps are compiled now: the file's own, or a routine."""
        self._local_contracts: dict[tuple[str, str], Contract | None] = {}
        self._parsed_conditions: dict[bytes, str] = {}
        """Conditions by their JSON: many steps ask the same."""
        for name in workflow.contracts:
            self._local_contract(name, f"/contracts/{canonical.escape_pointer_part(name)}")
        self._refuse_duplicate_assessments(workflow)

    @contextmanager
    def resolving_names_in(self, routine: Workflow) -> Generator[None]:
        """Look up names of contracts and assessments in `routine` meanwhile."""
        outer_workflow, self.current_workflow = self.current_workflow, routine
        yield
        self.current_workflow = outer_workflow

    def condition(self, written: Any, at: str) -> str | None:
        """Return a condition in its canonical form; None where there is none, or it is wrong."""
        if written is None:
            return None
        key = msgspec.json.encode(written)
        if key in self._parsed_conditions:
            return self._parsed_conditions[key]
        parsed = conditions.parse(written, at)
        if isinstance(parsed, tuple):
            self._problems += [Problem("condition", flaw.pointer, flaw.message) for flaw in parsed]
            return None
        self._parsed_conditions[key] = canonical.encode(conditions.to_json(parsed)).decode()
        return self._parsed_conditions[key]

    def criteria(self, step: Step, pointer_to: PointerTo) -> str | None:
        if step.validation_criteria is None:
            return None
        at = pointer_to("/validationCriteria")
        parsed = criteria.parse(step.validation_criteria, at)
        if isinstance(parsed, tuple):
            self._problems += [Problem("criteria", flaw.pointer, flaw.message) for flaw in parsed]
            return None
        if step.output_contract:
            message = "`outputContract` counts and the criteria do not"
            self._problems.append(warning("criteria", at, message, "Leave out one of the two."))
            return None
        return canonical.encode(criteria.to_json(parsed)).decode()

    def contract(self, reference: OutputContract | None, at: str) -> Contract | None:
        if reference is None:
            return None
        name = packs.contract_name(reference.contract_ref)
        contract = (
            self._local_contract(name, at) if name in self.current_workflow.contracts else None
        )
        contract = contract or contracts.built_in_contract(name)
        if contract is None:
            if name not in self.current_workflow.contracts:
                known_names = (*packs.names(), *self.current_workflow.contracts)
                message = f"there is no contract `{reference.contract_ref}`"
                self._error(
                    "contract", f"{at}/contractRef", message, suggest_nearest(name, known_names)
                )
            return None
        return msgspec.structs.replace(
            contract, is_required=reference.required, is_kept=reference.keep
        )

    def confirmation(self, step: Step, pointer_to: PointerTo) -> bool | str:
        written = step.require_confirmation
        if isinstance(written, bool) or "kind" in written:
            return written is True
        return self.condition(written, pointer_to("/requireConfirmation")) or False

    def approval(self, step: Step, pointer_to: PointerTo) -> CompiledApproval | None:
        written, at = step.require_confirmation, pointer_to("/requireConfirmation")
        if isinstance(written, bool) or "kind" not in written:
            return None
        try:
            wish = msgspec.convert(written, ApprovalWish)
        except msgspec.ValidationError:
            self._problems += collect_problems(ApprovalWish, written, at)
            return None
        minutes = wish.timeout_minutes
        if wish.question and placeholder_paths(wish.question):
            message = "the question is shown as it is written: nothing is filled in"
            self._problems.append(warning("prompt", f"{at}/question", message))
        return CompiledApproval(
            wish.kind,
            wish.question or f"Is “{step.title}” done as it should be, so that the run may go on?",
            self.condition(wish.condition, f"{at}/condition"),
            minutes * 60_000 if minutes else None,
            wish.on_timeout,
        )

    def assessments(self, step: Step, pointer_to: PointerTo) -> tuple[Assessment, ...]:
        assessments_by_id = {
            assessment.id: assessment for assessment in self.current_workflow.assessments
        }
        for index, name in enumerate(step.assessment_refs):
            if name not in assessments_by_id:
                message = f"there is no assessment `{name}`"
                at = pointer_to(f"/assessmentRefs/{index}")
                self._error("assessment", at, message, suggest_nearest(name, assessments_by_id))
            elif name in step.assessment_refs[:index]:
                at = pointer_to(f"/assessmentRefs/{index}")
                self._error("assessment", at, f"`{name}` is there twice")
        distinct_names = dict.fromkeys(step.assessment_refs)
        chosen = tuple(
            assessments_by_id[name] for name in distinct_names if name in assessments_by_id
        )
        for index, consequence in enumerate(step.assessment_consequences):
            at, when = pointer_to(f"/assessmentConsequences/{index}/when"), consequence.when
            targets = [
                assessment for assessment in chosen if when.for_assessment in (None, assessment.id)
            ]
            dimensions = [
                dimension for assessment in targets for dimension in assessment.dimensions
            ]
            levels = {level.casefold() for dimension in dimensions for level in dimension.levels}
            if when.any_equals_level.casefold() not in levels:
                message = f"no assessment of this step has the level `{when.any_equals_level}`"
                self._error(
                    "assessment", f"{at}/anyEqualsLevel", message, suggest_nearest("", levels)
                )
            if when.for_assessment not in (None, *(assessment.id for assessment in chosen)):
                message = f"this step has no assessment `{when.for_assessment}`"
                self._error("assessment", f"{at}/forAssessment", message)
        return chosen

    def repetition(self, rule: LoopRule, at: str) -> Repetition:
        for name, loop_type in (("items", "forEach"), ("count", "for")):
            if getattr(rule, name) is not None and rule.type != loop_type:
                message = f"`{name}` has no meaning for `{rule.type}`: it belongs to `{loop_type}`"
                self._problems.append(warning("no-meaning", f"{at}/{name}", message))
        if rule.type in ("while", "until"):
            return self._conditional_repetition(rule, at)
        for name, value in (
            ("condition", rule.condition),
            ("conditionSource", rule.condition_source),
        ):
            if value is not None:
                message = f"`{rule.type}` has no condition: this one is ignored"
                self._problems.append(warning("no-meaning", f"{at}/{name}", message))
        if rule.type == "forEach":
            if not rule.items:
                message = "`forEach` needs `items`: the name of a list in the context"
                self._error("loop", at, message)
            return Repetition(items=rule.items or "")
        if rule.count is None:
            self._error(
                "loop", at, "`for` needs `count`: a number, or the name of one in the context"
            )
        elif isinstance(rule.count, int) and rule.count < 0:
            self._error("loop", f"{at}/count", "a count is 0 or more")
        elif isinstance(rule.count, int) and not 1 <= rule.count <= rule.max_iterations:
            passes = min(rule.count, rule.max_iterations)
            message = (
                f"`count` is {rule.count} and `maxIterations` {rule.max_iterations}:"
                f" there will be {passes or 'no'} passes"
            )
            self._problems.append(warning("loop", f"{at}/count", message))
            return Repetition(count=passes)
        return Repetition(count=rule.count or 0)

    def _conditional_repetition(self, rule: LoopRule, at: str) -> Repetition:
        source = rule.condition_source
        if source and source.kind == "artifact_contract":
            return self._agent_controlled_repetition(rule, source, at)
        written = [
            (source.condition if source else None, "conditionSource/condition"),
            (rule.condition, "condition"),
        ]
        present = [(condition, path) for condition, path in written if condition is not None]
        if not present:
            if source:
                self._error("loop", f"{at}/conditionSource", "`condition` is missing")
            return Repetition()
        if len(present) > 1:
            message = "`conditionSource` counts and the condition does not"
            self._problems.append(warning("loop", f"{at}/condition", message))
        condition, path = present[0]
        if not self.current_workflow.is_foreign:
            message = "this loop is steered by a value that the agent has to keep right"
            hint = "Leave the condition out: the agent then decides with `loop_control`."
            self._problems.append(warning("style", f"{at}/{path}", message, hint))
        return Repetition(self.condition(condition, f"{at}/{path}"), f"loop/{path}")

    def _agent_controlled_repetition(
        self, rule: LoopRule, source: ConditionSource, at: str
    ) -> Repetition:
        if packs.contract_name(source.contract_ref or "loop_control") != "loop_control":
            message = f"a loop is controlled by `loop_control`, not by `{source.contract_ref}`"
            self._error("loop", f"{at}/conditionSource/contractRef", message)
        written = ((rule.condition, "condition"), (source.condition, "conditionSource/condition"))
        for condition, path in written:
            if condition is not None:
                message = "the agent decides with `loop_control`, and this condition does not count"
                self._problems.append(warning("loop", f"{at}/{path}", message))
        return Repetition(control_id=source.loop_id or "")

    def _local_contract(self, name: str, at: str) -> Contract | None:
        key = (self.current_workflow.id, name)
        if key not in self._local_contracts:
            definition = self.current_workflow.contracts[name]
            result = contracts.local_contract(name, definition.schema, definition.example, at)
            if isinstance(result, tuple):
                self._problems += [
                    Problem("contract", flaw.pointer, flaw.message) for flaw in result
                ]
            self._local_contracts[key] = None if isinstance(result, tuple) else result
        return self._local_contracts[key]

    def _refuse_duplicate_assessments(self, workflow: Workflow) -> None:
        seen_ids: set[str] = set()
        for index, assessment in enumerate(workflow.assessments):
            if assessment.id in seen_ids:
                message = f"the assessment `{assessment.id}` is defined twice"
                self._error("assessment", f"/assessments/{index}/id", message)
            seen_ids.add(assessment.id)

    def _error(self, rule: ProblemRule, at: str, message: str, suggestion: str = "") -> None:
        self._problems.append(Problem(rule, at, message, suggestion))
