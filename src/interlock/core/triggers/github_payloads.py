"""The payloads of GitHub's webhooks, as far as they are read."""

import msgspec
from msgspec import Struct

from interlock.core.triggers.forge_event import (
    EventKind,
    ForgeEvent,
    Number,
    common_action,
    other_event,
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
    user: _GitHubUser | None = None
    """None after an account was deleted."""
    labels: tuple[_GitHubLabel, ...] = ()
    assignees: tuple[_GitHubUser, ...] = ()


class _GitHubPull(_GitHubIssue, frozen=True, kw_only=True):
    head: _GitHubHead
    draft: bool | None = False
    merged: bool | None = False


class GitHubOther(Struct, frozen=True):
    action: str | None = None
    repository: _GitHubRepository | None = None
    sender: _GitHubUser | None = None

    def as_event(self) -> ForgeEvent:
        repository = self.repository.full_name if self.repository else ""
        return other_event(self.action or "", repository, _login(self.sender))


class GitHubIssues(Struct, frozen=True):
    action: str
    issue: _GitHubIssue
    repository: _GitHubRepository
    sender: _GitHubUser | None = None

    def as_event(self) -> ForgeEvent:
        return _github_event(self, "issue", self.issue)


_CODE_ACTIONS = ("opened", "synchronize", "reopened", "ready_for_review")
"""The last one: it was a draft before, which nobody may have looked at."""


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
        head="",
        title=issue.title,
        url=issue.html_url,
        is_draft=False,
        changes_code=False,
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
