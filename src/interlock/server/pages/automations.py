"""Automations: each trigger with what it waits for, what is wrong with it and what it has done.

A trigger is tried out, or let go off by hand, from a form in its card. The answer stays there while
the page goes on to follow what happens.
"""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.routing import Route

from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.sessions.known_workspaces import known_workspaces
from interlock.app.triggers.firing import Firing
from interlock.app.triggers.overview import NoSuchTrigger, TriggerOverview, list_triggers
from interlock.app.triggers.trial import Occasion, TrialOutcome, run_trigger, try_trigger
from interlock.app.triggers.trigger_book import ProjectTrigger, TriggerBook
from interlock.app.unattended.driver_settings import driver_settings
from interlock.core.explanation import Explanation
from interlock.core.triggers.sample_payloads import SamplePayload, sample_payload
from interlock.core.unattended.order import Limits, limits_in_words
from interlock.core.views.trigger_words import delivery_in_words, occasion_in_words
from interlock.server.console import Console, Page, PageRequest
from interlock.server.http_refusals import status_of
from interlock.server.live_changes import NO_SESSION
from interlock.server.pages.workflows import address

AUTOMATIONS = "/automations"
COUNTED_MAX = 200
SHOWN_MAX = 5
EXAMPLE = """\
[nightly]
source = "cron"
schedule = "30 2 * * 1-5"
zone = "Europe/Berlin"
workflow = "coding-task"
goal = "Find one place where an error is swallowed silently, and make it speak"
limits = { minutes = 60, cost = 5 }
"""


class TriggerCard(msgspec.Struct, frozen=True):
    overview: TriggerOverview
    id: str
    occasion: str
    limits: str
    delivery: str
    workflow_page: str
    counts: tuple[tuple[str, int], ...]
    """How often each came of the firings that are kept, the most frequent first."""
    sample: SamplePayload | None

    @property
    def takes_number(self) -> bool:
        """Whether it can be about a request that is named."""
        trigger = self.overview.trigger
        return trigger.is_from_forge and "request" in trigger.events

    @property
    def can_run(self) -> bool:
        return self.takes_number or self.overview.trigger.source == "cron"


class OccasionAnswer(msgspec.Struct, frozen=True):
    """The answer to a form, and what was typed into it."""

    place: str
    outcome: TrialOutcome | Firing | Explanation
    number: str
    payload: str
    event: str

    @property
    def kind(self) -> str:
        return type(self.outcome).__name__


def routes(console: Console, book: TriggerBook) -> list[Route]:
    at = f"{AUTOMATIONS}/{{project}}/{{name}}"
    return [
        console.page(AUTOMATIONS, partial(automations, book)),
        console.background_action(
            at,
            partial(play_occasion, book),
            loosens=lambda request: request.word("do") == "run",
        ),
    ]


def automations(book: TriggerBook, request: PageRequest) -> Page:
    return _page(book, request, None)


def play_occasion(book: TriggerBook, request: PageRequest) -> Page | Explanation:
    """Fields: `do`, which is `try` or `run`; the `number` of a request, or `payload` and `event`.

    What was sent is for trying only: the work would be about a commit that may be nowhere.
    """
    app, place = request.app, f"{request.params['project']}/{request.params['name']}"
    one = book.read().find(place)
    if one is None:
        return NoSuchTrigger(place).explain()
    is_run, event = request.word("do") == "run", request.word("event").strip()
    outcome = _read_occasion(request, one, takes_payload=not is_run)
    if not isinstance(outcome, Explanation):
        outcome = (run_trigger if is_run else try_trigger)(app, one, outcome, event)
    if not isinstance(outcome, TrialOutcome | Firing | Explanation):
        outcome = outcome.explain()
    typed = (request.word("number"), request.word("payload"), event)
    return _page(book, request, OccasionAnswer(place, outcome, *typed))


def _read_occasion(
    request: PageRequest, one: ProjectTrigger, *, takes_payload: bool
) -> Occasion | Explanation:
    number, payload = request.word("number").strip(), request.word("payload").strip()
    if one.trigger.source == "cron":
        return None
    if number.isdecimal() and len(number) < 10:  # noqa: PLR2004 (no forge counts so far)
        return int(number)
    if number or not (payload and takes_payload):
        return Explanation(
            "invalid_arguments",
            f"“{number}” is no number of a request" if number else "No request is named",
            "Type the number that it has on the forge.",
        )
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        return Explanation(
            "invalid_arguments", f"The payload is no JSON object: {error}", "Correct it."
        )


def _page(book: TriggerBook, request: PageRequest, answer: OccasionAnswer | None) -> Page:
    app, server = request.app, find_server(request.app.home)
    found = list_triggers(app, book.read(), firings=COUNTED_MAX)
    limits, known = driver_settings(app.home).default_limits, known_workspaces(app)
    cards = [_card(one, limits, known) for one in found.triggers]
    refusal = answer.outcome if answer and isinstance(answer.outcome, Explanation) else None
    return Page(
        "automations.html",
        "Automations",
        {
            "cards": sorted(cards, key=lambda card: not card.overview.problems),
            "faults": found.faults,
            "answer": answer,
            "server": server.url if isinstance(server, RunningServer) else "",
            "counted_max": COUNTED_MAX,
            "shown_max": SHOWN_MAX,
            "example": EXAMPLE,
        },
        live=None if answer else NO_SESSION,  # of what is in the store it shows nothing
        follows_work=True,
        status=status_of(refusal.code) if refusal else 200,
    )


def _card(one: TriggerOverview, limits: Limits, known: tuple[str, ...]) -> TriggerCard:
    trigger = one.trigger
    return TriggerCard(
        one,
        one.place.replace("/", "-"),
        occasion_in_words(trigger),
        ", ".join(limits_in_words(trigger.limits.wish().apply(limits)).values()),
        delivery_in_words(trigger),
        address(trigger.workflow, Path(one.root) if one.root in known else None),
        tuple(Counter(firing.outcome for firing in one.firings).most_common()),
        sample_payload(trigger),
    )
