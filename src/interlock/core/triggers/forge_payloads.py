"""The payloads of a forge's webhooks, read into one form.

A payload is somebody else's text even where its signature fits: the title of a merge request is
written by whoever opens one. Only what is read here is looked at, the rest may be anything, and a
payload that lacks something of it is no event.
"""

from collections.abc import Mapping
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct

from interlock.core.canonical import Json
from interlock.core.triggers.forge_event import (
    EventKind,
    ForgeEvent,
    Number,
    common_action,
    push_event,
)


class _GitHubUser(Struct, frozen=True):
    login: str = ""


class _GitHubLabel(Struct, frozen=True):
    name: str


class _GitHubRepository(Struct, frozen=True):
    full_name: str


class _GitHubHead(Struct, frozen=True):
    sha: str
    ref: str
    repo: _GitHubRepository | None = None
    """None after a fork was deleted."""


class _GitHubIssue(Struct, frozen=True, kw_only=True):
    number: Number
    state: str
    title: str
    html_url: str
    body: str | None = None
    user: _GitHubUser | None = None
    """None after an account was deleted."""
    labels: tuple[_GitHubLabel, ...] = ()
    assignees: tuple[_GitHubUser, ...] = ()


class _GitHubBase(Struct, frozen=True):
    ref: str = ""


class _GitHubPull(_GitHubIssue, frozen=True, kw_only=True):
    head: _GitHubHead
    base: _GitHubBase = _GitHubBase()
    draft: bool | None = False
    merged: bool | None = False


class GitHubOther(Struct, frozen=True):
    action: str | None = None
    repository: _GitHubRepository | None = None
    sender: _GitHubUser | None = None

    def as_event(self) -> ForgeEvent:
        return ForgeEvent(
            kind="other",
            action=common_action(self.action or ""),
            repository=self.repository.full_name if self.repository else "",
            sender=_login(self.sender),
        )


class GitHubIssues(Struct, frozen=True):
    action: str
    issue: _GitHubIssue
    repository: _GitHubRepository
    sender: _GitHubUser | None = None

    def as_event(self) -> ForgeEvent:
        return _github_event(self, "issue", self.issue)


_CODE_ACTIONS = ("opened", "synchronize", "reopened", "ready_for_review")
"""The last action: before it, the request was a draft."""


class GitHubPullRequest(Struct, frozen=True):
    action: str
    pull_request: _GitHubPull
    repository: _GitHubRepository
    sender: _GitHubUser | None = None

    def as_event(self) -> ForgeEvent:
        pull, source = self.pull_request, self.pull_request.head.repo
        event = _github_event(self, "request", pull)
        return msgspec.structs.replace(
            event,
            action="merged" if self.action == "closed" and pull.merged else event.action,
            head=pull.head.sha,
            is_draft=bool(pull.draft),
            changes_code=self.action in _CODE_ACTIONS,
            is_fork=source is None or source.full_name != self.repository.full_name,
            branch=pull.head.ref,
            target=pull.base.ref,
        )


def _github_event(
    payload: GitHubIssues | GitHubPullRequest, kind: EventKind, issue: _GitHubIssue
) -> ForgeEvent:
    return ForgeEvent(
        kind=kind,
        action=common_action(payload.action),
        repository=payload.repository.full_name,
        number=issue.number,
        is_open=issue.state == "open",
        author=_login(issue.user),
        sender=_login(payload.sender),
        labels=tuple(label.name for label in issue.labels),
        assignees=tuple(filter(None, map(_login, issue.assignees))),
        title=issue.title,
        body=issue.body or "",
        url=issue.html_url,
    )


class GitHubPush(Struct, frozen=True):
    ref: str
    after: str
    repository: _GitHubRepository
    sender: _GitHubUser | None = None
    compare: str = ""

    def as_event(self) -> ForgeEvent:
        return push_event(
            repository=self.repository.full_name,
            sender=_login(self.sender),
            ref=self.ref,
            commit=self.after,
            url=self.compare,
        )


def _login(user: _GitHubUser | None) -> str:
    return user.login if user else ""


class _GitLabUser(Struct, frozen=True):
    id: int | None = None
    username: str = ""


class _GitLabLabel(Struct, frozen=True):
    title: str


class _GitLabProject(Struct, frozen=True):
    path_with_namespace: str


class _GitLabCommit(Struct, frozen=True):
    id: str


class _GitLabIssueAttributes(Struct, frozen=True, kw_only=True):
    iid: Number
    state: str
    title: str
    description: str | None = None
    url: str = ""
    action: str | None = None
    """None in a test delivery by a person."""
    author_id: int | None = None


class _GitLabRequestAttributes(_GitLabIssueAttributes, frozen=True, kw_only=True):
    source_branch: str
    target_branch: str = ""
    source_project_id: int | None = None
    """None after a fork was deleted."""
    target_project_id: int
    last_commit: _GitLabCommit | None = None
    oldrev: str | None = None
    draft: bool | None = None
    work_in_progress: bool | None = None
    """The older name of `draft`."""


class GitLabOther(Struct, frozen=True):
    project: _GitLabProject | None = None
    user: _GitLabUser | None = None

    def as_event(self) -> ForgeEvent:
        repository = self.project.path_with_namespace if self.project else ""
        sender = self.user.username if self.user else ""
        return ForgeEvent(kind="other", repository=repository, sender=sender)


class GitLabIssueHook(Struct, frozen=True):
    object_kind: Literal["issue"]
    project: _GitLabProject
    user: _GitLabUser
    object_attributes: _GitLabIssueAttributes
    labels: tuple[_GitLabLabel, ...] = ()
    assignees: tuple[_GitLabUser, ...] = ()

    def as_event(self) -> ForgeEvent:
        return _gitlab_event(self, "issue", (self.user, *self.assignees))


class _GitLabDraftChange(Struct, frozen=True):
    previous: bool | None = None
    current: bool | None = None


class _GitLabChanges(Struct, frozen=True):
    draft: _GitLabDraftChange | None = None


class GitLabMergeRequestHook(Struct, frozen=True):
    object_kind: Literal["merge_request"]
    project: _GitLabProject
    user: _GitLabUser
    object_attributes: _GitLabRequestAttributes
    labels: tuple[_GitLabLabel, ...] = ()
    assignees: tuple[_GitLabUser, ...] = ()
    reviewers: tuple[_GitLabUser, ...] = ()
    changes: _GitLabChanges | None = None

    def as_event(self) -> ForgeEvent:
        about = self.object_attributes
        is_pushed = about.action == "update" and bool(about.oldrev)
        draft = self.changes.draft if self.changes else None
        is_ready = draft is not None and bool(draft.previous) and not draft.current
        return msgspec.structs.replace(
            _gitlab_event(self, "request", (self.user, *self.assignees, *self.reviewers)),
            head=about.last_commit.id if about.last_commit else "",
            is_draft=bool(about.draft or about.work_in_progress),
            changes_code=is_pushed or is_ready or about.action in ("open", "reopen"),
            is_fork=about.source_project_id != about.target_project_id,
            branch=about.source_branch,
            target=about.target_branch,
        )


def _gitlab_event(
    payload: GitLabIssueHook | GitLabMergeRequestHook,
    kind: EventKind,
    people: tuple[_GitLabUser, ...],
) -> ForgeEvent:
    about = payload.object_attributes
    is_known = about.author_id is not None
    authors = (person.username for person in people if is_known and person.id == about.author_id)
    return ForgeEvent(
        kind=kind,
        action=common_action(about.action or ""),
        repository=payload.project.path_with_namespace,
        number=about.iid,
        is_open=about.state == "opened",
        author=next(authors, ""),
        sender=payload.user.username,
        labels=tuple(label.title for label in payload.labels),
        assignees=tuple(person.username for person in payload.assignees if person.username),
        title=about.title,
        body=about.description or "",
        url=about.url,
    )


class GitLabPushHook(Struct, frozen=True):
    object_kind: Literal["push"]
    ref: str
    after: str
    project: _GitLabProject
    user_username: str = ""

    def as_event(self) -> ForgeEvent:
        return push_event(
            repository=self.project.path_with_namespace,
            sender=self.user_username,
            ref=self.ref,
            commit=self.after,
            url="",
        )


class _PayloadShape(Protocol):
    def as_event(self) -> ForgeEvent: ...


_GITHUB_SHAPES: Final[dict[str, type[_PayloadShape]]] = {
    "pull_request": GitHubPullRequest,
    "issues": GitHubIssues,
    "push": GitHubPush,
}
_GITLAB_SHAPES: Final[dict[str, type[_PayloadShape]]] = {
    "Merge Request Hook": GitLabMergeRequestHook,
    "Issue Hook": GitLabIssueHook,
    "Confidential Issue Hook": GitLabIssueHook,
    "Push Hook": GitLabPushHook,
}


def read_github_event(name: str, payload: Mapping[str, Json]) -> ForgeEvent | None:
    """Read a payload of GitHub, with the header `X-GitHub-Event`; None if it has another form."""
    return _read(payload, _GITHUB_SHAPES.get(name, GitHubOther))


def read_gitlab_event(name: str, payload: Mapping[str, Json]) -> ForgeEvent | None:
    """Read a payload of GitLab, with the header `X-Gitlab-Event`; None if it has another form."""
    return _read(payload, _GITLAB_SHAPES.get(name, GitLabOther))


def _read(payload: Mapping[str, Json], shape: type[_PayloadShape]) -> ForgeEvent | None:
    try:
        return msgspec.convert(dict(payload), shape).as_event()
    except msgspec.ValidationError:
        return None
