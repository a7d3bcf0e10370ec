"""An order: what is to be done unattended, by whom, and within which limits.

A limit that is reached never fails the work: it *parks*, with a reason, until somebody lets it go
on. What was spent is counted from the journal of the driver, and told to the log with each change
of state, so that a lost journal loses no count that mattered.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.core.canonical import Json
from interlock.core.counting import pluralise
from interlock.core.git_names import is_ref, is_repository_path
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.unattended.conversation import Usage
from interlock.core.unattended.delivery import DeliveryState
from interlock.core.unattended.proof import ProofCommand, ProofRun

Runner = Literal["model", "claude-code"]
"""Who does the steps: our own loop with a model, or an agent client without a person."""
SandboxWish = Literal["auto", "require", "off"]
UnattendedStatus = Literal["queued", "working", "parked", "paused", "done"]
ParkReason = Literal[
    "approval",
    "question",
    "limit",
    "credentials",
    "provider",
    "stuck",
    "sandbox",
    "workspace",
    "storage",
    "protocol",
    "failed",
]
"""Why work stands still until somebody does something about it."""
Outcome = Literal["success", "unverified", "cancelled", "failed", "gave_up"]
"""`unverified`: all steps are done, and nothing that the driver ran proves the changes."""
StuckPolicy = Literal["park", "notify", "cancel"]

_Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
TURNS_DEFAULT, MINUTES_DEFAULT, TOKENS_DEFAULT = 200, 60, 5_000_000
COST_MICROS_DEFAULT = 5_000_000
NOTICE_SHARE = 0.8
"""The share of a limit at which the user is told that it comes near."""


class Limits(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    turns: _Count = TURNS_DEFAULT
    minutes: _Count = MINUTES_DEFAULT
    """Of work: time in which it was parked or waited for its turn does not count."""
    tokens: _Count = TOKENS_DEFAULT
    cost_micros: Annotated[int, Meta(ge=0, le=10**12)] | None = COST_MICROS_DEFAULT
    """Millionths of a dollar; None: money is not limited."""


class LimitsWish(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Limits of which some stay as they are."""

    turns: _Count | None = None
    minutes: _Count | None = None
    tokens: _Count | None = None
    cost_micros: Annotated[int, Meta(ge=0, le=10**12)] | None = None

    def apply(self, limits: Limits) -> Limits:
        wanted = {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}
        return msgspec.structs.replace(limits, **wanted)


class Spent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """All that the work has used so far."""

    turns: int = 0
    work_ms: int = 0
    usage: Usage = Usage()


LimitName = Literal["turns", "minutes", "tokens", "cost"]


def limit_shares(
    limits: Limits, spent: Spent, *, next_cost_micros: int = 0
) -> dict[LimitName, float]:
    """How much of each limit is used up. An unknown cost limits nothing: tokens still do.

    `next_cost_micros`: what the next call is expected to cost, so that it is not made in vain.
    """
    shares: dict[LimitName, float] = {
        "turns": spent.turns / limits.turns,
        "minutes": spent.work_ms / (limits.minutes * 60_000),
        "tokens": spent.usage.tokens / limits.tokens,
    }
    if limits.cost_micros is not None and spent.usage.cost_micros is not None:
        expected = spent.usage.cost_micros + next_cost_micros
        is_over = expected > limits.cost_micros or spent.usage.cost_micros >= limits.cost_micros
        share = spent.usage.cost_micros / limits.cost_micros if limits.cost_micros else 1.0
        shares["cost"] = max(share, 1.0) if is_over else share
    return shares


def limits_in_words(limits: Limits) -> dict[str, str]:
    words = {
        "turns": pluralise(limits.turns, "turn"),
        "minutes": f"{pluralise(limits.minutes, 'minute')} of work",
        "tokens": f"{limits.tokens:,} tokens",
    }
    if limits.cost_micros is not None:
        words["cost"] = dollars(limits.cost_micros)
    return words


LIMITS_TOLD_SHARE, TURNS_TOLD = 0.5, 25
"""The share of a limit from which the model is told what is left, and as many turns."""


def limits_left(limits: Limits, spent: Spent) -> str:
    """Return what is left for the work, in words; empty while there is plenty."""
    shares, turns = limit_shares(limits, spent), limits.turns - spent.turns
    if max(shares.values()) < LIMITS_TOLD_SHARE and turns > TURNS_TOLD:
        return ""
    minutes, tokens = spent.work_ms // 60_000, limits.tokens - spent.usage.tokens
    parts = [
        pluralise(max(0, turns), "turn"),
        f"{pluralise(max(0, limits.minutes - minutes), 'minute')} of work",
        f"{max(0, tokens):,} tokens",
    ]
    if limits.cost_micros is not None and spent.usage.cost_micros is not None:
        parts.append(dollars(max(0, limits.cost_micros - spent.usage.cost_micros)))
    return f"Left for this step and all that follow: {', '.join(parts)}."


def dollars(micros: int) -> str:
    """An amount of money as people read it, to the cent, or finer where it is less than one."""
    amount = micros / 1_000_000
    return f"${amount:.2f}" if amount == 0 or amount >= 0.01 else f"${amount:.4f}"  # noqa: PLR2004


class ForgeSubject(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The request or issue on a forge that work is about."""

    forge: str
    """Its name in the user's settings."""
    repository: str
    """Its path there, as in `group/name`."""
    number: int
    kind: Literal["request", "issue"] = "request"
    url: str = ""


DeliveryPart = Literal["push", "request", "comment"]
"""What is done with the result: its branch pushed, a request opened for it, a comment written."""


class DeliveryWish(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where the result of the work goes when it is done."""

    parts: tuple[DeliveryPart, ...]
    forge: str = ""
    """The name of a forge in the user's settings; empty: git alone is enough."""
    repository: str = ""
    """The path of the repository on that forge."""
    number: int = 0
    """The request or issue that is commented on; 0: the request that is opened."""
    target: str = ""
    """The branch that a request is for; empty: the default one."""
    remote: str = "origin"

    @property
    def needs_push(self) -> bool:
        """Whether the branch goes to the remote. A request needs that, too."""
        return "push" in self.parts or "request" in self.parts

    def unsound_name(self) -> str:
        """The field that names no repository, branch or remote; empty if all do."""
        if self.repository and not is_repository_path(self.repository):
            return "repository"
        if self.target and not is_ref(self.target):
            return "target"
        return "" if is_ref(self.remote) else "remote"


FIRST_REPOSITORY = "main"
"""The name of the repository in which work was ordered, where there are others."""
REPOSITORIES_MAX = 8
"""The others, at most."""


class OtherRepository(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One more repository that the work is about, in a worktree of its own."""

    name: str
    """The word by which tools are told to work in it."""
    path: str
    """The user's checkout."""
    base: str = ""
    fetch: str = ""
    """The branch of `origin` to start from, as a ref; `base` is known when the work begins."""
    delivery: DeliveryWish | None = None


class RepositoryPlace(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where the work on another repository is done."""

    name: str
    worktree: str
    branch: str
    commit: str = ""
    """At the end: the last commit of the branch; empty if what was changed is not committed."""


class UnattendedOrder(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    workflow: WorkflowId
    goal: str
    repository: str
    """The checkout on whose repository the work is done, in a worktree of its own."""
    machine: str
    """The machine that has it: only a driver there does the work."""
    runner: Runner = "model"
    model: str = ""
    """As in `anthropic:claude-…`; empty: the one in the settings, when the work begins."""
    base: str = ""
    """The commit to begin with; what was changed is what differs from it."""
    is_read_only: bool = False
    """Tools change nothing but the scratch directory: for reviews and audits."""
    context: dict[str, Json] = {}
    parent: SessionId | None = None
    """The session whose model has spawned this one, in whose worktree it works."""
    depth: int = 0
    trigger: str = ""
    """The trigger that has asked for it; empty: a person has."""
    subject: ForgeSubject | None = None
    fetch: str = ""
    """The ref of `origin` that is fetched first. Without a `base`, the work starts at its tip."""
    target: str = ""
    """The branch that a request is for, or that the work starts from; empty: the default one."""
    merge_base: str = ""
    """The commit that a request is compared with: where it left its target."""
    quoted: str = ""
    """Text of strangers that it is about. The model is told that it is data."""
    delivery: DeliveryWish | None = None
    repositories: tuple[OtherRepository, ...] = ()
    """The others, if the work is about more than one."""
    proofs: tuple[ProofCommand, ...] = ()
    """The commands that prove its result, in the first repository."""

    def find_repository(self, name: str) -> OtherRepository | None:
        """The repository with this name, the first one too; None if there is none."""
        first = OtherRepository(
            name=FIRST_REPOSITORY,
            path=self.repository,
            base=self.base,
            fetch=self.fetch,
            delivery=self.delivery,
        )
        return next((one for one in (first, *self.repositories) if one.name == name), None)

    def with_commits(self, bases: dict[str, str], merge_base: str) -> "UnattendedOrder":
        """Return the order with the commits that were fetched, by the names of repositories."""
        return msgspec.structs.replace(
            self,
            base=bases.get(FIRST_REPOSITORY, self.base),
            merge_base=merge_base or self.merge_base,
            repositories=tuple(
                msgspec.structs.replace(other, base=bases.get(other.name, other.base))
                for other in self.repositories
            ),
        )

    @property
    def wants_delivery(self) -> bool:
        return any((self.delivery, *(one.delivery for one in self.repositories)))


class UnattendedState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How unattended work stands, as far as the log knows. The journal has the details."""

    order: UnattendedOrder
    limits: Limits
    status: UnattendedStatus
    requested_ms: int
    since_ms: int
    """The time of the last change of the status."""
    started_ms: int = 0
    wish: Literal["run", "pause", "pause_now", "cancel"] = "run"
    """What the user wants of work that goes on now; the driver sees to it."""
    reason: ParkReason | None = None
    detail: str = ""
    outcome: Outcome | None = None
    spent: Spent = Spent()
    steers: tuple[str, ...] = ()
    """The ids of messages to the model that it was not told yet."""
    worktree: str = ""
    branch: str = ""
    level: str = ""
    """The level of the sandbox that the tools run at."""
    summary: str = ""
    commit: str = ""
    """The end of the branch when the work was done; empty if what was changed is not committed."""
    delivery: DeliveryState | None = None
    others: tuple[RepositoryPlace, ...] = ()
    """Where the other repositories of the order are worked on."""
    resume_ms: int = 0
    """When parked work continues by itself; 0: it waits for the user."""
    proofs: tuple[ProofRun, ...] = ()
    """At the end: how the commands ended that prove the result."""

    @property
    def has_result(self) -> bool:
        """Whether all steps are done, so that there is something to deliver."""
        return self.outcome in ("success", "unverified")

    @property
    def worktrees(self) -> tuple[str, ...]:
        """All worktrees, that of the first repository first; none before the work begins."""
        return tuple(filter(None, (self.worktree, *(place.worktree for place in self.others))))

    @property
    def is_over(self) -> bool:
        return self.status == "done"

    @property
    def needs_user(self) -> bool:
        """Whether it waits for the user, and for nothing that is in another list of the inbox."""
        return (self.status == "parked" and self.reason != "approval") or self.needs_look

    @property
    def needs_look(self) -> bool:
        """Whether it is over, and its result is less than was asked for."""
        return self.is_over and self.outcome in ("unverified", "failed") and not self.order.parent

    @property
    def is_undelivered(self) -> bool:
        """Whether the work is done, but its result is not where it was to go."""
        return self.delivery is not None and not self.delivery.is_settled
