"""Triggers in words: what each waits for, and what becomes of the result of its work."""

import re
from collections.abc import Iterator, Sequence

from interlock.core.triggers.trigger import ANYBODY, Trigger
from interlock.core.unattended.order import DeliveryPart

_REQUESTS = {"github": "pull requests", "gitlab": "merge requests"}
_DAILY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* (\S+)")
_DAYS = {
    "*": "every day",
    "1-5": "weekdays",
    "0,6": "weekends",
    "6,0": "weekends",
    "0": "Sundays",
    "1": "Mondays",
    "2": "Tuesdays",
    "3": "Wednesdays",
    "4": "Thursdays",
    "5": "Fridays",
    "6": "Saturdays",
    "7": "Sundays",
}
_PARTS: dict[DeliveryPart, str] = {
    "push": "a pushed branch",
    "request": "a draft request",
    "comment": "a comment",
}


def occasion_in_words(trigger: Trigger) -> str:
    """Say what a trigger waits for."""
    if trigger.source == "cron":
        return schedule_in_words(trigger.schedule, trigger.zone)
    if trigger.source == "webhook":
        return f"messages of whoever knows the webhook secret of {trigger.forge}"
    kinds = {"request": _REQUESTS[trigger.forge_kind], "issue": "issues"}
    what = " and ".join(kinds[kind] for kind in trigger.events)
    by = "anybody" if ANYBODY in trigger.authors else _either(trigger.authors)
    return "".join((f"{what} of {trigger.repository}, by {by}", *_conditions(trigger)))


def schedule_in_words(schedule: str, zone: str) -> str:
    """Say when a schedule comes; one that is not about a time of day stays as it is written."""
    match = _DAILY.fullmatch(" ".join(schedule.split()))
    if match is None or match[3] not in _DAYS:
        return f"{schedule}, {zone}"
    return f"{_DAYS[match[3]]} at {int(match[2]):02}:{int(match[1]):02} {zone}"


def delivery_in_words(trigger: Trigger) -> str:
    """Say what is done with the result."""
    if not trigger.deliver:
        return f"nothing: the {'result' if trigger.read_only else 'branch'} stays here"
    parts = [text for part, text in _PARTS.items() if part in trigger.deliver]
    words = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    if "request" in trigger.deliver and trigger.target:
        words += f", for {trigger.target}"
    if trigger.repository:
        words += f", to {trigger.repository} on {trigger.delivery_forge}"
    return words


def _conditions(trigger: Trigger) -> Iterator[str]:
    if trigger.actions:
        yield f", when {_either(trigger.actions)}"
    if trigger.labels:
        yield f", labelled {_either(trigger.labels)}"
    if trigger.assignees:
        yield f", assigned to {_either(trigger.assignees)}"
    also = [
        words
        for is_wanted, words in ((trigger.drafts, "drafts"), (trigger.forks, "forks"))
        if is_wanted
    ]
    if also:
        yield f"; {' and '.join(also)}, too"
    if trigger.is_polled:
        minutes = trigger.every_minutes
        yield f"; asks every {'minute' if minutes == 1 else f'{minutes} minutes'}"


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
