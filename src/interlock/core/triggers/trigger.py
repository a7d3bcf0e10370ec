"""A trigger: which occasion starts which work, within which limits, and where its result goes.

It is written by people in `.interlock/triggers.toml`, and counts only where they trust the file.
Whoever can cause the occasion is not the one who pays for the work: so whose requests count, and
what they may cost, must be said.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.core.git_names import is_ref, is_repository_path
from interlock.core.triggers.forge_event import ForgeEvent
from interlock.core.triggers.goal_template import template_faults, template_paths
from interlock.core.unattended.order import DeliveryPart, LimitsWish, Runner

Source = Literal[
    "github-webhook", "gitlab-webhook", "github-poll", "gitlab-poll", "webhook", "cron"
]
SubjectKind = Literal["request", "issue"]
ANYBODY = "*"
EVENT_VALUES = (
    *("number", "title", "body", "author", "sender", "url", "head", "target"),
    *("repository", "action"),
)
"""The values of an event that people use."""
_Text = Annotated[str, Meta(min_length=1, max_length=4_000)]
_Line = Annotated[str, Meta(max_length=300)]
_Names = Annotated[tuple[_Line, ...], Meta(max_length=200)]
_Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class TriggerLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of one piece of work; one that is not named is as for every order."""

    turns: _Count | None = None
    minutes: _Count | None = None
    tokens: _Count | None = None
    cost: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    """In dollars."""

    def wish(self) -> LimitsWish:
        cost = None if self.cost is None else round(self.cost * 1_000_000)
        return LimitsWish(self.turns, self.minutes, self.tokens, cost)


class TriggerRepository(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One more repository that the work is about."""

    path: _Line
    """Its checkout, from the project or absolute."""
    repository: _Line = ""
    """Its path on the forge; empty: what is changed there is not delivered."""


class Trigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: Source
    workflow: _Line
    goal: _Text
    limits: TriggerLimits
    forge: _Line = ""
    """The name of `[forges.NAME]` in the user's config, with its address and secrets."""
    repository: _Line = ""
    """The path on the forge, as in `group/name`: what other repositories say is ignored."""
    events: tuple[SubjectKind, ...] = ("request",)
    actions: _Names = ()
    """Those that count; empty: whatever opens an issue, or brings code to a request."""
    authors: _Names = ()
    """Whose requests and issues count; `*` is anybody."""
    labels: _Names = ()
    """If there are any, one of them must be there."""
    assignees: _Names = ()
    """Likewise."""
    drafts: bool = False
    forks: bool = False
    """Whether requests from other repositories count."""
    quote: Annotated[str, Meta(max_length=4_000)] = ""
    """A template for text that the model is shown as data, such as a description."""
    schedule: _Line = ""
    zone: _Line = ""
    every_minutes: Annotated[int, Meta(ge=1, le=24 * 60)] = 5
    read_only: bool = False
    model: _Line = ""
    runner: Runner | None = None
    deliver: tuple[DeliveryPart, ...] = ()
    deliver_to: _Line = ""
    """The forge for the result, if it is another one."""
    target: _Line = ""
    """The branch that a request is for; empty: the default one. Work that no request asked for
    starts from it."""
    proof: _Line = ""
    """A command that proves the result; empty: those of the project and the workflow."""
    repositories: Annotated[dict[str, TriggerRepository], Meta(max_length=8)] = {}
    """Others that the work is about, by the names that tools call them."""
    enabled: bool = True

    @property
    def is_from_forge(self) -> bool:
        return self.source not in ("webhook", "cron")

    @property
    def is_polled(self) -> bool:
        return self.source.endswith("-poll")

    @property
    def is_webhook(self) -> bool:
        return self.source.endswith("webhook")

    @property
    def delivery_forge(self) -> str:
        """The forge that the result goes to; empty if there is none."""
        return self.deliver_to or (self.forge if self.source != "webhook" else "")

    @property
    def forge_kind(self) -> str:
        """The kind of forge that it is for: `github`, `gitlab`, or `webhook`."""
        return self.source.partition("-")[0]


def trigger_faults(trigger: Trigger) -> list[str]:
    """All that is wrong with a trigger by itself, in sentences."""
    return [
        *_source_faults(trigger),
        *_name_faults(trigger),
        *_text_faults(trigger),
        *_delivery_faults(trigger),
    ]


def _source_faults(trigger: Trigger) -> Iterator[str]:
    if trigger.limits == TriggerLimits():
        yield "`limits` must name at least one: `limits = { cost = 2, minutes = 30 }`"
    if trigger.source != "cron" and not trigger.forge:
        yield "`forge` must name a `[forges.NAME]` of your config.toml, which has the secrets"
    if trigger.is_from_forge and not trigger.repository:
        yield "`repository` must be its path on the forge, as in `group/name`"
    if trigger.is_from_forge and not trigger.authors:
        yield '`authors` must say whose requests count: `authors = ["ana", "bo"]`, or `["*"]`'
    if trigger.is_polled and "issue" in trigger.events:
        yield "issues cannot be polled: use a webhook for them"
    if trigger.source == "cron" and not (trigger.schedule and trigger.zone):
        yield '`schedule` and `zone` are needed: `schedule = "0 3 * * *"`, `zone = "Europe/Berlin"`'
    if trigger.source != "cron" and (trigger.schedule or trigger.zone):
        yield '`schedule` and `zone` are for `source = "cron"`'


def _name_faults(trigger: Trigger) -> Iterator[str]:
    paths = (trigger.repository, *(one.repository for one in trigger.repositories.values()))
    for path in filter(None, paths):
        if not is_repository_path(path):
            yield f"`repository`: `{path}` is not a path on a forge, as in `group/name`"
    if trigger.target and not is_ref(trigger.target):
        yield f"`target`: `{trigger.target}` is not the name of a branch"


def _text_faults(trigger: Trigger) -> Iterator[str]:
    for name, template in (("goal", trigger.goal), ("quote", trigger.quote)):
        for fault in template_faults(template):
            yield f"`{name}`: {fault}"
        for path in template_paths(template):
            field = path.removeprefix("event.")
            if field != path and field not in ForgeEvent.__struct_fields__:
                yield f"`{name}`: an event has no `{field}`; it has {', '.join(EVENT_VALUES)}"
            elif trigger.source == "cron":
                yield f"`{name}`: a time has no values, so `{path}` leads nowhere"
            elif trigger.is_polled and not path.startswith("event."):
                yield f"`{name}`: what is polled has `event.…` only, not `{path}`"


def _delivery_faults(trigger: Trigger) -> Iterator[str]:
    parts = set(trigger.deliver)
    if trigger.read_only and parts & {"push", "request"}:
        yield "work that only reads has nothing to push: `read_only` allows `comment` alone"
    is_addressed = trigger.is_from_forge or (trigger.delivery_forge and trigger.repository)
    if parts & {"request", "comment"} and not is_addressed:
        name = "deliver_to" if trigger.source == "webhook" else "forge"
        yield f"`deliver` needs `{name}` and `repository`: where the result goes"
    if "comment" in parts and not trigger.is_from_forge and "request" not in parts:
        yield "there is nothing to comment on: deliver a `request`, too"
