"""GitLab, with version 4 of its REST API."""

import re
from urllib.parse import quote_plus

import msgspec

from interlock.workspace.outside.forges.forge import (
    ForgeFailed,
    ForgeRequest,
    RequestPage,
    RequestState,
)
from interlock.workspace.outside.forges.listings import (
    collect_changes,
    find_first,
    find_request,
    path_parts,
)
from interlock.workspace.outside.forges.rest_calls import RestApi

GITLAB_URL = "https://gitlab.com"
_ALREADY_THERE = 409
_DRAFT = "Draft: "
_STATES: dict[str, RequestState] = {"closed": "closed", "merged": "merged"}
_QUICK_ACTION = re.compile(r"^(\s*)/(?=[A-Za-z])", re.MULTILINE)


class _Member(msgspec.Struct, frozen=True):
    id: int
    username: str


class _HostedProject(msgspec.Struct, frozen=True):
    default_branch: str | None = None
    """None as long as nothing was pushed."""


class _MergeRequest(msgspec.Struct, frozen=True):
    iid: int
    web_url: str
    state: str
    title: str
    source_branch: str
    target_branch: str
    updated_at: str
    target_project_id: int
    source_project_id: int | None = None
    """None after it was deleted."""
    author: _Member | None = None
    sha: str | None = None
    description: str | None = None
    draft: bool | None = None
    work_in_progress: bool | None = None
    """The older name of `draft`."""
    labels: tuple[str, ...] = ()
    assignees: tuple[_Member, ...] = ()

    def as_request(self) -> ForgeRequest:
        return ForgeRequest(
            number=self.iid,
            url=self.web_url,
            state=_STATES.get(self.state, "open"),  # `locked` is one that is being merged
            title=self.title,
            author=self.author.username if self.author else "",
            labels=self.labels,
            assignees=tuple(user.username for user in self.assignees),
            head=self.sha or "",
            source_branch=self.source_branch,
            target_branch=self.target_branch,
            body=self.description or "",
            is_draft=bool(self.draft or self.work_in_progress),
            updated_at=self.updated_at,
            is_fork=self.source_project_id != self.target_project_id,
        )


class _Note(msgspec.Struct, frozen=True):
    id: int
    body: str
    author: _Member | None = None
    system: bool = False
    """Written by GitLab itself, about what somebody did."""

    def is_by(self, user_id: int) -> bool:
        return self.author is not None and self.author.id == user_id and not self.system


class GitLabForge:
    """With an access token of a person, a project or a group."""

    def __init__(self, base_url: str, token: str, seconds: float) -> None:
        headers = {"Accept": "application/json"}
        if token:
            headers["PRIVATE-TOKEN"] = token
        address = f"{(base_url or GITLAB_URL).rstrip('/')}/api/v4"
        self._api = RestApi("GitLab", address, headers, token=token, seconds=seconds)

    def request(self, repository: str, number: int) -> ForgeRequest | None:
        with self._api.calls() as calls:
            found = calls.find(_request_path(repository, number), _MergeRequest)
        return found.as_request() if found else None

    def changed_requests(self, repository: str, *, since: str, etag: str) -> RequestPage:
        query = {"state": "opened", "scope": "all", "order_by": "updated_at", "sort": "desc"}
        with self._api.calls() as calls:
            pages = calls.pages(f"{_path(repository)}/merge_requests", _MergeRequest, query, etag)
            return collect_changes(pages, since)

    def find_request(
        self, repository: str, source_branch: str, open_into: str = ""
    ) -> ForgeRequest | None:
        """Return the newest request from a branch, or the one that is open into another."""
        query = {"state": "all", "scope": "all", "source_branch": source_branch}
        query |= {"order_by": "created_at", "sort": "desc"}
        with self._api.calls() as calls:
            pages = calls.pages(f"{_path(repository)}/merge_requests", _MergeRequest, query)
            return find_request(pages, source_branch, open_into)

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
        content = {
            "source_branch": source_branch,
            "target_branch": target_branch,
            "title": f"{_DRAFT}{title}" if is_draft else title,
            "description": _without_quick_actions(body),
        }
        path = f"{_path(repository)}/merge_requests"
        try:
            with self._api.calls() as calls:
                return calls.post(path, _MergeRequest, content).as_request()
        except ForgeFailed as failure:
            present = None
            if failure.status == _ALREADY_THERE:
                present = self.find_request(repository, source_branch, target_branch)
            if present is None:
                raise
            return present

    def find_comment(self, repository: str, number: int, marker: str) -> str:
        assert marker, "every comment contains an empty marker"
        path = _request_path(repository, number)
        with self._api.calls() as calls:
            own = calls.get("/user", _Member).id
            pages = calls.pages(f"{path}/notes", _Note, {})
            note = find_first(pages, lambda one: one.is_by(own) and marker in one.body)
            return f"{calls.get(path, _MergeRequest).web_url}#note_{note.id}" if note else ""

    def comment(self, repository: str, number: int, text: str) -> str:
        path, content = _request_path(repository, number), {"body": _without_quick_actions(text)}
        with self._api.calls() as calls:
            # First: what fails after the comment was written would have it written once more.
            url = calls.get(path, _MergeRequest).web_url
            return f"{url}#note_{calls.post(f'{path}/notes', _Note, content).id}"

    def default_branch(self, repository: str) -> str:
        with self._api.calls() as calls:
            return calls.get(_path(repository), _HostedProject).default_branch or ""


def _without_quick_actions(text: str) -> str:
    """Return the text with every line escaped that GitLab would take as a command of ours.

    It was written by an agent, and `/merge` at the beginning of a line would merge.
    """
    return _QUICK_ACTION.sub(r"\1\\/", text)


def _path(repository: str) -> str:
    path_parts(repository)
    return f"/projects/{quote_plus(repository)}"


def _request_path(repository: str, number: int) -> str:
    return f"{_path(repository)}/merge_requests/{number:d}"
