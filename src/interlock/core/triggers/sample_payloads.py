"""A payload for each source of webhooks, with which a trigger can be tried out.

It fits the trigger: its repository, somebody whose requests count, and a value in each place that
its texts name. So it shows what a delivery looks like, and changing it shows what would not count.
"""

from typing import Any, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.triggers.goal_template import template_paths
from interlock.core.triggers.trigger import ANYBODY, Trigger

_SOMEBODY = "somebody"
_COMMIT = "0123456789abcdef0123456789abcdef01234567"


class SamplePayload(msgspec.Struct, frozen=True):
    event: str
    """Its kind, as the header of the delivery names it."""
    payload: dict[str, Json]


def sample_payload(trigger: Trigger) -> SamplePayload | None:
    """Return a payload that starts the work; None if nothing is sent to the trigger."""
    if not trigger.is_webhook:
        return None
    samples = {"github": _github_sample, "gitlab": _gitlab_sample, "webhook": _plain_sample}
    sample = samples[trigger.forge_kind](trigger)
    for path in (*template_paths(trigger.goal), *template_paths(trigger.quote)):
        if not (trigger.is_from_forge and path.startswith("event.")):
            _put_value(sample.payload, path.split("."))
    return sample


def _plain_sample(_: Trigger) -> SamplePayload:
    return SamplePayload("", {})


def _github_sample(trigger: Trigger) -> SamplePayload:
    author, repository = _author(trigger), {"full_name": trigger.repository}
    about: dict[str, Any] = {
        "number": 1,
        "title": "A sample",
        "body": "",
        "state": "open",
        "html_url": "",
        "user": {"login": author},
        "labels": [{"name": name} for name in trigger.labels],
        "assignees": [{"login": name} for name in trigger.assignees],
    }
    payload: dict[str, Any] = {
        "action": next(iter(trigger.actions), "opened"),
        "repository": repository,
        "sender": {"login": author},
    }
    if "request" not in trigger.events:
        return SamplePayload("issues", payload | {"issue": about})
    head = {"sha": _COMMIT, "ref": "a-branch", "repo": repository}
    payload["pull_request"] = about | {"draft": False, "head": head, "base": {"ref": "main"}}
    return SamplePayload("pull_request", payload)


def _gitlab_sample(trigger: Trigger) -> SamplePayload:
    is_request = "request" in trigger.events
    about: dict[str, Any] = {
        "iid": 1,
        "title": "A sample",
        "description": "",
        "state": "opened",
        "action": next(iter(trigger.actions), "open"),
        "url": "",
        "author_id": 1,
    }
    if is_request:
        branches = {"source_branch": "a-branch", "target_branch": "main"}
        projects = {"source_project_id": 1, "target_project_id": 1}
        about |= {**branches, **projects, "draft": False, "last_commit": {"id": _COMMIT}}
    payload: dict[str, Any] = {
        "object_kind": "merge_request" if is_request else "issue",
        "project": {"path_with_namespace": trigger.repository},
        "user": {"id": 1, "username": _author(trigger)},
        "labels": [{"title": name} for name in trigger.labels],
        "assignees": [{"username": name} for name in trigger.assignees],
        "object_attributes": about,
    }
    return SamplePayload("Merge Request Hook" if is_request else "Issue Hook", payload)


def _author(trigger: Trigger) -> str:
    return next((name for name in trigger.authors if name != ANYBODY), _SOMEBODY)


def _put_value(payload: dict[str, Any], names: list[str]) -> None:
    """Put a word where a path leads, unless something is there or stands in its way."""
    name, *rest = names
    inner = payload.setdefault(name, {} if rest else name)
    if rest and isinstance(inner, dict):
        _put_value(cast("dict[str, Any]", inner), rest)
