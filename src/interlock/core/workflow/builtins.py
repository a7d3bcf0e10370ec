"""Built-in texts: features, which the compiler adds to every step, and passages to refer to."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.core.workflow.passthrough import DefinitionStruct, Line


class MemoryConfig(DefinitionStruct, frozen=True):
    topics: Annotated[
        tuple[Line, ...], Meta(max_length=20, description="Names to look for in the notes.")
    ] = ()

    def procedure(self) -> tuple[str, ...]:
        return (f"Look in the notes for: {', '.join(self.topics)}.",) if self.topics else ()


class SubagentConfig(DefinitionStruct, frozen=True):
    agents_max: (
        Annotated[int, Meta(ge=1, le=20, description="How many may work at the same time.")] | None
    ) = None

    def procedure(self) -> tuple[str, ...]:
        if self.agents_max is None:
            return ()
        return (f"Let at most {self.agents_max} sub-agents work at the same time.",)


class Feature(msgspec.Struct, frozen=True):
    purpose: str
    constraints: tuple[str, ...] = ()
    procedure: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()


FEATURES: dict[str, Feature] = {
    "memory_context": Feature(
        "Steps begin with what the project already knows and write down what was learned",
        constraints=(
            "Follow what the project's notes say about this work; where you do not, say why.",
        ),
        procedure=("Before you begin, look up what is already written down about this work.",),
        verify=("Your notes say whatever the next person would otherwise have to find out again.",),
    ),
    "capabilities": Feature(
        "Steps find out what the agent can do instead of assuming it",
        constraints=(
            "Do not assume that you can delegate or browse the web: try it, and submit a"
            " `capability_observation` artifact that says what happened.",
        ),
    ),
    "subagent_guidance": Feature(
        "Steps delegate clearly bounded work and leave the decisions to the main agent",
        constraints=(
            "A sub-agent's report is evidence, not proof: check whatever your result depends on.",
            "You are responsible for the result. Delegate research and trials; decide yourself.",
        ),
        procedure=(
            "Give a sub-agent one question, what it needs to know, and the form of the answer.",
        ),
    ),
}

FEATURE_CONFIGS: dict[str, type[MemoryConfig | SubagentConfig]] = {
    "memory_context": MemoryConfig,
    "subagent_guidance": SubagentConfig,
}
"""The settings of the features that have any; they add to the procedure."""

PASSAGES: dict[str, str] = {
    "memory_usage": "Begin with what is already written down about this work. At the end, write"
    " down what the next person would otherwise have to find out again.",
    "memory_store": "Write down decisions with their reasons, and facts that were hard to find, so"
    " that they make sense without this conversation.",
    "memory_query": "Search the notes for the names of the parts you work on before you ask"
    " anybody, and before you find something out a second time.",
    "notes_first_durability": "Only your notes on a step survive this conversation. Put everything"
    " in them that matters later.",
    "synthesis_under_disagreement": "Where findings disagree:\n"
    "1. Name each disagreement and who holds which view; do not average them or count votes.\n"
    "2. Check first whether they speak of the same thing: same version, same input, same words.\n"
    "3. Say what you would observe if each view were right, and go and observe it.\n"
    "4. What was seen in the code or in a run counts more than what was concluded, and that more"
    " than what was assumed.\n"
    "5. A finding that only one made is not weaker for that: check it before you drop it.\n"
    "6. Where you cannot decide, say so, keep both views, and say what it would take.\n"
    "7. Write down what you rejected and why, so that nobody has to raise it again.",
    "parallelize_cognition_serialize_synthesis": "Let independent research and thinking run at the"
    " same time. Bring the results together yourself, one after the other, and decide yourself.",
    "adversarial_challenge_rules": "Attack the strongest form of the claim. One objection that"
    " would change the outcome is worth more than ten that would not. Say what would convince you.",
}


def strip_owner_prefix(name: str, family: Literal["features", "refs"]) -> str:
    """Return the plain name: `wr.features.x`, `interlock.features.x` and `x` are the same."""
    for owner in ("wr", "interlock"):
        name = name.removeprefix(f"{owner}.{family}.")
    return name
