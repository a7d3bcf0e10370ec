"""What steps are compiled on: ids, sizes, texts with their slots, and the problems found."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import msgspec

from interlock.core.ids import WorkflowId
from interlock.core.workflow import prompt_texts
from interlock.core.workflow.compiled import Injected
from interlock.core.workflow.contracts import Contract
from interlock.core.workflow.definition import STEPS_MAX, Function, Workflow
from interlock.core.workflow.passthrough import RESERVED_NAME
from interlock.core.workflow.placeholders import placeholder_paths
from interlock.core.workflow.problems import Problem, ProblemRule, warning

_PART_BYTES = 100  # of a step or loop that says nothing
COMPILED_BYTES_MAX = 4 * 1024 * 1024  # of texts, when everything is written out
_STEP_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_GENERATED_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")
_GENERATED_SUFFIXES = ("__verification", "__audit", "__synthesis", "__decision")


class Library(msgspec.Struct, frozen=True):
    """What a workflow may build on besides its own file."""

    routines: Mapping[WorkflowId, Workflow] = {}
    bindings: Mapping[str, str] = {}


class Scope(msgspec.Struct, frozen=True):
    """What holds for the steps of a block, beside what they say themselves."""

    at: str
    prefix: str = ""
    functions: Mapping[str, Function] = {}
    injected: tuple[Injected, ...] = ()
    calls: tuple[str, ...] = ()
    """The routines that are being expanded."""
    loops: int = 0
    is_elsewhere: bool = False
    """The steps stand in another file, so that a pointer into them would mislead."""

    def pointer_to(self, inner: str) -> str:
        return self.at if self.is_elsewhere else f"{self.at}{inner}"


class CompilerBase:
    """Lives for one compilation, so it may collect."""

    def __init__(self, workflow: Workflow, library: Library) -> None:
        self.problems: list[Problem] = []
        self.step_count = 0
        """The steps so far."""
        self._size = 0
        self._ids: dict[str, str] = {}
        self._bindings = {**_slot_defaults(workflow), **library.bindings}

    def resolve_text(self, text: str, at: str, *, has_placeholders: bool = True) -> str:
        """A text of the file, with what the project has bound to its slots."""
        self.check_placeholders(text, at)
        if not has_placeholders and (filled := placeholder_paths(text)):
            what = f"`{{{{{filled[0]}}}}}` is not filled in here: it is shown as it is written"
            self.warn("prompt", at, what, "Speak of it in the prompt of a step.")
        return self.fill_slots(text, at)

    @contextmanager
    def slot_defaults_of(self, routine: Workflow) -> Generator[None]:
        """The defaults of a routine's slots hold for its steps, where nobody has said better."""
        before, self._bindings = self._bindings, {**_slot_defaults(routine), **self._bindings}
        yield
        self._bindings = before

    def check_placeholders(self, text: str, at: str) -> None:
        for found in prompt_texts.unsupported_placeholders(text):
            what = f"`{{{{{found}}}}}` is not a path into the context: it is shown as it is written"
            self.warn("prompt", at, what, "Use a plain path, like {{area.name}}.")

    def fill_slots(self, text: str, at: str) -> str:
        def report_missing_slot(slot: str) -> None:
            self.error("binding", at, f"nothing is bound to the slot `{slot}`", _SLOT_HINT)

        if self.add_and_check_size(prompt_texts.filled_size(text, self._bindings), at):
            return ""
        return prompt_texts.fill_slots(text, self._bindings, report_missing_slot)

    def contract_within_limit(self, contract: Contract | None) -> Contract | None:
        size = len(contract.schema) + len(contract.example) if contract else 0
        return None if self.add_and_check_size(size, "") else contract

    def add_and_check_size(self, size: int, at: str) -> bool:
        """Whether the workflow has become too large with so many bytes more."""
        was_too_large, self._size = self.is_too_large, self._size + size
        if self.is_too_large and not was_too_large:
            what = f"compiled, the workflow has more than {COMPILED_BYTES_MAX} bytes"
            self.error("size", at, what, "Say what many steps share once, in `metaGuidance`.")
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
        """An id is of its form, and nobody else's."""
        self.add_and_check_size(_PART_BYTES, scope.at)
        is_ours = (
            scope.is_elsewhere
            and name.endswith(_GENERATED_SUFFIXES)
            and _GENERATED_ID.fullmatch(name)
        )
        if not is_ours and (not _STEP_ID.fullmatch(name) or name.endswith(_GENERATED_SUFFIXES)):
            what = f"`{name}` is not an id: lower-case letters, digits, `-` and `_`, at most 64"
            hint = f"The ends {', '.join(_GENERATED_SUFFIXES)} are for what the compiler makes."
            self.error(
                "id",
                scope.pointer_to("/id"),
                what,
                hint if name.endswith(_GENERATED_SUFFIXES) else "",
            )
        whole = f"{scope.prefix}{name}"
        if whole in self._ids:
            what = f"`{name}` is already the id of {self._ids[whole]}"
            self.error("id", scope.pointer_to("/id"), what)
        self._ids.setdefault(whole, scope.at)

    def error(self, rule: ProblemRule, at: str, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(rule, at, message, suggestion))

    def warn(self, rule: ProblemRule, at: str, message: str, suggestion: str = "") -> None:
        self.problems.append(warning(rule, at, message, suggestion))


_SLOT_HINT = "Give it a `default` in `extensionPoints`, or bind it under [bindings] in config.toml."


def _slot_defaults(workflow: Workflow) -> dict[str, str]:
    points = workflow.extension_points
    return {point.slot_id: point.default for point in points if point.default is not None}
