"""Triggers in words."""

from typing import Any

import pytest

from interlock.core.triggers.trigger import Trigger, TriggerLimits
from interlock.core.views.trigger_words import delivery_in_words, occasion_in_words


def trigger(source: Any, **settings: Any) -> Trigger:
    forge = {} if source == "cron" else {"forge": "work"}
    settings = forge | {"repository": "group/name"} | settings
    return Trigger(source, "code-review", "Look", TriggerLimits(turns=9), **settings)


@pytest.mark.parametrize(
    ("source", "settings", "words"),
    [
        ("gitlab-webhook", {"authors": ("ana",)}, "merge requests of group/name, by ana"),
        (
            "github-webhook",
            {"authors": ("ana", "bo", "cy"), "events": ("request", "issue"), "labels": ("ready",)},
            "pull requests and issues of group/name, by ana, bo or cy, labelled ready",
        ),
        (
            "github-webhook",
            {"authors": ("*",), "actions": ("opened",), "assignees": ("di",), "drafts": True},
            "pull requests of group/name, by anybody, when opened, assigned to di; drafts, too",
        ),
        (
            "gitlab-poll",
            {"authors": ("ana", "bo"), "drafts": True, "forks": True},
            "merge requests of group/name, by ana or bo; drafts and forks, too;"
            " asks every 5 minutes",
        ),
        (
            "github-poll",
            {"authors": ("ana",), "every_minutes": 1},
            "pull requests of group/name, by ana; asks every minute",
        ),
        ("webhook", {}, "messages of whoever knows the webhook secret of work"),
    ],
)
def test_a_trigger_says_what_it_waits_for(
    source: str, settings: dict[str, Any], words: str
) -> None:
    assert occasion_in_words(trigger(source, **settings)) == words


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("30 2 * * 1-5", "weekdays at 02:30 Europe/Berlin"),
        ("0  12 * * *", "every day at 12:00 Europe/Berlin"),
        ("5 7 * * 7", "Sundays at 07:05 Europe/Berlin"),
        ("*/5 * * * *", "*/5 * * * *, Europe/Berlin"),
        ("0 3 1 * *", "0 3 1 * *, Europe/Berlin"),
        ("0 3 * * MON", "0 3 * * MON, Europe/Berlin"),
    ],
)
def test_a_time_of_day_is_said_and_anything_else_stays_as_it_is_written(
    schedule: str, words: str
) -> None:
    assert occasion_in_words(trigger("cron", schedule=schedule, zone="Europe/Berlin")) == words


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "nothing: the branch stays here"),
        ({"read_only": True}, "nothing: the result stays here"),
        ({"deliver": ("comment",)}, "a comment, to group/name on work"),
        (
            {"deliver": ("comment", "request", "push"), "target": "main", "deliver_to": "other"},
            "a pushed branch, a draft request and a comment, for main, to group/name on other",
        ),
        ({"deliver": ("push",), "repository": ""}, "a pushed branch"),
    ],
)
def test_a_trigger_says_what_becomes_of_the_result(settings: dict[str, Any], words: str) -> None:
    assert delivery_in_words(trigger("gitlab-webhook", **settings)) == words
