"""Samples start the work of the trigger for which they are made."""

from typing import Any

import pytest

from interlock.core.triggers.admission import AdmittedWork, admit_event, admit_message
from interlock.core.triggers.forge_payloads import read_github_event, read_gitlab_event
from interlock.core.triggers.sample_payloads import sample_payload
from interlock.core.triggers.trigger import Trigger, TriggerLimits, trigger_faults

READERS = {"github-webhook": read_github_event, "gitlab-webhook": read_gitlab_event}


@pytest.mark.parametrize("source", READERS)
@pytest.mark.parametrize(
    "settings",
    [
        {"authors": ("ana", "bo")},
        {"authors": ("*",), "labels": ("ready",), "assignees": ("di",)},
        {"authors": ("*",), "events": ("issue",)},
        {"authors": ("ana",), "actions": ("labeled",), "quote": "{{ some.where.else }}"},
        {"authors": ("ana",), "quote": "{{ pull_request.body }}{{ object_attributes.iid }}"},
    ],
)
def test_a_sample_of_a_forge_is_admitted(source: Any, settings: dict[str, Any]) -> None:
    fixed: dict[str, Any] = {"forge": "work", "repository": "group/name"}
    goal = "Review {{ event.number }}: {{ event.title }}"
    trigger = Trigger(source, "hello", goal, TriggerLimits(turns=9), **fixed, **settings)
    assert trigger_faults(trigger) == []

    sample = sample_payload(trigger)

    assert sample is not None
    event = READERS[source](sample.event, sample.payload)
    assert event is not None
    admitted = admit_event(trigger, event, sample.payload, forge_url="https://forge.example.org")
    assert isinstance(admitted, AdmittedWork), admitted
    assert admitted.goal == "Review 1: A sample"


def test_a_sample_of_a_program_has_whatever_the_texts_name() -> None:
    goal, quote = "{{ job.name | oneline }} in {{ job.place }}", "{{ log }} {{ job.name.first }}"
    trigger = Trigger("webhook", "hello", goal, TriggerLimits(turns=9), "ci", quote=quote)

    sample = sample_payload(trigger)

    assert sample is not None
    assert sample.payload == {"job": {"name": "name", "place": "place"}, "log": "log"}
    plain = Trigger("webhook", "hello", goal, TriggerLimits(turns=9), "ci")
    admitted = admit_message(plain, sample.payload, place="p", message_id="m")
    assert isinstance(admitted, AdmittedWork)
    assert admitted.goal == "name in place"


@pytest.mark.parametrize("source", ["cron", "gitlab-poll"])
def test_what_nobody_calls_has_no_sample(source: Any) -> None:
    assert sample_payload(Trigger(source, "hello", "Look", TriggerLimits(turns=9))) is None
