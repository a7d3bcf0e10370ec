"""Compile parallel steps: a step that delegates, and one that brings the results together."""

import re
from typing import Any

from interlock.core import canonical
from interlock.core.ids import StepId
from interlock.core.workflow import prompt_texts
from interlock.core.workflow.compile_context import CompilerBase, Scope
from interlock.core.workflow.compiled_workflow import CompiledDelegation, SetKey
from interlock.core.workflow.definition import Delegation, Parallel, Step
from interlock.core.workflow.demand_compiler import DemandCompiler

_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
_DEMANDS = (
    "require_confirmation",
    "output_contract",
    "validation_criteria",
    "assessment_refs",
    "assessment_consequences",
    "notes_optional",
    "keep",
    "sets",
)
"""Fields of a parallel step that apply to the last of the steps it becomes."""


def steps_of(step: Parallel) -> tuple[Step, Step | None]:
    """Return the step that delegates, and the one that joins the results, if there is one."""
    demands: dict[str, Any] = {name: getattr(step, name) for name in _DEMANDS}
    delegating = Step(
        step.id,
        step.title,
        prompt_texts.delegations_text(step),
        agent_role=step.agent_role,
        model_tier=step.model_tier,
        guidance=step.guidance,
        read_only=step.read_only,
        **({} if step.synthesis else demands),
    )
    if step.synthesis is None:
        return delegating, None
    demands["output_contract"] = step.synthesis.output_contract or step.output_contract
    name, title = StepId(f"{step.id}__synthesis"), f"Synthesis: {step.title}"
    joining = Step(name, title, step.synthesis.prompt, read_only=step.read_only, **demands)
    return delegating, joining


def compiled_delegations(
    step: Parallel, scope: Scope, compiler: CompilerBase, demands: DemandCompiler
) -> tuple[CompiledDelegation, ...]:
    return tuple(
        _compile_one(delegation, f"/parallelDelegations/{index}", scope, compiler, demands)
        for index, delegation in enumerate(step.parallel_delegations)
    )


def result_keys(delegations: tuple[CompiledDelegation, ...]) -> tuple[SetKey, ...]:
    """Return the keys of the context that take results."""
    return tuple(
        SetKey(delegation.result_key, f'"<the result of part {number}>"', is_always_asked=True)
        for number, delegation in enumerate(delegations, start=1)
        if delegation.result_key
    )


def _compile_one(
    delegation: Delegation, at: str, scope: Scope, compiler: CompilerBase, demands: DemandCompiler
) -> CompiledDelegation:
    if not delegation.goal and not delegation.workflow_id:
        compiler.error("field", scope.pointer_to(at), "`goal` or `workflowId` is missing")
    if delegation.result_as:
        compiler.refuse_reserved_name(delegation.result_as, scope.pointer_to(f"{at}/resultAs"))
    values = {**delegation.args, **_mapped_values(delegation)}
    goal = prompt_texts.delegation_goal(delegation)
    when = demands.condition(delegation.run_condition, scope.pointer_to(f"{at}/runCondition"))
    return CompiledDelegation(
        goal=compiler.resolve_text(goal, scope.pointer_to(f"{at}/goal")),
        workflow_id=delegation.workflow_id or "",
        context={
            name: compiler.resolve_text(canonical.encode(value).decode(), scope.pointer_to(at))
            for name, value in sorted(values.items())
        },
        when=when,
        result_key=delegation.result_as or "",
        model_tier=delegation.model_tier,
        allowed_tools=delegation.allowed_tools,
    )


def _mapped_values(delegation: Delegation) -> dict[str, Any]:
    """Return `contextMapping` with a placeholder for each path into the context."""
    return {
        name: f"{{{{{value}}}}}" if isinstance(value, str) and _PATH.fullmatch(value) else value
        for name, value in delegation.context_mapping.items()
    }
