"""Take in a webhook: who sent it, what it says, and what comes of it.

The signature is checked over the bytes as they came, before anything of them is read. Whatever is
understood and starts nothing is answered with success: forges switch off hooks that fail.
"""

from collections.abc import Mapping
from typing import cast

import msgspec

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.triggers.firing import fire, record_firing
from interlock.app.triggers.trigger_book import ProjectTrigger, TriggerBook
from interlock.app.unattended.forge_settings import (
    ForgeSettings,
    find_forge,
    open_forge,
    read_secret,
)
from interlock.core.canonical import Json
from interlock.core.triggers import signatures
from interlock.core.triggers.admission import (
    AdmittedWork,
    IgnoredOccasion,
    admit_event,
    admit_message,
)
from interlock.core.triggers.forge_event import ForgeEvent
from interlock.core.triggers.forge_payloads import read_github_event, read_gitlab_event
from interlock.core.triggers.trigger import ANYBODY, Trigger
from interlock.store.trigger_log import Firing, TriggerLog
from interlock.workspace.outside.forges.rest_calls import ForgeFailed

BODY_BYTES_MAX = 1024 * 1024
AUTHOR_SECONDS = 5.0
"""The time to find an author: forges wait about ten for an answer."""
_ID_CHARS_MAX = 100
NOT_JSON = "The body is not a JSON object"
FORM_HINT = ", but a form: choose the content type `application/json` in the webhook's settings"
_FORM = "application/x-www-form-urlencoded"
_ACCEPTED, _OK, _BAD_REQUEST, _UNAUTHORISED, _NOT_FOUND = 202, 200, 400, 401, 404
_UNAVAILABLE = 503


class WebhookCall(msgspec.Struct, frozen=True):
    place: str
    """The trigger that is called."""
    headers: Mapping[str, str]
    """By their names in small letters."""
    body: bytes

    def header(self, name: str) -> str:
        return self.headers.get(name, "")


class WebhookAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    status: int
    outcome: str
    detail: str = ""
    session: str = ""


def receive_webhook(
    app: App, book: TriggerBook, log: TriggerLog, call: WebhookCall
) -> WebhookAnswer:
    """Let the trigger that is called fire, if its sender knows the secret."""
    one = book.read().find(call.place)
    if one is None or not one.trigger.is_webhook:
        return WebhookAnswer(_NOT_FOUND, "unknown", "There is no such webhook here")
    try:
        forge = find_forge(app.home, one.trigger.forge)
        secret = read_secret(app.home, one.trigger.forge, "webhook_secret_file")
    except SettingsBroken as broken:
        record_firing(app, log, one, "failed", str(broken))
        return WebhookAnswer(_UNAVAILABLE, "failed", "This trigger is not set up")
    name = _message_id(one, call)
    if fault := _signature_fault(one, call, secret, now_s=app.clock.now_ms() // 1_000):
        record_firing(app, log, one, "rejected", fault, name=name)
        return WebhookAnswer(_UNAUTHORISED, "rejected", fault)
    if not one.trigger.enabled:
        return WebhookAnswer(_OK, "ignored", "the trigger is switched off")
    payload = _parse_payload(call.body)
    if payload is None:
        why = NOT_JSON + (FORM_HINT if call.header("content-type").startswith(_FORM) else "")
        record_firing(app, log, one, "rejected", why, name=name)
        return WebhookAnswer(_BAD_REQUEST, "rejected", why)
    try:
        decision = admit_payload(app, one, forge, call, payload)
    except ForgeFailed as failed:
        return _answer(record_firing(app, log, one, "failed", str(failed), name=name))
    return _answer(fire(app, log, one, decision, name=name))


def admit_payload(
    app: App,
    one: ProjectTrigger,
    forge: ForgeSettings,
    call: WebhookCall,
    payload: Mapping[str, Json],
) -> AdmittedWork | IgnoredOccasion:
    """Decide about a payload whose sender is known.

    Raises:
        ForgeFailed: it does not say who wrote a request, and nor does the forge now.
    """
    trigger = one.trigger
    if trigger.source == "webhook":
        name = _message_id(one, call)
        if not name:
            return IgnoredOccasion("it has no `webhook-id`, so nobody could tell a repetition")
        return admit_message(trigger, payload, place=one.place, message_id=name)
    if trigger.source == "github-webhook":
        event = read_github_event(call.header("x-github-event"), payload)
    else:
        event = read_gitlab_event(call.header("x-gitlab-event"), payload)
    if event is None:
        return IgnoredOccasion("it is nothing that triggers know of")
    if event.kind == "request" and not event.author and ANYBODY not in trigger.authors:
        event = _with_author(app, trigger, event)
    return admit_event(trigger, event, payload, forge_url=forge.url)


def _with_author(app: App, trigger: Trigger, event: ForgeEvent) -> ForgeEvent:
    """Ask GitLab who wrote a request, where its payload has but a number for that."""
    try:
        forge = open_forge(app.home, trigger.forge, seconds=AUTHOR_SECONDS)
        request = forge.request(trigger.repository, event.number)
    except SettingsBroken:
        return event
    return msgspec.structs.replace(event, author=request.author) if request else event


def _signature_fault(one: ProjectTrigger, call: WebhookCall, secret: bytes, *, now_s: int) -> str:
    """The reason not to believe it; empty if it is signed as it should be."""
    if one.trigger.source == "github-webhook":
        is_valid = signatures.verify_github(secret, call.body, call.header("x-hub-signature-256"))
        return "" if is_valid else "the signature is wrong"
    if one.trigger.source == "gitlab-webhook" and not secret.startswith(signatures.SECRET_PREFIX):
        is_valid = signatures.verify_gitlab_token(secret, call.header("x-gitlab-token"))
        return "" if is_valid else "the token is wrong"
    verdict = signatures.verify_standard(
        secret,
        call.body,
        message_id=call.header("webhook-id"),
        timestamp=call.header("webhook-timestamp"),
        signatures=call.header("webhook-signature"),
        now_s=now_s,
    )
    faults = {"valid": "", "stale": "it is too old, or from the future"}
    return faults.get(verdict, "the signature is wrong")


def _message_id(one: ProjectTrigger, call: WebhookCall) -> str:
    names = {
        "github-webhook": ("x-github-delivery",),
        "gitlab-webhook": ("webhook-id", "idempotency-key", "x-gitlab-event-uuid"),
    }
    for name in names.get(one.trigger.source, ("webhook-id",)):
        if value := call.header(name):
            return value[:_ID_CHARS_MAX]
    return ""


def _parse_payload(body: bytes) -> dict[str, Json] | None:
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return cast("dict[str, Json]", payload) if isinstance(payload, dict) else None


def _answer(firing: Firing) -> WebhookAnswer:
    # What has failed may succeed: whoever is told so sends it again.
    statuses = {"ordered": _ACCEPTED, "failed": _UNAVAILABLE}
    status = statuses.get(firing.outcome, _OK)
    return WebhookAnswer(status, firing.outcome, firing.detail, firing.session or "")
