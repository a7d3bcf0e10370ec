"""What is wrong with a trigger is said, all at once, before it ever fires."""

from typing import Any

import msgspec
import pytest

from interlock.core.triggers.trigger import Trigger, trigger_faults

REVIEW: dict[str, Any] = {
    "source": "gitlab-webhook",
    "forge": "work",
    "repository": "group/name",
    "authors": ["ana"],
    "workflow": "code-review",
    "goal": "Review !{{ event.number }}",
    "limits": {"cost": 2},
    "read_only": True,
    "deliver": ["comment"],
}
NIGHTLY: dict[str, Any] = {
    "source": "cron",
    "schedule": "0 3 * * *",
    "zone": "Europe/Berlin",
    "workflow": "coding-task",
    "goal": "Update what is out of date",
    "limits": {"minutes": 30},
}


def faults_of(base: dict[str, Any], **changed: Any) -> list[str]:
    table = {name: value for name, value in {**base, **changed}.items() if value is not None}
    return trigger_faults(msgspec.convert(table, Trigger))


def test_sound_triggers_have_no_faults() -> None:
    assert faults_of(REVIEW) == []
    assert faults_of(NIGHTLY) == []
    assert faults_of(REVIEW, source="github-poll", authors=["*"]) == []


@pytest.mark.parametrize(
    ("base", "changed", "fault"),
    [
        (REVIEW, {"limits": {}}, "`limits` must name at least one"),
        (REVIEW, {"forge": None}, "`forge` must name"),
        (REVIEW, {"repository": None, "deliver": None}, "`repository` must be"),
        (REVIEW, {"authors": None}, "`authors` must say whose"),
        (REVIEW, {"repository": "group/../name"}, "not a path on a forge"),
        (NIGHTLY, {"repositories": {"web": {"path": "w", "repository": "-x"}}}, "not a path on a"),
        (REVIEW, {"target": "--upload-pack=x"}, "not the name of a branch"),
        (REVIEW, {"zone": "Europe/Berlin"}, '`source = "cron"`'),
        (REVIEW, {"source": "gitlab-poll", "events": ["issue"]}, "issues cannot be polled"),
        (REVIEW, {"source": "gitlab-poll", "goal": "{{ user.name }}"}, "`event.…` only"),
        (REVIEW, {"goal": "{{ event.title | shout }}"}, "`goal`: there is no filter"),
        (REVIEW, {"quote": "{{"}, "`quote`: a `{{` has no `}}`"),
        (REVIEW, {"deliver": ["push"]}, "has nothing to push"),
        (NIGHTLY, {"schedule": None}, "`schedule` and `zone` are needed"),
        (NIGHTLY, {"goal": "{{ event.title }}"}, "a time has no values"),
        (NIGHTLY, {"deliver": ["request"]}, "`deliver` needs `forge` and"),
        (
            NIGHTLY,
            {"deliver": ["comment"], "forge": "work", "repository": "a/b"},
            "nothing to comment on",
        ),
    ],
)
def test_a_fault_says_what_to_write_instead(
    base: dict[str, Any], changed: dict[str, Any], fault: str
) -> None:
    (said,) = faults_of(base, **changed)

    assert fault in said
