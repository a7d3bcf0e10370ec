"""The forges that are known, by their kind."""

from typing import Literal, TypeAlias

from interlock.workspace.outside.forges.forge import Forge
from interlock.workspace.outside.forges.github import GitHubForge
from interlock.workspace.outside.forges.gitlab import GitLabForge

ForgeKind: TypeAlias = Literal["github", "gitlab"]

FORGE_SECONDS = 30.0
_FORGES: dict[ForgeKind, type[GitHubForge] | type[GitLabForge]] = {
    "github": GitHubForge,
    "gitlab": GitLabForge,
}


def forge_of(
    kind: ForgeKind, base_url: str, token: str, *, seconds: float = FORGE_SECONDS
) -> Forge:
    """Return the forge at an address, or the public one of its kind if the address is empty.

    Raises:
        ForgeFailed: the token could be read on its way there.
    """
    return _FORGES[kind](base_url, token, seconds)
