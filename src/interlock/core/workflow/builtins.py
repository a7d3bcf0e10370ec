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
        "Steps begin with what the project already knows and leave behind what was learned",
        constraints=(
            "What the project's notes say about this work counts; where you leave it, say why.",
        ),
        procedure=("Before you begin, look up what is already written down about this work.",),
        verify=("Whatever the next person would have to find out again is in your notes.",),
    ),
    "capabilities": Feature(
        "Steps find out what the agent can do instead of assuming it",
        constraints=(
            "Do not assume that you can delegate or browse the web: try it, and hand in a"
            " `capability_observation` artifact with what you saw.",
        ),
    ),
    "subagent_guidance": Feature(
        "Steps delegate in a bounded way and keep the judgement with the main agent",
        constraints=(
            "What a sub-agent reports is evidence, not truth: check whatever the result rests on.",
            "You own the result. Delegate looking and trying; decide yourself.",
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
    "memory_usage": "Begin with what is already written down about this work, and end by writing"
    " down what the next person would otherwise have to find out again.",
    "memory_store": "Write down decisions with their reasons, and facts that were hard to find, in"
    " words that make sense without this conversation.",
    "memory_query": "Look for notes on this work by the names of its parts before you ask anybody"
    " and before you find it out again.",
    "notes_first_durability": "Your notes on a step are what survives. Anything that matters later"
    " stands in them, not only in this conversation.",
    "synthesis_under_disagreement": "Where the findings disagree, do not average them. Say what"
    " each would predict, find the observation that tells them apart, and decide by that.",
    "parallelize_cognition_serialize_synthesis": "Let independent looking and thinking run side by"
    " side; bring the results together, and decide, one at a time and yourself.",
    "adversarial_challenge_rules": "Attack the strongest form of the claim. One objection that"
    " would change the outcome is worth more than ten that would not. Say what would convince you.",
}


def strip_owner_prefix(name: str, family: Literal["features", "refs"]) -> str:
    """Return the plain name: `wr.features.x`, `interlock.features.x` and `x` are the same."""
    for owner in ("wr", "interlock"):
        name = name.removeprefix(f"{owner}.{family}.")
    return name
