"""The compiled workflow: plain data, pinned by its hash for as long as a run lives.

Foreign JSON (conditions, criteria, schemas) is kept as canonical text, which only its own encoder
writes. What the compiler added is marked as such (`injected`).
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json
from interlock.core.ids import StepId, WorkflowHash, WorkflowId
from interlock.core.preferences import Wish
from interlock.core.workflow.contracts import Contract
from interlock.core.workflow.packs import Capability
from interlock.core.workflow.passthrough import (
    Assessment,
    Consequence,
    ModelTier,
    Reference,
    UserOnly,
)

COMPILER_VERSION = 4
"""Part of every hash: a later compiler may compile the same file to something else."""


class _CompiledStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    pass


class InjectedPart(_CompiledStruct, frozen=True):
    """A part that the author did not write."""

    part: Literal["step", "contract", "text"]
    by: str
    """Its origin: `feature subagent_guidance`, `routine final-verification`, `loop review`."""


class CompiledFragment(_CompiledStruct, frozen=True):
    id: str
    text: str
    when: str | None = None


class CompiledApproval(_CompiledStruct, frozen=True):
    """Somebody must answer before the run goes on from a step."""

    kind: Literal["human_approval", "coordinator_eval"]
    question: str
    condition: str | None = None
    timeout_ms: int | None = None
    on_timeout: Literal["deny", "grant"] = "deny"


class SetKey(_CompiledStruct, frozen=True):
    """A key of the context that a step should set, because later steps depend on it."""

    name: str
    example: str
    """The value as canonical JSON, with `<…>` wherever the agent decides."""
    is_always_asked: bool = False
    """Whether it is asked for even if it is set: the file declares it, or a loop may change it.
    Otherwise the prompt only speaks of it."""


class CompiledDelegation(_CompiledStruct, frozen=True):
    """Work for another agent."""

    goal: str
    """With `{{placeholders}}`, as all its texts."""
    workflow_id: str = ""
    context: dict[str, str] = {}
    """The values to hand over: canonical JSON as text. A text in it that is one placeholder stands
    for the value, of whatever type."""
    when: str | None = None
    result_key: str = ""
    """The key of the context that takes the result."""
    model_tier: ModelTier | None = None
    allowed_tools: tuple[str, ...] = ()


class CompiledStep(_CompiledStruct, frozen=True, tag_field="type", tag="step"):
    id: StepId
    title: str
    prompt: str
    """Everything that does not depend on the run, with `{{placeholders}}` for what does."""
    number: int
    """Its number among the steps of the definition, counted from 1."""
    pointer: str
    """Its JSON pointer in the file, or that of the part which brought it in."""
    is_elsewhere: bool = False
    """Its text is in another file, or was generated: no pointer leads into it."""
    agent_role: str = ""
    model_tier: ModelTier | None = None
    run_condition: str | None = None
    fragments: tuple[CompiledFragment, ...] = ()
    confirms: bool | str = False
    """Whether the user is asked before the step is submitted; a string is the condition."""
    approval: CompiledApproval | None = None
    contract: Contract | None = None
    validation_criteria: str | None = None
    user_only: UserOnly | None = None
    assessments: tuple[Assessment, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    notes_optional: bool = False
    read_only: bool = False
    """Whether it changes nothing in the workspace."""
    keep: bool = False
    """Whether its notes and artifacts are shown whole after every break."""
    sets: tuple[SetKey, ...] = ()
    verification: str = ""
    """The command whose success proves the step before, with `{{placeholders}}`."""
    delegations: tuple[CompiledDelegation, ...] = ()
    injected: tuple[InjectedPart, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether something that it submits is shown after every break."""
        return self.keep or bool(self.contract and self.contract.is_kept)


class CompiledLoop(_CompiledStruct, frozen=True, tag_field="type", tag="loop"):
    id: StepId
    title: str
    kind: Literal["while", "until", "for", "forEach", "group"]
    """A group is done once or not at all: its condition is evaluated before it."""
    passes_max: int
    body: "tuple[CompiledPart, ...]"
    pointer: str
    is_elsewhere: bool = False
    condition: str | None = None
    """For `while` and `until`; where it is left out, the agent decides with `loop_control`."""
    condition_at: str = ""
    """The path of the condition within the loop."""
    control_id: str = ""
    """Another name by which the agent's decision may refer to this loop."""
    items: str = ""
    count: int | str = 0
    iteration_var: str = "currentIteration"
    item_var: str = "currentItem"
    index_var: str = "currentIndex"
    run_condition: str | None = None

    @property
    def takes_decisions(self) -> bool:
        """Whether a decision of the agent counts: more than a condition, where there is one."""
        return self.kind in ("while", "until")

    @property
    def is_controlled(self) -> bool:
        """Whether the agent must decide at the end of each pass."""
        return self.takes_decisions and self.condition is None


CompiledPart: TypeAlias = CompiledStep | CompiledLoop


class CompiledInput(_CompiledStruct, frozen=True):
    name: str
    description: str
    default: str | None = None
    """Canonical JSON as text; an input without one must be given."""
    is_required: bool = True


class CompiledWorkflow(_CompiledStruct, frozen=True):
    compiler_version: int
    id: WorkflowId
    version: str
    name: str
    steps: tuple[CompiledPart, ...]
    step_count: int
    kind: Literal["workflow", "routine"] = "workflow"
    guidance: tuple[str, ...] = ()
    """For the whole run: given at its start, and again after a break."""
    preconditions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """To be settled at the start, as far as they are open."""
    inputs: tuple[CompiledInput, ...] = ()
    context_schema: str | None = None
    references: tuple[Reference, ...] = ()
    capabilities: dict[Capability, Literal["required", "preferred"]] = {}
    recommended_preferences: Wish | None = None
    model_tier: ModelTier | None = None
    quoted_steps: tuple[StepId, ...] = ()
    """Steps whose notes a prompt quotes, as `{{notes.STEP}}`."""
    unset_keys: tuple[SetKey, ...] = ()
    """Keys that no step can set before they are read: the first step asks for them."""
    shows_unset: bool = False
    """Whether an unset value is shown as such instead of stopping the run: for foreign files."""

    @property
    def is_lenient(self) -> bool:
        """Whether a comparison with a value of another kind does not hold, instead of stopping."""
        return self.shows_unset

    def input_defaults(self) -> dict[str, Json]:
        """The values of the optional inputs."""
        return {
            declared.name: msgspec.json.decode(declared.default)
            for declared in self.inputs
            if declared.default is not None
        }

    def required_inputs(self) -> tuple[str, ...]:
        """The required inputs."""
        return tuple(one.name for one in self.inputs if one.is_required and one.default is None)

    def steps_with_loops(self) -> Iterator[tuple[CompiledStep, tuple[CompiledLoop, ...]]]:
        """The steps in the order of the definition, each with the loops around it."""
        pending: list[tuple[CompiledPart, tuple[CompiledLoop, ...]]] = [
            (part, ()) for part in reversed(self.steps)
        ]
        while pending:
            part, enclosing = pending.pop()
            if isinstance(part, CompiledStep):
                yield part, enclosing
            else:
                pending += [(inner, (*enclosing, part)) for inner in reversed(part.body)]


class PinnedWorkflow(msgspec.Struct, frozen=True):
    """A compiled workflow together with the bytes and the hash that pin it."""

    workflow: CompiledWorkflow
    content: CanonicalBytes
    hash: WorkflowHash


_decoder = msgspec.json.Decoder(CompiledWorkflow)


def pin_workflow(workflow: CompiledWorkflow) -> PinnedWorkflow:
    content = canonical.encode(workflow)
    return PinnedWorkflow(workflow, content, WorkflowHash(canonical.blob_ref(content)))


def decode_workflow(content: bytes) -> CompiledWorkflow:
    return _decoder.decode(content)
