"""The payloads of GitLab's webhooks, as far as they are read."""

from typing import Literal

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
    url: str = ""
    action: str | None = None
    """None in a delivery that a person has asked for, as a test."""
    author_id: int | None = None


class _GitLabRequestAttributes(_GitLabIssueAttributes, frozen=True, kw_only=True):
    source_branch: str
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
        return other_event("", repository, self.user.username if self.user else "")


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
        head="",
        title=about.title,
        url=about.url,
        is_draft=False,
        changes_code=False,
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
