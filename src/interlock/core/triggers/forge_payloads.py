"""The payloads of a forge's webhooks, read into one form.

A payload is somebody else's text even where its signature fits: the title of a merge request is
written by whoever opens one. Only what is read here is looked at, the rest may be anything, and a
payload that lacks something of it is no event.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from interlock.core.canonical import Json
from interlock.core.triggers.forge_event import ForgeEvent
from interlock.core.triggers.github_payloads import (
    GitHubIssues,
    GitHubOther,
    GitHubPullRequest,
    GitHubPush,
)
from interlock.core.triggers.gitlab_payloads import (
    GitLabIssueHook,
    GitLabMergeRequestHook,
    GitLabOther,
    GitLabPushHook,
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
