"""The steps of a workflow, compiled: loops, routines and delegations become a tree of steps."""

from typing import Any, Literal, TypeAlias

import msgspec

from interlock.core import canonical
from interlock.core.ids import StepId
from interlock.core.workflow import prompt_texts, routines
from interlock.core.workflow.compile_context import Ground, Library, Scope
from interlock.core.workflow.compiled import (
    CompiledFragment,
    CompiledLoop,
    CompiledStep,
    Injected,
    Part,
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
from interlock.core.workflow.demand_compiler import Demands
from interlock.core.workflow.name_checks import functions_by_name, known_features, known_functions
from interlock.core.workflow.problems import nearest

NESTING_MAX = 5  # of routines in routines, and of loops in loops
_OF_THE_WHOLE = {
    "meta_guidance": "metaGuidance",
    "features": "features",
    "preconditions": "preconditions",
    "clarification_prompts": "clarificationPrompts",
    "capabilities": "capabilities",
    "references": "references",
    "context_schema": "contextSchema",
}


_Placed: TypeAlias = tuple[tuple[AnyStep, str], ...]
"""Steps, each with its pointer in the file."""


def _placed(steps: tuple[AnyStep, ...], at: str) -> _Placed:
    return tuple((step, f"{at}/{index}") for index, step in enumerate(steps))


class Blocks(Ground):
    """Lives for one compilation, as its ground does."""

    def __init__(self, workflow: Workflow, library: Library) -> None:
        super().__init__(workflow, library)
        self._workflow = workflow
        self._library = library
        self._taken: list[AnyStep] = []
        """Steps that are the body of a loop beside them."""
        self._features = known_features(workflow, self.problems)
        self._demands = Demands(workflow, self.problems)

    def compiled(self) -> tuple[Part, ...]:
        workflow = self._workflow
        written = workflow.function_definitions
        functions = functions_by_name(written, "/functionDefinitions", self.problems)
        steps = workflow.steps
        if workflow.kind == "routine":
            # Started by itself, it takes from the context what a caller would give it.
            given = {name: f"{{{{{name}}}}}" for name in workflow.inputs}
            steps = tuple(routines.with_arguments(step, given) or step for step in steps)
        return self._block(_placed(steps, "/steps"), Scope("/steps", functions=functions))

    def _block(self, steps: _Placed, scope: Scope) -> tuple[Part, ...]:
        bodies = (step.body for step, _ in steps if isinstance(step, Loop))
        moved = {body for body in bodies if isinstance(body, str)}
        parts: list[Part] = []
        for step, at in steps:
            here = msgspec.structs.replace(scope, at=scope.at if scope.is_elsewhere else at)
            if step.id in moved:
                continue  # it is the body of a loop beside it
            if self.count > STEPS_MAX or self.is_too_large:
                break
            match step:
                case Step():
                    parts += self._step(step, here)
                case Loop():
                    parts.append(self._loop(step, here, steps))
                case TemplateCall():
                    parts += self._call(step, here)
                case Parallel():
                    parts += self._parallel(step, here)
        for step, at in steps:
            is_taken = any(step is taken for taken in self._taken)
            if step.id in moved and not is_taken and not self.is_too_large:
                what = f"no way leads to `{step.id}`: it is the body of a loop that is not reached"
                self.error("unreachable", scope.at if scope.is_elsewhere else at, what)
        return tuple(parts)

    def _step(self, step: Step, scope: Scope) -> tuple[Part, ...]:
        """The step, and what the compiler puts behind it."""
        functions = self._functions(step, scope)
        self.problems += known_functions(step, functions, scope.place)
        if (step.prompt is None) == (step.prompt_blocks is None):
            self.error("prompt", scope.at, "a step has either `prompt` or `promptBlocks`")

        def lost(name: str) -> None:
            self.error("reference", scope.place("/promptBlocks"), f"there is no passage `{name}`")

        for index, line in enumerate(step.guidance):
            self.check(line, scope.place(f"/guidance/{index}"))
        alone = msgspec.structs.replace(step, guidance=())
        said = prompt_texts.step_text(alone, (), functions, lost)
        self.check(said, scope.place("/prompt" if step.prompt else "/promptBlocks"))
        text = prompt_texts.step_text(step, self._features, functions, lambda _: None)
        compiled = self._compiled(step, text, scope)
        by_feature = (Injected("text", f"feature {name}") for name in self._features)
        injected = (*compiled.injected, *by_feature)
        parts = [msgspec.structs.replace(compiled, injected=injected)]
        if step.verification:
            proof = prompt_texts.verification_text(step, step.verification)
            parts.append(self._behind(step, "verification", proof, scope))
        if step.audit:
            parts.append(
                self._behind(step, "audit", prompt_texts.audit_text(step, step.audit), scope)
            )
        return self._where(step.run_condition, tuple(parts), step.id, scope)

    def _where(
        self, written: Any, parts: tuple[Part, ...], name: StepId, scope: Scope
    ) -> tuple[Part, ...]:
        """The parts under one condition, which is looked at once for all of them."""
        condition = self._demands.condition(written, scope.place("/runCondition"))
        if condition is None or not parts:
            return parts
        if len(parts) == 1 and parts[0].run_condition is None:
            return (msgspec.structs.replace(parts[0], run_condition=condition),)
        return (
            CompiledLoop(
                id=StepId(f"{scope.prefix}{name}"),
                title=parts[0].title,
                kind="group",
                passes_max=1,
                body=parts,
                pointer=scope.at,
                is_elsewhere=scope.is_elsewhere,
                run_condition=condition,
            ),
        )

    def _compiled(self, step: Step, text: str, scope: Scope) -> CompiledStep:
        demands = self._demands
        number = self.number(step.id, scope)
        return CompiledStep(
            id=StepId(f"{scope.prefix}{step.id}"),
            title=self.text(step.title, scope.place("/title"), has_holes=False),
            prompt=self.bound(text, scope.place("/prompt" if step.prompt else "/promptBlocks")),
            number=number,
            pointer=scope.at,
            is_elsewhere=scope.is_elsewhere,
            agent_role=self.text(step.agent_role or "", scope.place("/agentRole")),
            model_tier=step.model_tier,
            fragments=tuple(
                CompiledFragment(
                    fragment.id,
                    self.text(fragment.text, scope.place(f"/promptFragments/{index}/text")),
                    demands.condition(fragment.when, scope.place(f"/promptFragments/{index}/when")),
                )
                for index, fragment in enumerate(step.prompt_fragments)
            ),
            confirms=demands.confirms(step, scope.place),
            approval=demands.approval(step, scope.place),
            contract=self.weighed(
                demands.contract(step.output_contract, scope.place("/outputContract"))
            ),
            validation_criteria=demands.criteria(step, scope.place),
            user_only=step.user_only,
            assessments=demands.assessments(step, scope.place),
            consequences=step.assessment_consequences,
            notes_optional=step.notes_optional,
            injected=scope.injected,
        )

    def _functions(self, step: Step | Loop, scope: Scope) -> dict[str, Function]:
        at = scope.place("/functionDefinitions")
        own = functions_by_name(step.function_definitions, at, self.problems)
        return {**scope.functions, **own}

    def _behind(
        self, step: Step, part: Literal["verification", "audit"], text: str, scope: Scope
    ) -> CompiledStep:
        """A step that the compiler puts behind `step`."""
        wanted = OutputContract("verification") if part == "verification" else None
        inner = Step(
            StepId(f"{step.id}__{part}"),
            f"{part.capitalize()}: {step.title}",
            text,
            output_contract=wanted,
        )
        by = Injected("step", f"{part} of {step.id}")
        here = msgspec.structs.replace(
            scope, at=scope.place(f"/{part}"), injected=(*scope.injected, by), is_elsewhere=True
        )
        return self._compiled(inner, text, here)

    def _loop(self, step: Loop, scope: Scope, beside: _Placed) -> CompiledLoop:
        self.claim(step.id, scope)
        body: tuple[Part, ...] = ()
        if scope.loops == NESTING_MAX:
            self.error("loop", scope.at, f"loops are nested more than {NESTING_MAX} deep")
        else:
            inner = msgspec.structs.replace(
                scope, functions=self._functions(step, scope), loops=scope.loops + 1
            )
            body = self._block(self._body(step, scope, beside), inner)
        repetition = self._demands.repetition(step.loop, scope.place("/loop"))
        for name in ("iteration_var", "item_var", "index_var"):
            self.free(getattr(step.loop, name), scope.place("/loop"))
        loop = CompiledLoop(
            id=StepId(f"{scope.prefix}{step.id}"),
            title=self.text(step.title, scope.place("/title"), has_holes=False),
            kind=step.loop.type,
            passes_max=step.loop.max_iterations,
            body=body,
            pointer=scope.at,
            is_elsewhere=scope.is_elsewhere,
            iteration_var=step.loop.iteration_var,
            item_var=step.loop.item_var,
            index_var=step.loop.index_var,
            run_condition=self._demands.condition(step.run_condition, scope.place("/runCondition")),
            condition=repetition.condition,
            condition_at=repetition.condition_at,
            control_id=repetition.control_id,
            items=repetition.items,
            count=repetition.count,
        )
        return self._with_decision(loop, scope) if loop.is_controlled and body else loop

    def _body(self, step: Loop, scope: Scope, beside: _Placed) -> _Placed:
        """The steps of a loop: those in it, or the one beside it that it names."""
        if not isinstance(step.body, str):
            if not step.body:
                self.error("loop", scope.place("/body"), "a loop goes round over at least one step")
            return _placed(step.body, scope.place("/body"))
        found = tuple(pair for pair in beside if pair[0].id == step.body and pair[0] is not step)
        if not found:
            what = f"no step `{step.body}` stands beside this loop"
            near = nearest(step.body, (other.id for other, _ in beside))
            self.error("loop", scope.place("/body"), what, near)
        self._taken += [other for other, _ in found[:1]]
        return found[:1]

    def _with_decision(self, loop: CompiledLoop, scope: Scope) -> CompiledLoop:
        """The loop with a step in its body that owes the decision, whatever is skipped."""
        owing = self._demands.contract(OutputContract("loop_control"), scope.at)
        sure = [
            part
            for part in loop.body
            if isinstance(part, CompiledStep) and part.run_condition is None
        ]
        owed = [part.contract for part in sure if part.contract and part.contract.is_required]
        if any(contract.name == "loop_control" for contract in owed):
            return loop
        last, by = sure[-1] if sure and sure[-1] is loop.body[-1] else None, f"loop {loop.id}"
        if last and last.contract is None and last.validation_criteria is None:
            injected = (*last.injected, Injected("contract", by))
            last = msgspec.structs.replace(last, contract=owing, injected=injected)
            return msgspec.structs.replace(loop, body=(*loop.body[:-1], last))
        decision = Step(
            StepId(f"{loop.id.removeprefix(scope.prefix)}__decision"),
            f"Another pass? {loop.title}",
            output_contract=OutputContract("loop_control"),
        )
        here = msgspec.structs.replace(
            scope, injected=(*scope.injected, Injected("step", by)), is_elsewhere=True
        )
        step = self._compiled(decision, prompt_texts.DECISION, here)
        return msgspec.structs.replace(loop, body=(*loop.body, step))

    def _call(self, step: TemplateCall, scope: Scope) -> tuple[Part, ...]:
        routine = self._routine(step, scope)
        self.claim(step.id, scope)
        if routine is None or self.is_too_large:
            return ()
        given = self._arguments(step, routine, scope)
        self._left_behind(routine, scope)
        if self.grown(routines.expanded_size(routine, given), scope.place("/templateCall")):
            return ()
        steps: list[AnyStep] = []
        for found in routine.steps:
            filled = routines.with_arguments(found, given)
            if filled is None:
                what = f"with these arguments, `{found.id}` of the routine is too long or not valid"
                self.error("template", scope.place("/templateCall/args"), what)
            else:
                steps.append(_titled(filled, step.title))
        inner = Scope(
            at=scope.at,
            prefix=f"{scope.prefix}{step.id}.",
            functions={function.name: function for function in routine.function_definitions},
            injected=(*scope.injected, Injected("step", f"routine {routine.id} {routine.version}")),
            calls=(*scope.calls, routine.id),
            loops=scope.loops,
            is_elsewhere=True,
        )
        with self._demands.speaking_of(routine), self.slots_of(routine):
            parts = self._block(_placed(tuple(steps), scope.at), inner)
        return self._where(step.run_condition, parts, step.id, scope)

    def _routine(self, step: TemplateCall, scope: Scope) -> Workflow | None:
        called, at = step.template_call.template_id, scope.place("/templateCall/templateId")
        routine = routines.named(called, self._library.routines)
        if routine is None:
            hint = nearest(called, self._library.routines)
            self.error("template", at, f"there is no routine `{called}`", hint)
        elif routine.id in (*scope.calls, self._workflow.id):
            way = " → ".join((*scope.calls, routine.id))
            self.error("template", at, f"routine `{called}` ends up calling itself: {way}")
        elif len(scope.calls) == NESTING_MAX:
            self.error("template", at, f"routines call routines more than {NESTING_MAX} deep")
        else:
            return routine
        return None

    def _arguments(self, step: TemplateCall, routine: Workflow, scope: Scope) -> dict[str, str]:
        arguments = routines.arguments_of(step, routine)
        for name in arguments.unknown:
            place = scope.place(f"/templateCall/args/{canonical.escape_pointer_part(name)}")
            what = f"routine `{routine.id}` takes no `{name}`"
            self.error("template", place, what, nearest(name, routine.inputs))
        for name in arguments.unused:
            place = scope.place(f"/templateCall/args/{canonical.escape_pointer_part(name)}")
            self.warn("template", place, f"routine `{routine.id}` does not speak of `{{{name}}}`")
        for name in arguments.missing:
            what = f"routine `{routine.id}` needs `{name}`: {routine.inputs[name].description}"
            self.error("template", scope.place("/templateCall"), what)
        return arguments.given

    def _parallel(self, step: Parallel, scope: Scope) -> tuple[Part, ...]:
        by = Injected("text", f"parallel {step.id}")
        here = msgspec.structs.replace(scope, injected=(*scope.injected, by), is_elsewhere=True)
        certain: list[str] = []
        fragments: list[CompiledFragment] = []
        for number, delegation in enumerate(step.parallel_delegations, start=1):
            at = f"/parallelDelegations/{number - 1}"
            text = self.text(
                prompt_texts.delegation_text(delegation, number), scope.place(f"{at}/goal")
            )
            place = scope.place(f"{at}/runCondition")
            when = self._demands.condition(delegation.run_condition, place)
            if when is None:
                certain.append(text)
            else:
                fragments.append(CompiledFragment(f"delegation-{number}", text, when))
        asked = prompt_texts.delegations_text(step, certain)
        [delegating] = self._step(Step(step.id, step.title, asked), here)
        delegating = msgspec.structs.replace(delegating, fragments=tuple(fragments))
        synthesis = Step(
            StepId(f"{step.id}__synthesis"),
            f"Synthesis: {step.title}",
            step.synthesis.prompt,
            output_contract=step.synthesis.output_contract,
        )
        there = msgspec.structs.replace(here, at=scope.place("/synthesis"))
        parts = (delegating, *self._step(synthesis, there))
        return self._where(step.run_condition, parts, step.id, scope)

    def _left_behind(self, routine: Workflow, scope: Scope) -> None:
        """What a routine says as a whole does not come along with its steps."""
        left = [name for field, name in _OF_THE_WHOLE.items() if getattr(routine, field)]
        if left:
            what = f"`{'`, `'.join(left)}` of routine `{routine.id}` do not come along with a call"
            self.warn("template", scope.place("/templateCall"), what)


def _titled(step: AnyStep, title: str | None) -> AnyStep:
    """A routine's step under the title of its call."""
    if not title:
        return step
    whole = f"{title}: {step.title}" if step.title else title
    return msgspec.structs.replace(step, title=whole)
