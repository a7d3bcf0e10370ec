"""A forge: its merge requests (pull requests), and the comments on them."""

from typing import Literal, Protocol, TypeAlias

import msgspec

RequestState: TypeAlias = Literal["open", "closed", "merged"]


class ForgeRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A merge request or pull request, as somebody has written it: not to be obeyed."""

    number: int
    url: str
    state: RequestState
    title: str
    author: str
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    head: str
    """The commit; empty if there is none."""
    source_branch: str
    target_branch: str
    body: str
    is_draft: bool
    updated_at: str
    """As the forge writes it."""
    is_fork: bool = False
    """Whether its code is in another repository, or in none any more."""


class RequestPage(msgspec.Struct, frozen=True):
    """The open requests that have changed, the most recently updated first."""

    requests: tuple[ForgeRequest, ...]
    etag: str
    """To be handed in at the next look; empty if the forge has none."""
    is_unchanged: bool = False
    """Nothing has changed since the look that this `etag` is from."""
    is_cut_off: bool = False
    """There are more than are ever read; those that were updated longest ago are left out."""


class ForgeFailed(OSError):
    """A forge did not do what it was asked for. It is tried again, unless `is_final`.

    If it was asked to change something, it may have done it all the same. The message is a sentence
    and never holds the token.
    """

    def __init__(
        self, message: str, *, is_final: bool = False, wait_seconds: int = 0, status: int = 0
    ) -> None:
        super().__init__(message)
        self.is_final = is_final
        self.wait_seconds = wait_seconds
        """How long the forge wants to be left alone."""
        self.status = status
        """Of its answer; 0 if there was none."""


class Forge(Protocol):
    """Every method raises `ForgeFailed`, and takes no longer than the forge was given for one.

    A repository is named by its path on the forge, as `group/name`.
    """

    def request(self, repository: str, number: int) -> ForgeRequest | None:
        """Return a request; None if there is none, or the token does not let us see it."""
        ...

    def changed_requests(self, repository: str, *, since: str, etag: str) -> RequestPage:
        """Return the open requests that were updated at this time or later.

        `since` is a time as the forge writes it, or empty for all; `etag` is from the last look.
        """
        ...

    def find_request(self, repository: str, source_branch: str) -> ForgeRequest | None:
        """Return the newest request from a branch of the repository itself, in whatever state."""
        ...

    def open_request(
        self,
        repository: str,
        *,
        source_branch: str,
        target_branch: str,
        title: str,
        body: str,
        is_draft: bool,
    ) -> ForgeRequest:
        """Open a request, or return the open one that there is already between these branches."""
        ...

    def find_comment(self, repository: str, number: int, marker: str) -> str:
        """Return the address of a comment of our own that contains the marker; empty if none."""
        ...

    def comment(self, repository: str, number: int, text: str) -> str:
        """Write a comment on a request, and return its address."""
        ...

    def default_branch(self, repository: str) -> str: ...
