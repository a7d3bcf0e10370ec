"""GitHub, and what speaks like it: a GitHub Enterprise Server has its API under `/api/v3`."""

import msgspec

from interlock.workspace.outside.forges.forge import ForgeFailed, ForgeRequest, RequestPage
from interlock.workspace.outside.forges.listings import (
    collect_changes,
    find_first,
    find_request,
    path_parts,
)
from interlock.workspace.outside.forges.rest_calls import RestApi

GITHUB_URL = "https://api.github.com"
_VERSION = "2022-11-28"
_ALREADY_THERE = 422


class _Account(msgspec.Struct, frozen=True):
    id: int
    login: str


class _PullLabel(msgspec.Struct, frozen=True):
    name: str


class _HostedRepository(msgspec.Struct, frozen=True):
    id: int
    default_branch: str = ""


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


class GitHubForge:
    """With the token of a person or of a machine user: one of an app cannot say whose it is."""

    def __init__(self, base_url: str, token: str, seconds: float) -> None:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": _VERSION}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        address = base_url or GITHUB_URL
        self._api = RestApi("GitHub", address, headers, token=token, seconds=seconds)

    def request(self, repository: str, number: int) -> ForgeRequest | None:
        with self._api.calls() as calls:
            pull = calls.find(f"{_path(repository)}/pulls/{number:d}", _Pull)
        return pull.as_request() if pull else None

    def changed_requests(self, repository: str, *, since: str, etag: str) -> RequestPage:
        query = {"state": "open", "sort": "updated", "direction": "desc"}
        with self._api.calls() as calls:
            pages = calls.pages(f"{_path(repository)}/pulls", _Pull, query, etag)
            return collect_changes(pages, since)

    def find_request(
        self, repository: str, source_branch: str, open_into: str = ""
    ) -> ForgeRequest | None:
        """Return the newest request from a branch, or the one that is open into another."""
        head = f"{path_parts(repository)[0]}:{source_branch}"
        query = {"state": "all", "head": head, "sort": "created", "direction": "desc"}
        with self._api.calls() as calls:
            pages = calls.pages(f"{_path(repository)}/pulls", _Pull, query)
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
            "head": source_branch,
            "base": target_branch,
            "title": title,
            "body": body,
            "draft": is_draft,
        }
        try:
            with self._api.calls() as calls:
                return calls.post(f"{_path(repository)}/pulls", _Pull, content).as_request()
        except ForgeFailed as failure:
            present = None
            if failure.status == _ALREADY_THERE:
                present = self.find_request(repository, source_branch, target_branch)
            if present is None:
                raise
            return present

    def find_comment(self, repository: str, number: int, marker: str) -> str:
        assert marker, "every comment contains an empty marker"
        with self._api.calls() as calls:
            own = calls.get("/user", _Account).id
            pages = calls.pages(_comments_path(repository, number), _PullComment, {})
            comment = find_first(pages, lambda one: one.is_by(own) and marker in one.body)
        return comment.html_url if comment else ""

    def comment(self, repository: str, number: int, text: str) -> str:
        with self._api.calls() as calls:
            path = _comments_path(repository, number)
            return calls.post(path, _PullComment, {"body": text}).html_url

    def default_branch(self, repository: str) -> str:
        with self._api.calls() as calls:
            return calls.get(_path(repository), _HostedRepository).default_branch


def _path(repository: str) -> str:
    parts = path_parts(repository)
    if len(parts) != 2:  # noqa: PLR2004
        fault = "is not the path of a repository on GitHub"
        raise ForgeFailed(f"`{repository}` {fault}", is_final=True)
    return f"/repos/{repository}"


def _comments_path(repository: str, number: int) -> str:
    """Those on the request as a whole, which GitHub has with its issues."""
    return f"{_path(repository)}/issues/{number:d}/comments"
