"""Parts of a workflow that are compiled as they are written."""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Line = Annotated[str, Meta(min_length=1, max_length=2_000)]
Name = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z_][\w-]*$(?!\n)")]
Identifier = Annotated[
    str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$(?!\n)")
]
RESERVED_NAME = re.compile(r"goal|interlock.*|__proto__|constructor|prototype")
"""Names in the context that neither files nor agents set."""
ModelTier = Literal["lightweight", "mid", "heavy"]
UserOnlyReason = Literal[
    "needs_user_secret_or_token",
    "needs_user_account_access",
    "needs_user_artifact",
    "needs_user_choice",
    "needs_user_approval",
    "needs_user_environment_action",
]


class DefinitionStruct(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Something that stands in a file: a field that nobody knows is a mistake, not a comment."""


class UserOnly(DefinitionStruct, frozen=True):
    """Something that only the user can give."""

    reason: UserOnlyReason
    question: Line


class AssessmentTrigger(DefinitionStruct, frozen=True):
    any_equals_level: Line
    for_assessment: str | None = None


class Effect(DefinitionStruct, frozen=True):
    kind: Literal["require_followup"]
    guidance: Line


class Consequence(DefinitionStruct, frozen=True):
    """The effect of an assessment that comes out at a level."""

    when: AssessmentTrigger
    effect: Effect


class Dimension(DefinitionStruct, frozen=True):
    id: Identifier
    purpose: Line
    levels: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=20)]


class Assessment(DefinitionStruct, frozen=True):
    """A judgement in dimensions, each of which has a few named levels."""

    id: Identifier
    purpose: Line
    dimensions: Annotated[tuple[Dimension, ...], Meta(min_length=1, max_length=10)]


class Reference(DefinitionStruct, frozen=True):
    """A file or an address that matters here. Its content is hashed at start, never fetched."""

    id: Identifier
    title: Line
    source: Line
    purpose: Line
    authoritative: bool = False
    resolve_from: Literal["workspace", "package"] = "workspace"

    @property
    def is_address(self) -> bool:
        """Whether it is somewhere else, to be shown and never fetched."""
        return bool(_ADDRESS.match(self.source))


_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
