"""What webhooks say, from payloads as forges send them, and from anything else."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.triggers.forge_event import ForgeEvent
from interlock.core.triggers.forge_payloads import read_github_event, read_gitlab_event
from tests.webhook_recordings import RecordedWebhook, recorded_webhook, webhook_names

PULL = ForgeEvent(
    kind="request",
    action="opened",
    repository="lighthouse/harbour",
    number=12,
    is_open=True,
    author="ana-lind",
    sender="ana-lind",
    labels=("agent",),
    assignees=("bo-reyes",),
    head="1f0c3e5ab2d44c1d9e7f60812345678990abcdef",
    title="Warn before a berth is booked twice",
    body="Two boats got the same berth on Sunday.",
    url="https://github.com/lighthouse/harbour/pull/12",
    is_draft=False,
    changes_code=True,
    is_fork=False,
    branch="double-booking",
    target="main",
)
MERGE_REQUEST = ForgeEvent(
    kind="request",
    action="opened",
    repository="quay/crane/winch",
    number=7,
    is_open=True,
    author="cleo",
    sender="cleo",
    labels=("agent",),
    assignees=("dev",),
    head="0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    title="Let the winch stop softly",
    body="The rope jumps when it stops.",
    url="https://gitlab.example.org/quay/crane/winch/-/merge_requests/7",
    is_draft=False,
    changes_code=True,
    is_fork=False,
    branch="soft-stop",
    target="main",
)
NOTHING = ForgeEvent(
    kind="other",
    action="",
    repository="",
    number=0,
    is_open=False,
    author="",
    sender="",
    labels=(),
    assignees=(),
    head="",
    title="",
    url="",
    is_draft=False,
    changes_code=False,
)


def but(event: ForgeEvent, **changes: Any) -> ForgeEvent:
    return msgspec.structs.replace(event, **changes)


ISSUE = but(
    NOTHING,
    kind="issue",
    action="opened",
    repository="lighthouse/harbour",
    number=15,
    is_open=True,
    author="bo-reyes",
    sender="bo-reyes",
    title="The tide table is an hour late in summer",
    body="Since the clocks changed.",
    url="https://github.com/lighthouse/harbour/issues/15",
)
EVENTS = {
    "github-pull_request-opened": PULL,
    "github-pull_request-opened-fork": but(
        PULL, labels=(), assignees=(), is_draft=True, is_fork=True
    ),
    "github-pull_request-synchronize": but(
        PULL,
        action="updated",
        sender="bo-reyes",
        head="8d2b7c61e0f94a3bb5c1d2e3f405162738495a6b",
    ),
    "github-pull_request-labeled": but(
        PULL, action="labeled", sender="bo-reyes", changes_code=False
    ),
    "github-pull_request-closed": but(
        PULL, action="closed", sender="bo-reyes", is_open=False, changes_code=False
    ),
    "github-pull_request-closed-merged": but(
        PULL, action="merged", sender="bo-reyes", is_open=False, changes_code=False
    ),
    "github-issues-opened": ISSUE,
    "github-issues-labeled": but(
        ISSUE, action="labeled", sender="ana-lind", labels=("agent",), assignees=("ana-lind",)
    ),
    "github-ping": but(NOTHING, repository="lighthouse/harbour", sender="ana-lind"),
    "github-push": but(
        NOTHING,
        kind="push",
        repository="lighthouse/harbour",
        author="bo-reyes",
        sender="bo-reyes",
        head="8d2b7c61e0f94a3bb5c1d2e3f405162738495a6b",
        url="https://github.com/lighthouse/harbour/compare/1f0c3e5ab2d4...8d2b7c61e0f9",
        changes_code=True,
        branch="double-booking",
    ),
    "gitlab-merge_request-open": MERGE_REQUEST,
    "gitlab-merge_request-open-fork": but(
        MERGE_REQUEST, title="Draft: Let the winch stop softly", is_draft=True, is_fork=True
    ),
    # Who wrote it is not in the payload: it was neither Eve, who pushed, nor Dev, to whom it is
    # assigned.
    "gitlab-merge_request-update-oldrev": but(
        MERGE_REQUEST,
        action="updated",
        author="",
        sender="eve",
        head="9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
    ),
    "gitlab-merge_request-update-labels": but(
        MERGE_REQUEST, action="updated", sender="eve", changes_code=False
    ),
    "gitlab-merge_request-close": but(
        MERGE_REQUEST, action="closed", author="", sender="dev", is_open=False, changes_code=False
    ),
    "gitlab-merge_request-merge": but(
        MERGE_REQUEST, action="merged", author="", sender="dev", is_open=False, changes_code=False
    ),
    "gitlab-issue-open": but(
        NOTHING,
        kind="issue",
        action="opened",
        repository="quay/crane/winch",
        number=19,
        is_open=True,
        author="eve",
        sender="eve",
        labels=("agent",),
        assignees=("cleo",),
        title="The hook turns in the wind",
        body="From wind force 5 on.",
        url="https://gitlab.example.org/quay/crane/winch/-/issues/19",
    ),
    "gitlab-push": but(
        NOTHING,
        kind="push",
        repository="quay/crane/winch",
        author="eve",
        sender="eve",
        head="9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
        changes_code=True,
        branch="soft-stop",
    ),
}


def read(webhook: RecordedWebhook) -> ForgeEvent | None:
    if "X-GitHub-Event" in webhook.headers:
        return read_github_event(webhook.event, webhook.payload)
    return read_gitlab_event(webhook.event, webhook.payload)


@pytest.mark.parametrize("name", webhook_names())
def test_a_delivery_says_what_has_happened(name: str) -> None:
    assert read(recorded_webhook(name)) == EVENTS[name]


@pytest.mark.parametrize(
    ("name", "path", "value", "changes"),
    [
        ("github-pull_request-opened", "pull_request.head.repo", None, {"is_fork": True}),
        ("github-pull_request-opened", "pull_request.user", None, {"author": ""}),
        ("github-pull_request-opened", "action", "reopened", {"action": "reopened"}),
        (
            "github-pull_request-opened",
            "action",
            "edited",
            {"action": "updated", "changes_code": False},
        ),
        ("github-push", "after", "0" * 40, {"head": "", "changes_code": False}),
        (
            "gitlab-merge_request-open",
            "object_attributes.source_project_id",
            None,
            {"is_fork": True},
        ),
        ("gitlab-merge_request-open", "object_attributes.author_id", None, {"author": ""}),
        ("gitlab-merge_request-open", "user.id", None, {"author": ""}),
        ("gitlab-merge_request-open", "object_attributes.last_commit", None, {"head": ""}),
        (
            "gitlab-merge_request-open",
            "object_attributes.action",
            None,
            {"action": "", "changes_code": False},
        ),
        (
            "gitlab-merge_request-open",
            "object_attributes.action",
            "reopen",
            {"action": "reopened"},
        ),
    ],
)
def test_what_a_payload_leaves_open_is_told_as_that(
    name: str, path: str, value: Any, changes: dict[str, Any]
) -> None:
    webhook = recorded_webhook(name)
    put(webhook.payload, path, value)

    assert read(webhook) == but(EVENTS[name], **changes)


def test_nobody_is_the_author_only_because_both_have_no_number() -> None:
    webhook = recorded_webhook("gitlab-merge_request-open")
    put(webhook.payload, "object_attributes.author_id", None)
    put(webhook.payload, "user", {"username": "mallory"})

    assert read(webhook) == but(MERGE_REQUEST, author="", sender="mallory")


@pytest.mark.parametrize(
    ("name", "event"),
    [("github-push", "push"), ("gitlab-push", "Push Hook"), ("gitlab-push", "Tag Push Hook")],
)
def test_a_tag_is_no_push_to_a_branch(name: str, event: str) -> None:
    webhook = recorded_webhook(name)
    webhook.payload.update(ref="refs/tags/v1", object_kind=event.lower().removesuffix(" hook"))
    reader = read_github_event if name.startswith("github") else read_gitlab_event

    found = reader(event, webhook.payload)

    assert found is not None
    assert (found.kind, found.head, found.changes_code) == ("other", "", False)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("github-pull_request-opened", "pull_request"),
        ("github-pull_request-opened", "pull_request.number"),
        ("github-pull_request-opened", "repository.full_name"),
        ("github-issues-opened", "issue.title"),
        ("github-push", "after"),
        ("gitlab-merge_request-open", "object_attributes"),
        ("gitlab-merge_request-open", "object_attributes.iid"),
        ("gitlab-merge_request-open", "object_attributes.target_project_id"),
        ("gitlab-merge_request-open", "object_kind"),
        ("gitlab-issue-open", "user"),
        ("gitlab-push", "project.path_with_namespace"),
    ],
)
@pytest.mark.parametrize("value", [None, True, []])
def test_a_payload_that_lacks_what_matters_is_no_event(name: str, path: str, value: Any) -> None:
    webhook = recorded_webhook(name)
    put(webhook.payload, path, value)

    assert read(webhook) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def put(payload: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        payload = payload[parent]
    payload[last] = value


def places(payload: Any, path: str = "") -> list[str]:
    """The paths of everything in a payload."""
    if not isinstance(payload, dict):
        return []
    return [
        place
        for key, value in payload.items()  # type: ignore[misc]
        for place in (f"{path}{key}", *places(value, f"{path}{key}."))
    ]


@given(st.sampled_from(webhook_names()), st.data())
def test_anything_anywhere_in_a_payload_is_read_or_refused(name: str, data: st.DataObject) -> None:
    webhook = recorded_webhook(name)
    for path in data.draw(st.lists(st.sampled_from(places(webhook.payload)), max_size=3)):
        try:
            put(webhook.payload, path, data.draw(ANYTHING))
        except (KeyError, TypeError):  # it was replaced before
            continue

    assert isinstance(read(webhook), ForgeEvent | None)
