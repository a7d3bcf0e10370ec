"""GitLab, with version 4 of its REST API."""

import re
from typing import ClassVar
from urllib.parse import quote_plus

import msgspec

from interlock.workspace.outside.forges.forge import (
    Forge,
    ForgeRequest,
    RequestState,
    find_first,
    path_parts,
)
from interlock.workspace.outside.forges.rest_calls import RestApi

GITLAB_URL = "https://gitlab.com"
_DRAFT = "Draft: "
_STATES: dict[str, RequestState] = {"closed": "closed", "merged": "merged"}
_QUICK_ACTION = re.compile(r"^(\s*)/(?=[A-Za-z])", re.MULTILINE)


class _Member(msgspec.Struct, frozen=True):
    id: int
    username: str


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


class GitLabForge(Forge):
    """With an access token of a person, a project or a group."""

    _shape = _MergeRequest
    _already_there = 409
    _changes_query: ClassVar = {
        "state": "opened",
        "scope": "all",
        "order_by": "updated_at",
        "sort": "desc",
    }

    def __init__(self, base_url: str, token: str, seconds: float) -> None:
        headers = {"Accept": "application/json"}
        if token:
            headers["PRIVATE-TOKEN"] = token
        address = f"{(base_url or GITLAB_URL).rstrip('/')}/api/v4"
        super().__init__(RestApi("GitLab", address, headers, token=token, seconds=seconds))

    def find_comment(self, repository: str, number: int, marker: str) -> str:
        assert marker, "every comment contains an empty marker"
        path = f"{self._requests_path(repository)}/{number:d}"
        with self._api.calls() as calls:
            own = calls.get("/user", _Member).id
            pages = calls.pages(f"{path}/notes", _Note, {})
            note = find_first(pages, lambda one: one.is_by(own) and marker in one.body)
            return f"{calls.get(path, _MergeRequest).web_url}#note_{note.id}" if note else ""

    def comment(self, repository: str, number: int, text: str) -> str:
        path = f"{self._requests_path(repository)}/{number:d}"
        content = {"body": _without_quick_actions(text)}
        with self._api.calls() as calls:
            # First: what fails after the comment was written would have it written once more.
            url = calls.get(path, _MergeRequest).web_url
            return f"{url}#note_{calls.post(f'{path}/notes', _Note, content).id}"

    def _path(self, repository: str) -> str:
        path_parts(repository)
        return f"/projects/{quote_plus(repository)}"

    def _requests_path(self, repository: str) -> str:
        return f"{self._path(repository)}/merge_requests"

    def _branch_query(self, repository: str, source_branch: str) -> dict[str, str]:  # noqa: ARG002
        query = {"state": "all", "scope": "all", "source_branch": source_branch}
        return query | {"order_by": "created_at", "sort": "desc"}

    def _new_request(
        self, source_branch: str, target_branch: str, title: str, body: str, *, is_draft: bool
    ) -> dict[str, str]:
        return {
            "source_branch": source_branch,
            "target_branch": target_branch,
            "title": f"{_DRAFT}{title}" if is_draft else title,
            "description": _without_quick_actions(body),
        }


def _without_quick_actions(text: str) -> str:
    """Return the text with every line escaped that GitLab would take as a command of ours.

    It was written by an agent, and `/merge` at the beginning of a line would merge.
    """
    return _QUICK_ACTION.sub(r"\1\\/", text)
