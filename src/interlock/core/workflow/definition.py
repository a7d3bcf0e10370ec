"""The workflow file as an author writes it. The published JSON Schema is generated from here."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from interlock.core.ids import StepId, WorkflowId
from interlock.core.preferences import Wish
from interlock.core.workflow.packs import Capability
from interlock.core.workflow.passthrough import (
    Assessment,
    Consequence,
    DefinitionStruct,
    Identifier,
    Line,
    ModelTier,
    Name,
    Reference,
    UserOnly,
)

FILE_BYTES_MAX = 1024 * 1024  # a workflow is prose for an agent; a megabyte is somebody's accident
STEPS_MAX = 2_000
ITERATIONS_MAX = 1_000

Title = Annotated[str, Meta(min_length=1, max_length=200)]
Prose = Annotated[str, Meta(min_length=1, max_length=64 * 1024)]
Text = Annotated[str, Meta(max_length=64 * 1024)]
Count = Annotated[int, Meta(ge=1, le=ITERATIONS_MAX)]
ConditionJson = Annotated[
    dict[str, Any],
    Meta(description='{"var": "depth", "equals": "full"}, joined by and, or, not.'),
]

Confirmation = Annotated[
    bool | dict[str, Any],
    Meta(description='true, a condition, or an approval: {"kind": "human_approval", …}.'),
]


class TextPart(DefinitionStruct, frozen=True, tag_field="kind", tag="text"):
    text: Prose


class RefPart(DefinitionStruct, frozen=True, tag_field="kind", tag="ref"):
    ref_id: Annotated[str, Meta(description="The name of a built-in text (interlock builtins).")]


RichText: TypeAlias = Text | tuple[TextPart | RefPart, ...]


class PromptBlocks(DefinitionStruct, frozen=True):
    goal: RichText | None = None
    constraints: tuple[RichText, ...] = ()
    procedure: tuple[RichText, ...] = ()
    output_required: dict[str, RichText] = {}
    verify: tuple[RichText, ...] = ()


class Fragment(DefinitionStruct, frozen=True):
    """A part of the prompt that is given only where its condition holds."""

    id: Identifier
    text: Prose
    when: ConditionJson | None = None


class Function(DefinitionStruct, frozen=True):
    """A named way of doing something, told to the agent where a step refers to it."""

    name: Name
    definition: Text
    parameters: tuple[Any, ...] = ()
    scope: Literal["workflow", "loop", "step"] | None = None


class FunctionCall(DefinitionStruct, frozen=True):
    name: str
    args: dict[str, Any] = {}


class OutputContract(DefinitionStruct, frozen=True):
    contract_ref: Line
    required: bool = True
    keep: bool = False


class Verification(DefinitionStruct, frozen=True):
    """A command that proves the step; the agent runs it and submits the result."""

    command: Line
    prompt: Prose | None = None


class Audit(DefinitionStruct, frozen=True):
    prompt: Prose
    rubric: Prose | tuple[Line, ...] | None = None


class Call(DefinitionStruct, frozen=True):
    template_id: Annotated[str, Meta(description="The id of a routine.")]
    args: dict[str, str | int | float | bool] = {}


class Step(DefinitionStruct, frozen=True, tag_field="type", tag="standard"):
    id: StepId
    title: Title
    prompt: Prose | None = None
    prompt_blocks: PromptBlocks | None = None
    agent_role: Line | None = None
    model_tier: ModelTier | None = None
    guidance: tuple[Text, ...] = ()
    ask_for_files: bool = False
    run_condition: ConditionJson | None = None
    require_confirmation: Confirmation = False
    output_contract: OutputContract | None = None
    validation_criteria: Any = None
    user_only: UserOnly | None = None
    assessment_refs: Annotated[tuple[str, ...], Meta(max_length=50)] = ()
    assessment_consequences: Annotated[tuple[Consequence, ...], Meta(max_length=10)] = ()
    prompt_fragments: Annotated[tuple[Fragment, ...], Meta(max_length=50)] = ()
    function_definitions: Annotated[tuple[Function, ...], Meta(max_length=100)] = ()
    function_references: Annotated[tuple[str, ...], Meta(max_length=50)] = ()
    function_calls: Annotated[tuple[FunctionCall, ...], Meta(max_length=50)] = ()
    notes_optional: bool = False
    read_only: bool = False
    keep: bool = False
    sets: Annotated[tuple[Name, ...], Meta(max_length=50)] = ()
    verification: Verification | None = None
    audit: Audit | None = None


class ApprovalWish(DefinitionStruct, frozen=True):
    """The form of `requireConfirmation` that holds the run until somebody has answered."""

    kind: Literal["human_approval", "coordinator_eval"]
    condition: ConditionJson | None = None
    question: Line | None = None
    timeout_minutes: Annotated[int, Meta(ge=1, le=60 * 24 * 30)] | None = None
    on_timeout: Literal["deny", "grant"] = "deny"


class ConditionSource(DefinitionStruct, frozen=True):
    kind: Literal["artifact_contract", "context_variable"]
    contract_ref: str | None = None
    loop_id: str | None = None
    condition: ConditionJson | None = None


class LoopRule(DefinitionStruct, frozen=True):
    """How often the body is done. Where neither condition nor source is given, the agent says."""

    type: Literal["while", "until", "for", "forEach"]
    max_iterations: Count
    condition: ConditionJson | None = None
    condition_source: ConditionSource | None = None
    items: str | None = None
    count: int | str | None = None
    iteration_var: Name = "currentIteration"
    item_var: Name = "currentItem"
    index_var: Name = "currentIndex"


class Loop(DefinitionStruct, frozen=True, tag_field="type", tag="loop"):
    id: StepId
    title: Title
    loop: LoopRule
    body: "str | tuple[AnyStep, ...]"
    run_condition: ConditionJson | None = None
    function_definitions: Annotated[tuple[Function, ...], Meta(max_length=100)] = ()


class TemplateCall(DefinitionStruct, frozen=True, tag_field="type", tag="template_call"):
    id: StepId
    template_call: Call
    title: Title | None = None
    run_condition: ConditionJson | None = None
    require_confirmation: Confirmation = False


class Delegation(DefinitionStruct, frozen=True):
    goal: Prose | None = None
    workflow_id: Line | None = None
    run_condition: ConditionJson | None = None
    context_mapping: dict[str, Any] = {}
    args: dict[str, Any] = {}
    model_tier: ModelTier | None = None
    allowed_tools: tuple[str, ...] = ()
    result_as: Name | None = None


class Synthesis(DefinitionStruct, frozen=True):
    prompt: Prose
    output_contract: OutputContract | None = None


class Parallel(DefinitionStruct, frozen=True, tag_field="type", tag="parallel"):
    id: StepId
    title: Title
    parallel_delegations: Annotated[tuple[Delegation, ...], Meta(min_length=1, max_length=50)]
    synthesis: Synthesis | None = None
    prompt: Prose | None = None
    agent_role: Line | None = None
    model_tier: ModelTier | None = None
    guidance: tuple[Text, ...] = ()
    run_condition: ConditionJson | None = None
    require_confirmation: Confirmation = False
    output_contract: OutputContract | None = None
    validation_criteria: Any = None
    assessment_refs: Annotated[tuple[str, ...], Meta(max_length=50)] = ()
    assessment_consequences: Annotated[tuple[Consequence, ...], Meta(max_length=10)] = ()
    notes_optional: bool = False
    read_only: bool = False
    keep: bool = False
    sets: Annotated[tuple[Name, ...], Meta(max_length=50)] = ()


AnyStep: TypeAlias = Step | Loop | TemplateCall | Parallel


class Input(DefinitionStruct, frozen=True):
    """A value that a run begins with, or that a routine is called with."""

    description: Line
    required: bool = True
    default: Any = None


class FeatureUse(DefinitionStruct, frozen=True):
    """A built-in feature with settings of its own."""

    id: Line
    config: dict[str, Any] = {}


class LocalContract(DefinitionStruct, frozen=True):
    schema: dict[str, Any]
    example: dict[str, Any]


class ExtensionPoint(DefinitionStruct, frozen=True):
    """A slot that a project fills: `{{bindings.slot}}` in prompts."""

    slot_id: Name
    purpose: Line
    default: Prose | None = None
    accepted_kinds: tuple[str, ...] = ()


class Workflow(DefinitionStruct, frozen=True):
    id: Annotated[
        WorkflowId,
        Meta(
            max_length=64,
            pattern=r"^[a-z0-9_-]+(\.[a-z0-9_-]+)?$(?!\n)",
            description="Use `name` or `namespace.name`: lower-case letters, digits, - and _.",
        ),
    ]
    name: Title
    description: Line
    version: Annotated[
        str,
        Meta(
            pattern=r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$(?!\n)",
            description="Use three numbers, like 1.0.0.",
        ),
    ]
    steps: "Annotated[tuple[AnyStep, ...], Meta(min_length=1, max_length=STEPS_MAX)]"
    kind: Literal["workflow", "routine"] = "workflow"
    about: Prose | None = None
    examples: tuple[Line, ...] = ()
    tags: tuple[Name, ...] = ()
    inputs: dict[Name, Input] = {}
    context_schema: dict[str, Any] | None = None
    preconditions: tuple[Line, ...] = ()
    clarification_prompts: tuple[Line, ...] = ()
    meta_guidance: tuple[Line, ...] = ()
    model_tier: ModelTier | None = None
    recommended_preferences: Wish | None = None
    capabilities: dict[Capability, Literal["required", "preferred"]] = {}
    features: Annotated[tuple[str | FeatureUse, ...], Meta(max_length=20)] = ()
    extension_points: tuple[ExtensionPoint, ...] = ()
    references: Annotated[tuple[Reference, ...], Meta(max_length=100)] = ()
    contracts: Annotated[dict[str, LocalContract], Meta(max_length=50)] = {}
    assessments: Annotated[tuple[Assessment, ...], Meta(max_length=50)] = ()
    function_definitions: Annotated[tuple[Function, ...], Meta(max_length=100)] = ()
    validated_against_spec_version: int | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(use if isinstance(use, str) else use.id for use in self.features)

    @property
    def is_foreign(self) -> bool:
        """Written for WorkRail: what it leaves unset is shown as such instead of stopping."""
        return self.validated_against_spec_version is not None or self.id.startswith("wr.")
