"""GitHub, and what speaks like it: a GitHub Enterprise Server has its API under `/api/v3`."""

from typing import ClassVar

import msgspec

from interlock.workspace.outside.forges.forge import Forge, ForgeRequest, find_first, path_parts
from interlock.workspace.outside.forges.rest_calls import ForgeFailed, RestApi

GITHUB_URL = "https://api.github.com"
_VERSION = "2022-11-28"


class _Account(msgspec.Struct, frozen=True):
    id: int
    login: str


class _PullLabel(msgspec.Struct, frozen=True):
    name: str


class _HostedRepository(msgspec.Struct, frozen=True):
    id: int


class _PullBranch(msgspec.Struct, frozen=True):
    ref: str
    sha: str
    repo: _HostedRepository | None
    """None after it was deleted."""


class _Pull(msgspec.Struct, frozen=True):
    number: int
    html_url: str
    state: str
    title: str
    head: _PullBranch
    base: _PullBranch
    updated_at: str
    merged_at: str | None = None
    user: _Account | None = None
    """None after the account was deleted."""
    body: str | None = None
    draft: bool | None = False
    labels: tuple[_PullLabel, ...] = ()
    assignees: tuple[_Account, ...] = ()

    def as_request(self) -> ForgeRequest:
        return ForgeRequest(
            number=self.number,
            url=self.html_url,
            state="merged" if self.merged_at else "open" if self.state == "open" else "closed",
            title=self.title,
            author=self.user.login if self.user else "",
            labels=tuple(label.name for label in self.labels),
            assignees=tuple(user.login for user in self.assignees),
            head=self.head.sha,
            source_branch=self.head.ref,
            target_branch=self.base.ref,
            body=self.body or "",
            is_draft=bool(self.draft),
            updated_at=self.updated_at,
            is_fork=self._is_fork(),
        )

    def _is_fork(self) -> bool:
        source, target = self.head.repo, self.base.repo
        return source is None or target is None or source.id != target.id


class _PullComment(msgspec.Struct, frozen=True):
    html_url: str
    body: str
    user: _Account | None = None

    def is_by(self, user_id: int) -> bool:
        return self.user is not None and self.user.id == user_id


class GitHubForge(Forge):
    """With the token of a person or of a machine user: one of an app cannot say whose it is."""

    _shape = _Pull
    _already_there = 422
    _changes_query: ClassVar = {"state": "open", "sort": "updated", "direction": "desc"}

    def __init__(self, base_url: str, token: str, seconds: float) -> None:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": _VERSION}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        address = base_url or GITHUB_URL
        super().__init__(RestApi("GitHub", address, headers, token=token, seconds=seconds))

    def find_comment(self, repository: str, number: int, marker: str) -> str:
        assert marker, "every comment contains an empty marker"
        with self._api.calls() as calls:
            own = calls.get("/user", _Account).id
            pages = calls.pages(self._comments_path(repository, number), _PullComment, {})
            comment = find_first(pages, lambda one: one.is_by(own) and marker in one.body)
        return comment.html_url if comment else ""

    def comment(self, repository: str, number: int, text: str) -> str:
        with self._api.calls() as calls:
            path = self._comments_path(repository, number)
            return calls.post(path, _PullComment, {"body": text}).html_url

    def _path(self, repository: str) -> str:
        parts = path_parts(repository)
        if len(parts) != 2:  # noqa: PLR2004
            fault = "is not the path of a repository on GitHub"
            raise ForgeFailed(f"`{repository}` {fault}", is_final=True)
        return f"/repos/{repository}"

    def _requests_path(self, repository: str) -> str:
        return f"{self._path(repository)}/pulls"

    def _comments_path(self, repository: str, number: int) -> str:
        """Comments on the request as a whole; GitHub stores them with issues."""
        return f"{self._path(repository)}/issues/{number:d}/comments"

    def _branch_query(self, repository: str, source_branch: str) -> dict[str, str]:
        head = f"{path_parts(repository)[0]}:{source_branch}"
        return {"state": "all", "head": head, "sort": "created", "direction": "desc"}

    def _new_request(
        self, source_branch: str, target_branch: str, title: str, body: str, *, is_draft: bool
    ) -> dict[str, str | bool]:
        return {
            "head": source_branch,
            "base": target_branch,
            "title": title,
            "body": body,
            "draft": is_draft,
        }
