"""Compile the steps of a workflow: loops, routines and delegations become a tree of steps.

Blocks are compiled from the outside in and in the order of the file (`_compile_block`), each with a
`Scope` that says what applies to its steps: the prefix of ids, the functions, the pointer, and what
brought the steps in. A step becomes itself and the steps that the compiler puts after it
(verification, audit). A loop gets its body, which may be a step beside it, and a step that owes the
decision where the agent controls it. A call becomes the routine's steps (`call_compiler`), and a
parallel step a delegating step and, if the file asks for one, a synthesis step. Several parts under
one condition become a group, so that the condition is evaluated once.

Whatever is wrong is added to `problems`, and compiling goes on, as far as the limits on steps,
nesting and size allow. Numbers of steps follow the order in which steps are built.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from interlock.core.ids import StepId
from interlock.core.workflow import delegation_compiler, prompt_texts, routines
from interlock.core.workflow.call_compiler import CallCompiler
from interlock.core.workflow.compile_context import CompilerBase, Library, Scope
from interlock.core.workflow.compiled_workflow import (
    CompiledFragment,
    CompiledLoop,
    CompiledPart,
    CompiledStep,
    InjectedPart,
    SetKey,
)
from interlock.core.workflow.definition import (
    STEPS_MAX,
    AnyStep,
    Function,
    Loop,
    OutputContract,
    Parallel,
    Step,
    TemplateCall,
    Workflow,
)
from interlock.core.workflow.demand_compiler import DemandCompiler
from interlock.core.workflow.name_checks import function_problems, functions_by_name, known_features
from interlock.core.workflow.problems import suggest_nearest

NESTING_MAX = 5  # of loops in loops


_LocatedSteps: TypeAlias = tuple[tuple[AnyStep, str], ...]
"""Steps, each with its pointer in the file."""


def _with_pointers(steps: tuple[AnyStep, ...], at: str) -> _LocatedSteps:
    return tuple((step, f"{at}/{index}") for index, step in enumerate(steps))


class StepCompiler(CompilerBase):
    """Compiles the steps of one workflow. Lives for one compilation, as its base does."""

    def __init__(self, workflow: Workflow, library: Library) -> None:
        super().__init__(workflow, library)
        self._workflow = workflow
        self._loop_bodies: list[AnyStep] = []
        """Steps that were compiled as the body of a loop beside them."""
        self._features = known_features(workflow, self.problems)
        self._demands = DemandCompiler(workflow, self.problems)
        self._calls = CallCompiler(workflow, library, self.problems)

    def compile_steps(self) -> tuple[CompiledPart, ...]:
        workflow = self._workflow
        definitions = workflow.function_definitions
        functions = functions_by_name(definitions, "/functionDefinitions", self.problems)
        steps = workflow.steps
        if workflow.kind == "routine":
            # Started by itself, it takes its arguments from the context.
            arguments = {name: f"{{{{{name}}}}}" for name in workflow.inputs}
            steps = tuple(routines.with_arguments(step, arguments) or step for step in steps)
        return self._compile_block(
            _with_pointers(steps, "/steps"), Scope("/steps", functions=functions)
        )

    def _compile_block(self, steps: _LocatedSteps, scope: Scope) -> tuple[CompiledPart, ...]:
        loop_bodies = (step.body for step, _ in steps if isinstance(step, Loop))
        body_ids = {body for body in loop_bodies if isinstance(body, str)}
        parts: list[CompiledPart] = []
        for step, at in steps:
            here = msgspec.structs.replace(scope, at=scope.at if scope.is_elsewhere else at)
            if step.id in body_ids:
                continue  # it is the body of a loop beside it
            if self.step_count > STEPS_MAX or self.is_too_large:
                break
            match step:
                case Step():
                    parts += self._compile_step(step, here)
                case Loop():
                    parts.append(self._compile_loop(step, here, steps))
                case TemplateCall():
                    parts += self._expand_call(step, here)
                case Parallel():
                    parts += self._compile_parallel(step, here)
        for step, at in steps:
            is_compiled = any(step is body for body in self._loop_bodies)
            if step.id in body_ids and not is_compiled and not self.is_too_large:
                message = (
                    f"no way leads to `{step.id}`: it is the body of a loop that is not reached"
                )
                self.error("unreachable", scope.at if scope.is_elsewhere else at, message)
        return tuple(parts)

    def _compile_step(self, step: Step, scope: Scope) -> tuple[CompiledPart, ...]:
        """Compile the step, and the steps that the compiler puts after it."""
        functions = self._functions_in_scope(step, scope)
        self.problems += function_problems(
            step, functions, self._demands.current_workflow, scope.pointer_to
        )
        if (step.prompt is None) == (step.prompt_blocks is None):
            self.error("prompt", scope.at, "a step has either `prompt` or `promptBlocks`")

        def report_missing_passage(name: str) -> None:
            self.error(
                "reference", scope.pointer_to("/promptBlocks"), f"there is no passage `{name}`"
            )

        for index, line in enumerate(step.guidance):
            self.check_placeholders(line, scope.pointer_to(f"/guidance/{index}"))
        without_guidance = msgspec.structs.replace(step, guidance=())
        own_text = prompt_texts.step_text(without_guidance, (), functions, report_missing_passage)
        self.check_placeholders(
            own_text, scope.pointer_to("/prompt" if step.prompt else "/promptBlocks")
        )
        features = self._features.values()
        text = prompt_texts.step_text(step, features, functions, lambda _: None)
        compiled = self._build_step(step, text, scope)
        by_feature = (InjectedPart("text", f"feature {name}") for name in self._features)
        injected = (*compiled.injected, *by_feature)
        parts = [msgspec.structs.replace(compiled, injected=injected)]
        if step.verification:
            verification_text = prompt_texts.verification_text(step, step.verification)
            parts.append(self._follow_up_step(step, "verification", verification_text, scope))
        if step.audit:
            parts.append(
                self._follow_up_step(
                    step, "audit", prompt_texts.audit_text(step, step.audit), scope
                )
            )
        return self._under_condition(step.run_condition, tuple(parts), step.id, scope)

    def _under_condition(
        self, written: Any, parts: tuple[CompiledPart, ...], step_id: StepId, scope: Scope
    ) -> tuple[CompiledPart, ...]:
        """Return the parts under one condition, which is evaluated once for all of them."""
        condition = self._demands.condition(written, scope.pointer_to("/runCondition"))
        if condition is None or not parts:
            return parts
        if len(parts) == 1 and parts[0].run_condition is None:
            return (msgspec.structs.replace(parts[0], run_condition=condition),)
        return (
            CompiledLoop(
                id=StepId(f"{scope.prefix}{step_id}"),
                title=parts[0].title,
                kind="group",
                passes_max=1,
                body=parts,
                pointer=scope.at,
                is_elsewhere=scope.is_elsewhere,
                run_condition=condition,
            ),
        )

    def _build_step(self, step: Step, text: str, scope: Scope) -> CompiledStep:
        demands = self._demands
        number = self.next_step_number(step.id, scope)
        return CompiledStep(
            id=StepId(f"{scope.prefix}{step.id}"),
            title=self.resolve_text(step.title, scope.pointer_to("/title")),
            prompt=self.fill_slots(
                text, scope.pointer_to("/prompt" if step.prompt else "/promptBlocks")
            ),
            number=number,
            pointer=scope.at,
            is_elsewhere=scope.is_elsewhere,
            agent_role=self.resolve_text(step.agent_role or "", scope.pointer_to("/agentRole")),
            model_tier=step.model_tier,
            fragments=tuple(
                CompiledFragment(
                    fragment.id,
                    self.resolve_text(
                        fragment.text, scope.pointer_to(f"/promptFragments/{index}/text")
                    ),
                    demands.condition(
                        fragment.when, scope.pointer_to(f"/promptFragments/{index}/when")
                    ),
                )
                for index, fragment in enumerate(step.prompt_fragments)
            ),
            confirms=demands.confirmation(step, scope.pointer_to),
            approval=demands.approval(step, scope.pointer_to),
            contract=self.contract_within_limit(
                demands.contract(step.output_contract, scope.pointer_to("/outputContract"))
            ),
            validation_criteria=demands.criteria(step, scope.pointer_to),
            user_only=step.user_only,
            assessments=demands.assessments(step, scope.pointer_to),
            consequences=step.assessment_consequences,
            notes_optional=step.notes_optional,
            read_only=step.read_only,
            keep=step.keep,
            sets=self._declared_keys(step, scope),
            injected=scope.injected,
        )

    def _declared_keys(self, step: Step, scope: Scope) -> tuple[SetKey, ...]:
        for index, name in enumerate(step.sets):
            self.refuse_reserved_name(name, scope.pointer_to(f"/sets/{index}"))
        return tuple(SetKey(name, "", is_always_asked=True) for name in dict.fromkeys(step.sets))

    def _functions_in_scope(self, step: Step | Loop, scope: Scope) -> dict[str, Function]:
        at = scope.pointer_to("/functionDefinitions")
        own = functions_by_name(step.function_definitions, at, self.problems)
        return {**scope.functions, **own}

    def _follow_up_step(
        self, step: Step, part: Literal["verification", "audit"], text: str, scope: Scope
    ) -> CompiledStep:
        """Return a step that the compiler puts after `step`."""
        contract = OutputContract("verification") if part == "verification" else None
        inner = Step(
            StepId(f"{step.id}__{part}"),
            f"{part.capitalize()}: {step.title}",
            text,
            output_contract=contract,
            notes_optional=part == "verification",
            read_only=step.read_only,
        )
        by = InjectedPart("step", f"{part} of {step.id}")
        here = msgspec.structs.replace(
            scope,
            at=scope.pointer_to(f"/{part}"),
            injected=(*scope.injected, by),
            is_elsewhere=True,
        )
        compiled = self._build_step(inner, text, here)
        if part == "audit" or step.verification is None:
            return compiled
        command = self.fill_slots(step.verification.command, here.at)
        return msgspec.structs.replace(compiled, verification=command)

    def _compile_loop(self, step: Loop, scope: Scope, siblings: _LocatedSteps) -> CompiledLoop:
        self.claim_id(step.id, scope)
        body: tuple[CompiledPart, ...] = ()
        if scope.loops == NESTING_MAX:
            self.error("loop", scope.at, f"loops are nested more than {NESTING_MAX} deep")
        else:
            inner = msgspec.structs.replace(
                scope, functions=self._functions_in_scope(step, scope), loops=scope.loops + 1
            )
            body = self._compile_block(self._loop_body(step, scope, siblings), inner)
        repetition = self._demands.repetition(step.loop, scope.pointer_to("/loop"))
        for name in ("iteration_var", "item_var", "index_var"):
            self.refuse_reserved_name(getattr(step.loop, name), scope.pointer_to("/loop"))
        loop = CompiledLoop(
            id=StepId(f"{scope.prefix}{step.id}"),
            title=self.resolve_text(step.title, scope.pointer_to("/title")),
            kind=step.loop.type,
            passes_max=step.loop.max_iterations,
            body=body,
            pointer=scope.at,
            is_elsewhere=scope.is_elsewhere,
            iteration_var=step.loop.iteration_var,
            item_var=step.loop.item_var,
            index_var=step.loop.index_var,
            run_condition=self._demands.condition(
                step.run_condition, scope.pointer_to("/runCondition")
            ),
            condition=repetition.condition,
            condition_at=repetition.condition_at,
            control_id=repetition.control_id,
            items=repetition.items,
            count=repetition.count,
        )
        return self._with_decision_step(loop, scope) if loop.is_controlled and body else loop

    def _loop_body(self, step: Loop, scope: Scope, siblings: _LocatedSteps) -> _LocatedSteps:
        """Return the steps of a loop: those in it, or the one beside it that it names."""
        if not isinstance(step.body, str):
            if not step.body:
                self.error(
                    "loop", scope.pointer_to("/body"), "a loop goes round over at least one step"
                )
            return _with_pointers(step.body, scope.pointer_to("/body"))
        named_steps = tuple(
            pair for pair in siblings if pair[0].id == step.body and pair[0] is not step
        )
        if not named_steps:
            message = f"no step `{step.body}` stands beside this loop"
            hint = suggest_nearest(step.body, (sibling.id for sibling, _ in siblings))
            self.error("loop", scope.pointer_to("/body"), message, hint)
        self._loop_bodies += [sibling for sibling, _ in named_steps[:1]]
        return named_steps[:1]

    def _with_decision_step(self, loop: CompiledLoop, scope: Scope) -> CompiledLoop:
        """Return the loop with a step in its body that owes the decision, whatever is skipped."""
        decision_contract = self._demands.contract(OutputContract("loop_control"), scope.at)
        unconditional = [
            part
            for part in loop.body
            if isinstance(part, CompiledStep) and part.run_condition is None
        ]
        required_contracts = [
            part.contract for part in unconditional if part.contract and part.contract.is_required
        ]
        if any(contract.name == "loop_control" for contract in required_contracts):
            return loop
        last = unconditional[-1] if unconditional and unconditional[-1] is loop.body[-1] else None
        by = f"loop {loop.id}"
        if last and last.contract is None and last.validation_criteria is None:
            injected = (*last.injected, InjectedPart("contract", by))
            last = msgspec.structs.replace(last, contract=decision_contract, injected=injected)
            return msgspec.structs.replace(loop, body=(*loop.body[:-1], last))
        decision = Step(
            StepId(f"{loop.id.removeprefix(scope.prefix)}__decision"),
            f"Another pass? {loop.title}",
            output_contract=OutputContract("loop_control"),
        )
        decision_scope = msgspec.structs.replace(
            scope, injected=(*scope.injected, InjectedPart("step", by)), is_elsewhere=True
        )
        step = self._build_step(decision, prompt_texts.DECISION_PROMPT, decision_scope)
        return msgspec.structs.replace(loop, body=(*loop.body, step))

    def _expand_call(self, step: TemplateCall, scope: Scope) -> tuple[CompiledPart, ...]:
        routine = self._calls.called_routine(step, scope)
        self.claim_id(step.id, scope)
        if routine is None or self.is_too_large:
            return ()
        arguments = self._calls.call_arguments(step, routine, scope)
        if self.add_and_check_size(
            routines.expanded_size(routine, arguments), scope.pointer_to("/templateCall")
        ):
            return ()
        steps = self._calls.routine_steps(step, routine, arguments, scope)
        inner_scope = Scope(
            at=scope.at,
            prefix=f"{scope.prefix}{step.id}.",
            functions={function.name: function for function in routine.function_definitions},
            injected=(
                *scope.injected,
                InjectedPart("step", f"routine {routine.id} {routine.version}"),
            ),
            calls=(*scope.calls, routine.id),
            loops=scope.loops,
            is_elsewhere=True,
        )
        with self._demands.resolving_names_in(routine), self.slot_defaults_of(routine):
            parts = self._compile_block(_with_pointers(steps, scope.at), inner_scope)
        return self._under_condition(step.run_condition, parts, step.id, scope)

    def _compile_parallel(self, step: Parallel, scope: Scope) -> tuple[CompiledPart, ...]:
        by = InjectedPart("text", f"parallel {step.id}")
        inner_scope = msgspec.structs.replace(
            scope, injected=(*scope.injected, by), is_elsewhere=True
        )
        delegating_step, synthesis_step = delegation_compiler.steps_of(step)
        [delegating] = self._compile_step(delegating_step, inner_scope)
        assert isinstance(delegating, CompiledStep), "it has no condition of its own"
        delegations = delegation_compiler.compiled_delegations(step, scope, self, self._demands)
        result_keys = delegation_compiler.result_keys(delegations)
        parts: list[CompiledPart] = [
            msgspec.structs.replace(
                delegating, delegations=delegations, sets=(*delegating.sets, *result_keys)
            )
        ]
        if synthesis_step:
            synthesis_scope = msgspec.structs.replace(
                inner_scope, at=scope.pointer_to("/synthesis")
            )
            parts += self._compile_step(synthesis_step, synthesis_scope)
        return self._under_condition(step.run_condition, tuple(parts), step.id, scope)
