"""The state that steps are compiled with: ids, sizes, texts with their slots, and problems."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import msgspec

from interlock.core.ids import WorkflowId
from interlock.core.workflow import prompt_texts
from interlock.core.workflow.compiled_workflow import InjectedPart
from interlock.core.workflow.contracts import Contract
from interlock.core.workflow.definition import STEPS_MAX, Function, Workflow
from interlock.core.workflow.passthrough import RESERVED_NAME
from interlock.core.workflow.placeholders import placeholder_paths
from interlock.core.workflow.problems import Problem, ProblemRule, warning

_PART_BYTES = 100  # of a step or loop without its texts
COMPILED_BYTES_MAX = 4 * 1024 * 1024  # of texts, with everything expanded
_STEP_ID = re.compile(r"[a-z0-9_-]{1,64}")
_GENERATED_ID = re.compile(r"[a-z0-9_-]+")
_GENERATED_SUFFIXES = ("__verification", "__audit", "__synthesis", "__decision")


class Library(msgspec.Struct, frozen=True):
    """The routines and bindings that a workflow may use besides its own file."""

    routines: Mapping[WorkflowId, Workflow] = {}
    bindings: Mapping[str, str] = {}


class Scope(msgspec.Struct, frozen=True):
    """Everything that applies to the steps of a block besides their own fields."""

    at: str
    prefix: str = ""
    functions: Mapping[str, Function] = {}
    injected: tuple[InjectedPart, ...] = ()
    calls: tuple[str, ...] = ()
    """The routines that are being expanded, from the outermost."""
    loops: int = 0
    is_elsewhere: bool = False
    """The steps are in another file, so a pointer into them would mislead."""

    def pointer_to(self, inner: str) -> str:
        return self.at if self.is_elsewhere else f"{self.at}{inner}"


class CompilerBase:
    """The base of the step compiler. Lives for one compilation, so it may accumulate state."""

    def __init__(self, workflow: Workflow, library: Library) -> None:
        self.problems: list[Problem] = []
        self.step_count = 0
        """The number of steps so far."""
        self._size = 0
        self._ids: dict[str, str] = {}
        self._bindings = {**_slot_defaults(workflow), **library.bindings}

    def resolve_text(self, text: str, at: str, *, has_placeholders: bool = True) -> str:
        """Return a text of the file, with its slots filled in."""
        self.check_placeholders(text, at)
        if not has_placeholders and (paths := placeholder_paths(text)):
            message = f"`{{{{{paths[0]}}}}}` is not filled in here: it is shown as it is written"
            self.warn("prompt", at, message, "Speak of it in the prompt of a step.")
        return self.fill_slots(text, at)

    @contextmanager
    def slot_defaults_of(self, routine: Workflow) -> Generator[None]:
        """Add the defaults of a routine's slots for its steps; a binding that exists wins."""
        outer_bindings = self._bindings
        self._bindings = {**_slot_defaults(routine), **outer_bindings}
        yield
        self._bindings = outer_bindings

    def check_placeholders(self, text: str, at: str) -> None:
        for placeholder in prompt_texts.unsupported_placeholders(text):
            message = (
                f"`{{{{{placeholder}}}}}` is not a path into the context:"
                " it is shown as it is written"
            )
            self.warn("prompt", at, message, "Use a plain path, like {{area.name}}.")

    def fill_slots(self, text: str, at: str) -> str:
        def report_missing_slot(slot: str) -> None:
            self.error("binding", at, f"nothing is bound to the slot `{slot}`", _SLOT_HINT)

        if self.add_and_check_size(prompt_texts.filled_size(text, self._bindings), at):
            return ""
        return prompt_texts.fill_slots(text, self._bindings, report_missing_slot)

    def contract_within_limit(self, contract: Contract | None) -> Contract | None:
        """Return the contract; None where the workflow is too large with it."""
        size = len(contract.schema) + len(contract.example) if contract else 0
        return None if self.add_and_check_size(size, "") else contract

    def add_and_check_size(self, size: int, at: str) -> bool:
        """Add so many bytes; return whether the workflow is too large with them."""
        was_too_large, self._size = self.is_too_large, self._size + size
        if self.is_too_large and not was_too_large:
            message = f"compiled, the workflow has more than {COMPILED_BYTES_MAX} bytes"
            self.error("size", at, message, "Say what many steps share once, in `metaGuidance`.")
        return self.is_too_large

    @property
    def is_too_large(self) -> bool:
        return self._size > COMPILED_BYTES_MAX

    def refuse_reserved_name(self, name: str, at: str) -> None:
        if RESERVED_NAME.fullmatch(name):
            self.error("context", at, f"the name `{name}` is reserved")

    def next_step_number(self, name: str, scope: Scope) -> int:
        self.claim_id(name, scope)
        self.step_count += 1
        if self.step_count == STEPS_MAX + 1:
            self.error("size", scope.at, f"the workflow has more than {STEPS_MAX} steps")
        return self.step_count

    def claim_id(self, name: str, scope: Scope) -> None:
        """Reserve an id, which must be well-formed and not yet in use."""
        self.add_and_check_size(_PART_BYTES, scope.at)
        is_generated = (
            scope.is_elsewhere
            and name.endswith(_GENERATED_SUFFIXES)
            and _GENERATED_ID.fullmatch(name)
        )
        if not is_generated and (
            not _STEP_ID.fullmatch(name) or name.endswith(_GENERATED_SUFFIXES)
        ):
            message = f"`{name}` is not an id: lower-case letters, digits, `-` and `_`, at most 64"
            hint = f"The ends {', '.join(_GENERATED_SUFFIXES)} are for what the compiler makes."
            self.error(
                "id",
                scope.pointer_to("/id"),
                message,
                hint if name.endswith(_GENERATED_SUFFIXES) else "",
            )
        full_id = f"{scope.prefix}{name}"
        if full_id in self._ids:
            message = f"`{name}` is already the id of {self._ids[full_id]}"
            self.error("id", scope.pointer_to("/id"), message)
        self._ids.setdefault(full_id, scope.at)

    def error(self, rule: ProblemRule, at: str, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(rule, at, message, suggestion))

    def warn(self, rule: ProblemRule, at: str, message: str, suggestion: str = "") -> None:
        self.problems.append(warning(rule, at, message, suggestion))


_SLOT_HINT = "Give it a `default` in `extensionPoints`, or bind it under [bindings] in config.toml."


def _slot_defaults(workflow: Workflow) -> dict[str, str]:
    slots = workflow.extension_points
    return {slot.slot_id: slot.default for slot in slots if slot.default is not None}
