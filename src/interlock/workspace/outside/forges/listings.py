"""What is looked for in the lists of a forge, page by page."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from interlock.core.coordination.iso_times import iso_milliseconds
from interlock.core.git_names import is_repository_path
from interlock.workspace.outside.forges.forge import ForgeFailed, ForgeRequest, RequestPage
from interlock.workspace.outside.forges.rest_calls import ListPage
from interlock.workspace.outside.quotation import quote


class RequestShape(Protocol):
    """A request as a forge writes it."""

    def as_request(self) -> ForgeRequest: ...


T = TypeVar("T")
R = TypeVar("R", bound=RequestShape)


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
    """Return the first of a list that is wanted.

    Raises:
        ForgeFailed: the list is longer than is ever read, so it may be where nobody has looked.
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


def find_request(
    pages: Iterable[ListPage[R]], source_branch: str, open_into: str
) -> ForgeRequest | None:
    """Return the first request from a branch; only an open one, if it is to be into another.

    It is from the repository itself: anybody can give a branch of a fork the same name.
    """

    def is_wanted(shape: R) -> bool:
        request = shape.as_request()
        is_ours = request.source_branch == source_branch and not request.is_fork
        target = request.target_branch if request.state == "open" else ""
        return is_ours and open_into in ("", target)

    found = find_first(pages, is_wanted)
    return found.as_request() if found else None


def collect_changes(pages: Iterable[ListPage[R]], since: str) -> RequestPage:
    """Return what was updated at this time or later, from a list that begins with the newest.

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
