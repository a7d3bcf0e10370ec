"""Try a trigger out: say what an occasion would start, or let it start at once, by hand."""

from collections.abc import Mapping

import msgspec

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.triggers.firing import fire
from interlock.app.triggers.trigger_book import ProjectTrigger
from interlock.app.triggers.watch import polled_event
from interlock.app.triggers.webhook_intake import WebhookCall, admit_payload
from interlock.app.unattended.forge_settings import find_forge, open_forge
from interlock.core import ids
from interlock.core.canonical import Json
from interlock.core.ids import SessionId
from interlock.core.refusal import PlainRefusal
from interlock.core.triggers.admission import AdmittedWork, IgnoredOccasion, admit_event, admit_time
from interlock.store.trigger_log import Firing, TriggerLog

TRIAL_ID = "a-trial"


class TrialOutcome(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The outcome that an occasion would have, though nothing happens."""

    would_start: bool
    reason: str = ""
    """Why nothing would be started."""
    goal: str = ""
    quoted: str = ""
    workflow: str = ""
    session: SessionId | None = None
    is_duplicate: bool = False
    deliver: tuple[str, ...] = ()


Occasion = Mapping[str, Json] | int | None
"""A payload, the number of a request, or nothing: the time has come."""


def try_trigger(
    app: App, one: ProjectTrigger, occasion: Occasion, event: str
) -> TrialOutcome | PlainRefusal:
    """Say what an occasion would start. `event`: the kind of a payload, as its header names it."""
    decision = _decide(app, one, occasion, event)
    if isinstance(decision, PlainRefusal):
        return decision
    if isinstance(decision, IgnoredOccasion):
        return TrialOutcome(would_start=False, reason=decision.reason)
    session = ids.triggered_session_id(decision.identity)
    is_duplicate = app.log.stream(session) is not None
    return TrialOutcome(
        not is_duplicate,
        "the same was ordered before" if is_duplicate else "",
        decision.goal,
        decision.quoted,
        one.trigger.workflow,
        session,
        is_duplicate,
        one.trigger.deliver,
    )


def run_trigger(
    app: App, one: ProjectTrigger, occasion: Occasion, event: str, *, is_again: bool = False
) -> Firing | PlainRefusal:
    """Let a trigger fire now, with an occasion that somebody names.

    `is_again`: also if the same was ordered before.
    """
    decision = _decide(app, one, occasion, event)
    if isinstance(decision, PlainRefusal):
        return decision
    if is_again and isinstance(decision, AdmittedWork):
        identity = (*decision.identity, app.entropy(6).hex())
        decision = msgspec.structs.replace(decision, identity=identity)
    log = TriggerLog(app.home)
    try:
        return fire(app, log, one, decision, name="by hand")
    finally:
        log.close()


def _event_word(payload: Mapping[str, Json]) -> str:
    """The header with which a forge sends a payload, as far as the payload tells."""
    hooks = {"merge_request": "Merge Request Hook", "issue": "Issue Hook"}
    kind = hooks.get(str(payload.get("object_kind")), "")
    return kind or ("pull_request" if "pull_request" in payload else "issues")


def _decide(
    app: App, one: ProjectTrigger, occasion: Occasion, event: str
) -> AdmittedWork | IgnoredOccasion | PlainRefusal:
    trigger = one.trigger
    try:
        if isinstance(occasion, int):
            request = open_forge(app.home, trigger.forge).request(trigger.repository, occasion)
            if request is None:
                return IgnoredOccasion(f"there is no request {occasion} in `{trigger.repository}`")
            url = find_forge(app.home, trigger.forge).url
            found = polled_event(trigger.repository, request)
            return admit_event(trigger, found, {}, forge_url=url)
        if occasion is not None and trigger.is_webhook:
            name = f"{TRIAL_ID}-{app.entropy(6).hex()}"
            word = event or _event_word(occasion)
            headers = {"x-github-event": word, "x-gitlab-event": word, "webhook-id": name}
            forge = find_forge(app.home, trigger.forge)
            return admit_payload(app, one, forge, WebhookCall(one.place, headers, b""), occasion)
    except (SettingsBroken, OSError) as failure:
        hint = "The section `[forges.NAME]` of config.toml has its address and its token."
        return PlainRefusal("not_possible_now", str(failure), hint)
    if trigger.source == "cron":
        return admit_time(trigger, place=one.place, at_ms=app.clock.now_ms())
    return PlainRefusal(
        "invalid_arguments",
        f"The trigger `{one.name}` needs an occasion",
        "Give it one: `--payload FILE` with what a webhook would send, or `--request NUMBER` of"
        " a request on the forge.",
    )
