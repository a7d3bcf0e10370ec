"""Let a trigger fire: order the work that its occasion starts, and record what came of it."""

from contextlib import suppress
from pathlib import Path

from interlock.app.context import App
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.triggers.trigger_book import ProjectTrigger
from interlock.app.unattended.forge_settings import find_forge, read_secret
from interlock.app.unattended.orders import (
    AlreadyOrdered,
    OrderedWork,
    OrderRequest,
    list_active,
    order_work,
)
from interlock.core import ids
from interlock.core.git_names import branch_ref
from interlock.core.ids import WorkflowId
from interlock.core.triggers.admission import AdmittedWork, IgnoredOccasion, delivery_elsewhere
from interlock.core.triggers.trigger import Trigger
from interlock.core.unattended.order import OtherRepository
from interlock.store.trigger_log import Firing, FiringOutcome, TriggerLog

__all__ = ["Firing", "TriggerLog"]


def fire(
    app: App,
    log: TriggerLog,
    one: ProjectTrigger,
    decision: AdmittedWork | IgnoredOccasion,
    *,
    name: str = "",
) -> Firing:
    """Order the work, unless it was ordered before. `name`: the sender's id of the occasion."""
    if isinstance(decision, IgnoredOccasion):
        return record_firing(app, log, one, "ignored", decision.reason, name=name)
    session = ids.triggered_session_id(decision.identity)
    if app.log.stream(session):  # before anything that takes time
        return record_firing(app, log, one, "duplicate", "", name=name, session=session)
    try:
        require_usable(app.home, one.trigger)  # before money is spent on what cannot be delivered
        outcome = order_work(app, _request(one, decision, session), place=f"trigger `{one.name}`")
    except SettingsBroken as broken:
        return record_firing(app, log, one, "failed", str(broken), name=name)
    if isinstance(outcome, AlreadyOrdered):
        return record_firing(app, log, one, "duplicate", "", name=name, session=session)
    if isinstance(outcome, OrderedWork):
        return record_firing(app, log, one, "ordered", decision.goal, name=name, session=session)
    return record_firing(app, log, one, "failed", outcome.explain().error, name=name)


def record_firing(
    app: App,
    log: TriggerLog,
    one: ProjectTrigger,
    outcome: FiringOutcome,
    detail: str,
    *,
    name: str = "",
    session: ids.SessionId | None = None,
) -> Firing:
    """Record a firing. Where that fails, it has happened all the same."""
    firing = Firing(app.clock.now_ms(), outcome, detail, name, session)
    with suppress(StoreFailure):
        log.record(one.place, firing)
    return firing


def _request(one: ProjectTrigger, work: AdmittedWork, session: ids.SessionId) -> OrderRequest:
    trigger = one.trigger
    others = tuple(
        OtherRepository(
            name,
            str(Path(one.root, Path(other.path).expanduser()).resolve()),
            fetch=branch_ref(trigger.target),
            delivery=delivery_elsewhere(trigger, other),
        )
        for name, other in trigger.repositories.items()
    )
    return OrderRequest(
        WorkflowId(trigger.workflow),
        work.goal,
        Path(one.root),
        trigger.model,
        trigger.runner,
        work.base,
        trigger.read_only,
        trigger.limits.wish(),
        session=session,
        trigger=one.place,
        subject=work.subject,
        fetch=work.fetch,
        target=work.target,
        quoted=work.quoted,
        delivery=work.delivery,
        repositories=others,
        proof=trigger.proof,
    )


def require_usable(home: Path, trigger: Trigger) -> None:
    """Raise `SettingsBroken` if the user's settings lack what a trigger needs."""
    if {"request", "comment"} & set(trigger.deliver):
        read_secret(home, trigger.delivery_forge, "token_file")
    if trigger.source == "cron":
        return
    forge = find_forge(home, trigger.forge)
    if forge.kind != trigger.forge_kind:
        wanted = f"`{trigger.source}` needs a forge of kind `{trigger.forge_kind}`"
        raise SettingsBroken(f"{wanted}, and `[forges.{trigger.forge}]` is `{forge.kind}`")
    if trigger.is_webhook:
        read_secret(home, trigger.forge, "webhook_secret_file")
    if trigger.is_polled:
        read_secret(home, trigger.forge, "token_file")


def is_under_way(app: App, one: ProjectTrigger) -> bool:
    """Whether work that this trigger has started goes on. Parked work may wait for days."""
    return any(
        state.order.trigger == one.place and (state.status != "parked" or state.resume_ms > 0)
        for _, state in list_active(app)
    )
