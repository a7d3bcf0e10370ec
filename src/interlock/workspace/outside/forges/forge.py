"""A forge: its merge requests (pull requests), and the comments on them.

What forges do alike is done here; what only one of them does, and how it writes things, is in its
own module.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from interlock.core.coordination.iso_times import iso_milliseconds
from interlock.core.git_names import is_repository_path
from interlock.workspace.outside.forges.rest_calls import ForgeFailed, ListPage, RestApi
from interlock.workspace.outside.quotation import quote

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
    """Sent with the next poll; empty if the forge has none."""
    is_unchanged: bool = False
    """Whether nothing has changed since the poll that returned this `etag`."""
    is_cut_off: bool = False
    """There are more than are ever read; those that were updated longest ago are left out."""


class RequestShape(Protocol):
    """A request in a forge's form."""

    def as_request(self) -> ForgeRequest: ...


class _RepositorySettings(msgspec.Struct, frozen=True):
    default_branch: str | None = None
    """None as long as nothing was pushed."""


T = TypeVar("T")
R = TypeVar("R", bound=RequestShape)


class Forge(ABC):
    """Every method raises `ForgeFailed`, and takes no longer than the forge was given for one.

    A repository is named by its path on the forge, as `group/name`.
    """

    _shape: ClassVar[type[RequestShape]]
    _already_there: ClassVar[int]
    """The status of the answer to a request between branches that have one already."""
    _changes_query: ClassVar[Mapping[str, str]]
    """Asks for the open requests, the most recently updated first."""

    def __init__(self, api: RestApi) -> None:
        self._api = api

    @abstractmethod
    def find_comment(self, repository: str, number: int, marker: str) -> str:
        """Return the address of our comment that contains the marker; empty if there is none."""

    @abstractmethod
    def comment(self, repository: str, number: int, text: str) -> str:
        """Write a comment on a request, and return its address."""

    @abstractmethod
    def _path(self, repository: str) -> str: ...

    @abstractmethod
    def _requests_path(self, repository: str) -> str: ...

    @abstractmethod
    def _branch_query(self, repository: str, source_branch: str) -> dict[str, str]:
        """Return the query for the requests from a branch, the newest first."""

    @abstractmethod
    def _new_request(
        self, source_branch: str, target_branch: str, title: str, body: str, *, is_draft: bool
    ) -> Mapping[str, Any]: ...

    def request(self, repository: str, number: int) -> ForgeRequest | None:
        """Return a request; None if there is none, or the token does not let us see it."""
        with self._api.calls() as calls:
            found = calls.find(f"{self._requests_path(repository)}/{number:d}", self._shape)
        return found.as_request() if found else None

    def changed_requests(self, repository: str, *, since: str, etag: str) -> RequestPage:
        """Return the open requests that were updated at this time or later.

        `since` is a time as the forge writes it, or empty for all; `etag` is from the last look.
        """
        path = self._requests_path(repository)
        with self._api.calls() as calls:
            return _collect_changes(
                calls.pages(path, self._shape, self._changes_query, etag), since
            )

    def find_request(
        self, repository: str, source_branch: str, open_into: str = ""
    ) -> ForgeRequest | None:
        """Return the newest request from a branch, or the one that is open into another.

        It is from the repository itself: anybody can give a branch of a fork the same name.
        """

        def is_wanted(shape: RequestShape) -> bool:
            request = shape.as_request()
            is_ours = request.source_branch == source_branch and not request.is_fork
            target = request.target_branch if request.state == "open" else ""
            return is_ours and open_into in ("", target)

        path, query = self._requests_path(repository), self._branch_query(repository, source_branch)
        with self._api.calls() as calls:
            found = find_first(calls.pages(path, self._shape, query), is_wanted)
        return found.as_request() if found else None

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
        content = self._new_request(source_branch, target_branch, title, body, is_draft=is_draft)
        try:
            with self._api.calls() as calls:
                path = self._requests_path(repository)
                return calls.post(path, self._shape, content).as_request()
        except ForgeFailed as failure:
            present = None
            if failure.status == self._already_there:
                present = self.find_request(repository, source_branch, target_branch)
            if present is None:
                raise
            return present

    def default_branch(self, repository: str) -> str:
        with self._api.calls() as calls:
            return calls.get(self._path(repository), _RepositorySettings).default_branch or ""


def path_parts(repository: str) -> list[str]:
    """Return the parts of a repository's path.

    Raises:
        ForgeFailed: it is none.
    """
    if not is_repository_path(repository):
        fault = "is not the path of a repository on a forge"
        raise ForgeFailed(f"`{quote(repository)}` {fault}", is_final=True)
    return repository.split("/")


def find_first(pages: Iterable[ListPage[T]], is_wanted: Callable[[T], bool]) -> T | None:
    """Return the first matching item of a list.

    Raises:
        ForgeFailed: the list is longer than the limit, so it may be in the unread part.
    """
    has_more = False
    for page in pages:
        for item in page.items:
            if is_wanted(item):
                return item
        has_more = page.has_more
    if has_more:
        raise ForgeFailed("The forge has a list that is too long to look through", is_final=True)
    return None


def _collect_changes(pages: Iterable[ListPage[R]], since: str) -> RequestPage:
    """Return the items updated at this time or later, from a list with the newest first.

    The list may move while it is read, so that one comes up twice.
    """
    requests: dict[int, ForgeRequest] = {}
    etags, has_more, since_ms = list[str](), False, _time_of(since)
    for page in pages:
        etags.append(page.etag)
        if page.is_unchanged:
            return RequestPage((), page.etag, is_unchanged=True)
        read = [item.as_request() for item in page.items]
        recent = [request for request in read if _time_of(request.updated_at) >= since_ms]
        for request in recent:
            requests.setdefault(request.number, request)
        has_more = page.has_more and len(recent) == len(read)
        if not has_more:
            break
    return RequestPage(tuple(requests.values()), etags[0], is_cut_off=has_more)


def _time_of(text: str) -> int:
    try:
        return iso_milliseconds(text)
    except ValueError as error:
        raise ForgeFailed(f"`{quote(text)}` is not a time as forges write it") from error
