"""The steps of a workflow, compiled: loops, routines and delegations become a tree of steps."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from interlock.core import canonical
from interlock.core.ids import StepId, WorkflowId
from interlock.core.workflow import routines, texts
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
from interlock.core.workflow.demands import Demands
from interlock.core.workflow.names import functions_by_name, known_features, known_functions
from interlock.core.workflow.problems import Problem, Rule, nearest, warning

NESTING_MAX = 5  # of routines in routines, and of loops in loops
_STEP_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Library(msgspec.Struct, frozen=True):
    """What a workflow may build on besides its own file."""

    routines: Mapping[WorkflowId, Workflow] = {}
    bindings: Mapping[str, str] = {}


_Placed: TypeAlias = tuple[tuple[AnyStep, str], ...]
"""Steps, each with its pointer in the file."""


def _placed(steps: tuple[AnyStep, ...], at: str) -> _Placed:
    return tuple((step, f"{at}/{index}") for index, step in enumerate(steps))


class _Scope(msgspec.Struct, frozen=True):
    """What holds for the steps of a block, beside what they say themselves."""

    at: str
    prefix: str = ""
    functions: Mapping[str, Function] = {}
    injected: tuple[Injected, ...] = ()
    condition: Any = None
    calls: tuple[str, ...] = ()
    """The routines that are being expanded."""
    loops: int = 0
    is_elsewhere: bool = False
    """The steps stand in another file, so that a pointer into them would mislead."""

    def place(self, inner: str) -> str:
        return self.at if self.is_elsewhere else f"{self.at}{inner}"


class Blocks:
    """Lives for one compilation, so it may collect."""

    def __init__(self, workflow: Workflow, library: Library) -> None:
        self._workflow = workflow
        self._library = library
        self.problems: list[Problem] = []
        self.count = 0
        """The steps so far."""
        self._expanded = 0
        self._ids: dict[str, str] = {}
        self._features = known_features(workflow, self.problems)
        points = workflow.extension_points
        defaults = {point.slot_id: point.default for point in points if point.default is not None}
        self._bindings = {**defaults, **library.bindings}
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
        return self._block(_placed(steps, "/steps"), _Scope("/steps", functions=functions))

    def _block(self, steps: _Placed, scope: _Scope) -> tuple[Part, ...]:
        bodies = (step.body for step, _ in steps if isinstance(step, Loop))
        moved = {body for body in bodies if isinstance(body, str)}
        parts: list[Part] = []
        for step, at in steps:
            if step.id in moved:
                continue  # it is the body of a loop beside it
            if self.count > STEPS_MAX:
                break
            here = msgspec.structs.replace(scope, at=scope.at if scope.is_elsewhere else at)
            match step:
                case Step():
                    parts += self._step(step, here)
                case Loop():
                    parts.append(self._loop(step, here, steps))
                case TemplateCall():
                    parts += self._call(step, here)
                case Parallel():
                    parts += self._parallel(step, here)
        return tuple(parts)

    def _step(self, step: Step, scope: _Scope) -> Iterable[CompiledStep]:
        functions = self._functions(step, scope)
        self.problems += known_functions(step, functions, scope.place)
        if (step.prompt is None) == (step.prompt_blocks is None):
            self._error("prompt", scope.at, "a step has either `prompt` or `promptBlocks`")

        def lost(name: str) -> None:
            self._error("reference", scope.place("/promptBlocks"), f"there is no passage `{name}`")

        text = texts.step_text(step, self._features, functions, lost)
        by_feature = (Injected("text", f"feature {name}") for name in self._features)
        compiled = self._compiled(step, text, scope)
        injected = (*compiled.injected, *by_feature)
        yield msgspec.structs.replace(compiled, injected=injected)
        if step.verification:
            proof = texts.verification_text(step, step.verification)
            yield self._behind(step, "verification", proof, scope)
        if step.audit:
            yield self._behind(step, "audit", texts.audit_text(step, step.audit), scope)

    def _compiled(self, step: Step, text: str, scope: _Scope) -> CompiledStep:
        demands = self._demands
        number = self._number(step.id, scope)
        return CompiledStep(
            id=StepId(f"{scope.prefix}{step.id}"),
            title=self.text(step.title, scope.place("/title")),
            prompt=self.text(text, scope.place("/prompt" if step.prompt else "/promptBlocks")),
            number=number,
            pointer=scope.at,
            agent_role=self.text(step.agent_role or "", scope.place("/agentRole")),
            model_tier=step.model_tier,
            run_condition=self._run_condition(step.run_condition, scope),
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
            contract=demands.contract(step.output_contract, scope.place("/outputContract")),
            validation_criteria=demands.criteria(step, scope.place),
            user_only=step.user_only,
            assessments=demands.assessments(step, scope.place),
            consequences=step.assessment_consequences,
            notes_optional=step.notes_optional,
            injected=scope.injected,
        )

    def _functions(self, step: Step | Loop, scope: _Scope) -> dict[str, Function]:
        at = scope.place("/functionDefinitions")
        own = functions_by_name(step.function_definitions, at, self.problems)
        return {**scope.functions, **own}

    def _behind(
        self, step: Step, part: Literal["verification", "audit"], text: str, scope: _Scope
    ) -> CompiledStep:
        """A step that the compiler puts behind `step`."""
        wanted = OutputContract("verification") if part == "verification" else None
        inner = Step(
            StepId(f"{step.id}__{part}"),
            f"{part.capitalize()}: {step.title}",
            text,
            output_contract=wanted,
            run_condition=step.run_condition,
        )
        by = Injected("step", f"{part} of {step.id}")
        here = msgspec.structs.replace(
            scope, at=scope.place(f"/{part}"), injected=(*scope.injected, by), is_elsewhere=True
        )
        return self._compiled(inner, text, here)

    def _loop(self, step: Loop, scope: _Scope, beside: _Placed) -> CompiledLoop:
        condition = self._run_condition(step.run_condition, scope)
        self._claim(step.id, scope)
        if scope.loops == NESTING_MAX:
            self._error("loop", scope.at, f"loops are nested more than {NESTING_MAX} deep")
            body: tuple[Part, ...] = ()
        else:
            inner = msgspec.structs.replace(
                scope,
                functions=self._functions(step, scope),
                loops=scope.loops + 1,
                condition=None,
            )
            body = self._block(self._body(step, scope, beside), inner)
        repetition = self._demands.repetition(step.loop, scope.place("/loop"))
        loop = CompiledLoop(
            id=StepId(f"{scope.prefix}{step.id}"),
            title=self.text(step.title, scope.place("/title")),
            kind=step.loop.type,
            passes_max=step.loop.max_iterations,
            body=body,
            pointer=scope.at,
            iteration_var=step.loop.iteration_var,
            item_var=step.loop.item_var,
            index_var=step.loop.index_var,
            run_condition=condition,
            condition=repetition.condition,
            control_id=repetition.control_id,
            items=repetition.items,
            count=repetition.count,
        )
        return self._with_decision(loop, scope) if loop.is_controlled and body else loop

    def _body(self, step: Loop, scope: _Scope, beside: _Placed) -> _Placed:
        """The steps of a loop: those in it, or the one beside it that it names."""
        if not isinstance(step.body, str):
            return _placed(step.body, scope.place("/body"))
        found = tuple(pair for pair in beside if pair[0].id == step.body and pair[0] is not step)
        if not found:
            what = f"no step `{step.body}` stands beside this loop"
            near = nearest(step.body, (other.id for other, _ in beside))
            self._error("loop", scope.place("/body"), what, near)
        return found[:1]

    def _with_decision(self, loop: CompiledLoop, scope: _Scope) -> CompiledLoop:
        """The loop with a step in its body that owes the decision, whatever is skipped."""
        owing = self._demands.contract(OutputContract("loop_control"), scope.at)
        sure = [
            part
            for part in loop.body
            if isinstance(part, CompiledStep) and part.run_condition is None
        ]
        if any(part.contract and part.contract.name == "loop_control" for part in sure):
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
            scope,
            condition=None,
            injected=(*scope.injected, Injected("step", by)),
            is_elsewhere=True,
        )
        step = self._compiled(decision, texts.DECISION, here)
        return msgspec.structs.replace(loop, body=(*loop.body, step))

    def _call(self, step: TemplateCall, scope: _Scope) -> tuple[Part, ...]:
        routine = self._routine(step, scope)
        self._claim(step.id, scope)
        if routine is None:
            return ()
        given = self._arguments(step, routine, scope)
        self._expanded += routines.expanded_size(routine, given)
        if self._expanded > routines.EXPANDED_BYTES_MAX:
            what = f"with its routines, the workflow has over {routines.EXPANDED_BYTES_MAX} bytes"
            self._error("size", scope.place("/templateCall"), what)
            return ()
        steps: list[AnyStep] = []
        for found in routine.steps:
            filled = routines.with_arguments(found, given)
            if filled is None:
                what = f"with these arguments, `{found.id}` of the routine is too long or not valid"
                self._error("template", scope.place("/templateCall/args"), what)
            else:
                steps.append(_titled(filled, step.title))
        inner = _Scope(
            at=scope.at,
            prefix=f"{scope.prefix}{step.id}.",
            functions={function.name: function for function in routine.function_definitions},
            injected=(*scope.injected, Injected("step", f"routine {routine.id} {routine.version}")),
            condition=_joined(scope.condition, step.run_condition),
            calls=(*scope.calls, routine.id),
            loops=scope.loops,
            is_elsewhere=True,
        )
        with self._demands.speaking_of(routine):
            return self._block(_placed(tuple(steps), scope.at), inner)

    def _routine(self, step: TemplateCall, scope: _Scope) -> Workflow | None:
        called, at = step.template_call.template_id, scope.place("/templateCall/templateId")
        routine = routines.named(called, self._library.routines)
        if routine is None:
            hint = nearest(called, self._library.routines)
            self._error("template", at, f"there is no routine `{called}`", hint)
        elif routine.id in (*scope.calls, self._workflow.id):
            way = " → ".join((*scope.calls, routine.id))
            self._error("template", at, f"routine `{called}` ends up calling itself: {way}")
        elif len(scope.calls) == NESTING_MAX:
            self._error("template", at, f"routines call routines more than {NESTING_MAX} deep")
        else:
            return routine
        return None

    def _arguments(self, step: TemplateCall, routine: Workflow, scope: _Scope) -> dict[str, str]:
        arguments = routines.arguments_of(step, routine)
        for name in arguments.unknown:
            place = scope.place(f"/templateCall/args/{canonical.escape(name)}")
            what = f"routine `{routine.id}` takes no `{name}`"
            self._error("template", place, what, nearest(name, routine.inputs))
        for name in arguments.missing:
            what = f"routine `{routine.id}` needs `{name}`: {routine.inputs[name].description}"
            self._error("template", scope.place("/templateCall"), what)
        return arguments.given

    def _parallel(self, step: Parallel, scope: _Scope) -> Iterable[CompiledStep]:
        by = Injected("text", f"parallel {step.id}")
        here = msgspec.structs.replace(scope, injected=(*scope.injected, by), is_elsewhere=True)
        certain: list[str] = []
        fragments: list[CompiledFragment] = []
        for number, delegation in enumerate(step.parallel_delegations, start=1):
            at = f"/parallelDelegations/{number - 1}"
            text = self.text(texts.delegation_text(delegation, number), scope.place(f"{at}/goal"))
            place = scope.place(f"{at}/runCondition")
            when = self._demands.condition(delegation.run_condition, place)
            if when is None:
                certain.append(text)
            else:
                fragments.append(CompiledFragment(f"delegation-{number}", text, when))
        asked = texts.delegations_text(step, certain)
        delegating = Step(step.id, step.title, asked, run_condition=step.run_condition)
        [compiled] = self._step(delegating, here)
        yield msgspec.structs.replace(compiled, fragments=tuple(fragments))
        synthesis = Step(
            StepId(f"{step.id}__synthesis"),
            f"Synthesis: {step.title}",
            step.synthesis.prompt,
            run_condition=step.run_condition,
            output_contract=step.synthesis.output_contract,
        )
        there = msgspec.structs.replace(here, at=scope.place("/synthesis"))
        yield from self._step(synthesis, there)

    def _run_condition(self, own: Any, scope: _Scope) -> str | None:
        alone = self._demands.condition(own, scope.place("/runCondition"))
        if scope.condition is None or (own is not None and alone is None):
            return alone  # or it was wrong, and was said to be
        return self._demands.condition(_joined(scope.condition, own), scope.at)

    def text(self, text: str, at: str) -> str:
        """A text of the file, with what the project has bound to its slots."""
        for found in texts.not_computed(text):
            what = f"`{{{{{found}}}}}` is not a path into the context: it is shown as it is written"
            self._warn("prompt", at, what, "Use a plain path, like {{area.name}}.")

        def missing(slot: str) -> None:
            self._error("binding", at, f"nothing is bound to the slot `{slot}`", _SLOT_HINT)

        return texts.bound(text, self._bindings, missing)

    def _number(self, name: str, scope: _Scope) -> int:
        self._claim(name, scope)
        self.count += 1
        if self.count == STEPS_MAX + 1:
            self._error("size", scope.at, f"the workflow has more than {STEPS_MAX} steps")
        return self.count

    def _claim(self, name: str, scope: _Scope) -> None:
        """An id is of its form, and nobody else's."""
        # What we make ourselves has a double underscore in it, which an author may not use.
        if not _STEP_ID.fullmatch(name.partition("__")[0]):
            what = f"`{name}` is not an id: lower-case letters, digits, `-` and `_`, at most 64"
            self._error("id", scope.place("/id"), what)
        whole = f"{scope.prefix}{name}"
        if whole in self._ids:
            self._error(
                "id", scope.place("/id"), f"`{name}` is already the id of {self._ids[whole]}"
            )
        self._ids.setdefault(whole, scope.at)

    def _error(self, rule: Rule, at: str, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(rule, at, message, suggestion))

    def _warn(self, rule: Rule, at: str, message: str, suggestion: str = "") -> None:
        self.problems.append(warning(rule, at, message, suggestion))


_SLOT_HINT = "Give it a `default` in `extensionPoints`, or bind it under [bindings] in config.toml."


def _titled(step: AnyStep, title: str | None) -> AnyStep:
    """A routine's step under the title of its call."""
    return msgspec.structs.replace(step, title=f"{title}: {step.title}") if title else step


def _joined(outer: Any, inner: Any) -> Any:
    if outer is None or inner is None:
        return inner if outer is None else outer
    return {"and": [outer, inner]}
