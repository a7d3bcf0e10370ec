"""Decide whether an occasion starts work, and which: pure, so that it can be tried before.

Each piece of work has an *identity*, from which the id of its session is derived. The same occasion
told twice, by two deliveries, two triggers or two servers, is therefore the same session, and the
store takes its first event once.
"""

from collections.abc import Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.git_names import branch_ref, is_commit, is_ref
from interlock.core.triggers.forge_event import ForgeEvent
from interlock.core.triggers.goal_template import MissingValue, render_template
from interlock.core.triggers.trigger import ANYBODY, Trigger, TriggerRepository
from interlock.core.unattended.order import DeliveryPart, DeliveryWish, ForgeSubject

GOAL_CHARS_MAX = 2_000
QUOTED_CHARS_MAX = 8_000
_REFS = {"github": "refs/pull/{}/head", "gitlab": "refs/merge-requests/{}/head"}
_PUBLIC_FORGES = {"https://api.github.com": "github", "https://gitlab.com": "gitlab"}
_ISSUE_ACTIONS = ("opened", "reopened", "labeled", "assigned")


class AdmittedWork(msgspec.Struct, frozen=True):
    """Work that an occasion starts."""

    identity: tuple[str, ...]
    goal: str
    quoted: str = ""
    subject: ForgeSubject | None = None
    base: str = ""
    fetch: str = ""
    target: str = ""
    delivery: DeliveryWish | None = None


class IgnoredOccasion(msgspec.Struct, frozen=True):
    """An occasion that starts nothing, as it should be."""

    reason: str


def admit_event(
    trigger: Trigger, event: ForgeEvent, payload: Mapping[str, Json], *, forge_url: str
) -> AdmittedWork | IgnoredOccasion:
    """Decide about what a forge says has happened."""
    if reason := _objection(trigger, event):
        return IgnoredOccasion(reason)
    values = {**payload, "event": event_values(event)}
    is_request = event.kind == "request"
    place = (_forge_word(trigger, forge_url), trigger.repository.casefold(), event.kind)
    subject = ForgeSubject(
        trigger.forge,
        event.repository,
        event.number,
        "request" if is_request else "issue",
        event.url,
    )
    return _with_texts(
        trigger,
        values,
        AdmittedWork(
            # Not the trigger: two that are about the same commit ask for the same work.
            (*place, str(event.number), event.head if is_request else "", trigger.workflow),
            "",
            subject=subject,
            base=event.head if is_request else "",
            fetch=_REFS[trigger.forge_kind].format(event.number)
            if is_request
            else branch_ref(trigger.target),
            target=event.target if is_request else trigger.target,
            delivery=_delivery(trigger, event.number, event.target),
        ),
    )


def _forge_word(trigger: Trigger, url: str) -> str:
    """The same word for a forge, however its address is written."""
    address = url.rstrip("/").casefold()
    return _PUBLIC_FORGES.get(address, address or trigger.forge_kind)


def admit_message(
    trigger: Trigger, payload: Mapping[str, Json], *, place: str, message_id: str
) -> AdmittedWork | IgnoredOccasion:
    """Decide about a message of any program. `place` names the trigger among all of them."""
    return _with_texts(trigger, payload, _work_on_branch(trigger, (place, message_id)))


def admit_time(trigger: Trigger, *, place: str, at_ms: int) -> AdmittedWork:
    """The work of a time that has come."""
    return _work_on_branch(trigger, (place, str(at_ms)))


def _work_on_branch(trigger: Trigger, identity: tuple[str, ...]) -> AdmittedWork:
    """Return work that no request asked for: it starts from the branch on the remote."""
    return AdmittedWork(
        identity,
        trigger.goal,
        fetch=branch_ref(trigger.target),
        target=trigger.target,
        delivery=_delivery(trigger, 0),
    )


def event_values(event: ForgeEvent) -> dict[str, Json]:
    """The values that templates have under `event`, the same for all forges."""
    return msgspec.to_builtins(event)


def delivery_elsewhere(trigger: Trigger, other: TriggerRepository) -> DeliveryWish | None:
    """Where the result in another repository goes: the comment is about the first one."""
    parts: tuple[DeliveryPart, ...] = tuple(one for one in trigger.deliver if one != "comment")
    if not parts or not other.repository:
        return None
    return DeliveryWish(parts, trigger.delivery_forge, other.repository, 0, trigger.target)


def _objection(trigger: Trigger, event: ForgeEvent) -> str:
    """The reason why it starts nothing; empty if it does."""
    if event.kind == "other":
        return "it is about nothing that triggers know of"
    if event.repository.casefold() != trigger.repository.casefold():
        return f"it is about `{event.repository}`, not `{trigger.repository}`"
    if event.kind not in trigger.events:
        return f"it is about {_with_article(event.kind)}, and that is not among `events`"
    if not event.is_open:
        return f"the {event.kind} is {'merged' if event.action == 'merged' else 'closed'}"
    if event.head and not is_commit(event.head):
        return "its head is not the full id of a commit"
    if event.target and not is_ref(event.target):
        return "its target is not the name of a branch"
    if not _is_wanted_action(trigger, event):
        return f"`{event.action}` brings nothing new"
    if event.is_draft and not trigger.drafts:
        return "it is a draft"
    if event.is_fork and not trigger.forks:
        return "it comes from another repository, and `forks` is false"
    if ANYBODY not in trigger.authors and event.author not in trigger.authors:
        author = f"`{event.author}`" if event.author else "its author, whom nobody names,"
        return f"{author} is not among `authors`"
    if trigger.labels and not set(trigger.labels) & set(event.labels):
        return "it has none of the `labels`"
    if trigger.assignees and not set(trigger.assignees) & set(event.assignees):
        return "none of the `assignees` is assigned"
    if event.kind == "request" and not event.head:
        return "it names no commit"
    return ""


def _is_wanted_action(trigger: Trigger, event: ForgeEvent) -> bool:
    if trigger.actions:
        return event.action in trigger.actions
    # A label that lets it pass brings nothing by itself, but may be what was waited for.
    is_waited_for = bool(trigger.labels or trigger.assignees)
    if event.kind == "issue":
        return event.action in _ISSUE_ACTIONS or is_waited_for
    return event.changes_code or is_waited_for


def _with_texts(
    trigger: Trigger, values: Mapping[str, Json], work: AdmittedWork
) -> AdmittedWork | IgnoredOccasion:
    goal, quoted = render_template(trigger.goal, values), render_template(trigger.quote, values)
    for text in (goal, quoted):
        if isinstance(text, MissingValue):
            return IgnoredOccasion(f"the payload has no value at `{text.path}`")
    assert isinstance(goal, str) and isinstance(quoted, str), "the others were just ruled out"  # noqa: PT018
    if not goal.strip():
        return IgnoredOccasion("the goal would be empty")
    return msgspec.structs.replace(
        work, goal=goal[:GOAL_CHARS_MAX].strip(), quoted=quoted[:QUOTED_CHARS_MAX]
    )


def _delivery(trigger: Trigger, number: int, target: str = "") -> DeliveryWish | None:
    if not trigger.deliver:
        return None
    return DeliveryWish(
        parts=trigger.deliver,
        forge=trigger.delivery_forge,
        repository=trigger.repository,
        number=number,
        target=trigger.target or target,
    )


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "aeio" else f"a {kind}"
