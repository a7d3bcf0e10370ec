"""The job `deliver`: bring the result of unattended work to git and to a forge, each part once.

What is delivered is settled by the first step; the later ones go by that, whatever happens in the
session meanwhile. A part that is refused ends the delivery, because the next ones rest on it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from interlock.app.context import App
from interlock.app.unattended import delivery, delivery_parts
from interlock.app.unattended.delivery import DeliveryCheck
from interlock.core.session import delivery_control
from interlock.core.session.delivery_plan import PlannedDelivery, ending_of
from interlock.core.unattended.delivery import DeliveryRecord
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.workspace.outside.forges.rest_calls import ForgeFailed

WAIT_SECONDS_MAX = 60
Work: TypeAlias = Callable[[App, JobContext], StepResult]


class PartResult(msgspec.Struct, frozen=True):
    """The result of a step, for the later ones."""

    records: tuple[DeliveryRecord, ...]
    plans: tuple[PlannedDelivery, ...] = ()
    numbers: Mapping[str, int] = {}
    """The requests that were opened, by the names of their repositories."""


def _check(app: App, context: JobContext) -> StepResult:
    checked = delivery.check(app, context.announcement.session_id, context.job)
    if not isinstance(checked, DeliveryCheck):
        return StepResult("the session is gone", is_last=True)
    return _record(app, context, PartResult(checked.records, checked.plans))


def _patiently(work: Work) -> Work:
    """A step that leaves a forge alone for as long as it wants, within reason, before it fails."""

    def wait_if_asked(app: App, context: JobContext) -> StepResult:
        if not delivery.is_current(app, context.announcement.session_id, context.job):
            return StepResult("another delivery was asked for", is_last=True)
        try:
            return work(app, context)
        except ForgeFailed as failed:
            time.sleep(min(failed.wait_seconds, WAIT_SECONDS_MAX))
            raise

    return wait_if_asked


def _push(app: App, context: JobContext) -> StepResult:
    records = [delivery_parts.push(plan) for plan in _plans(context) if plan.wants("push")]
    return _record(app, context, PartResult(tuple(records)))


def _open_request(app: App, context: JobContext) -> StepResult:
    wanted = [plan for plan in _plans(context) if plan.wants("request")]
    opened = {plan.result.name: delivery_parts.open_request(app, plan) for plan in wanted}
    records = tuple(one.record for one in opened.values())
    numbers = {name: one.number for name, one in opened.items()}
    return _record(app, context, PartResult(records, numbers=numbers))


def _write_comment(app: App, context: JobContext) -> StepResult:
    session = context.announcement.session_id
    numbers = msgspec.convert(context.results["request"], PartResult).numbers
    records = [
        delivery_parts.write_comment(app, session, plan, number)
        for plan in _plans(context)
        if plan.wants("comment")
        and (number := plan.wish.number or numbers.get(plan.result.name, 0))
    ]
    return _record(app, context, PartResult(tuple(records)))


def _end(app: App, context: JobContext) -> StepResult:
    results = [msgspec.convert(one, PartResult) for one in context.results.values()]
    records = [record for result in results for record in result.records]
    return StepResult(_end_with(app, context, records))


def _record(app: App, context: JobContext, result: PartResult) -> StepResult:
    session = context.announcement.session_id
    delivery.record_parts(app, session, context.job, result.records)
    is_refused = any(record.outcome == "refused" for record in result.records)
    if is_refused:
        _end_with(app, context, result.records)
    return StepResult(msgspec.to_builtins(result), is_last=is_refused)


def _end_with(app: App, context: JobContext, records: Sequence[DeliveryRecord]) -> str:
    outcome, detail = ending_of(records)
    delivery.end_delivery(app, context.announcement.session_id, context.job, outcome, detail)
    return outcome


def _give_up(app: App, context: JobContext, reason: str) -> None:
    session = context.announcement.session_id
    detail = f"{reason}. `interlock driver deliver {session}` tries it again"
    delivery.end_delivery(app, session, context.job, "failed", detail)


def _plans(context: JobContext) -> tuple[PlannedDelivery, ...]:
    return msgspec.convert(context.results["check"], PartResult).plans


DELIVER = Job(
    delivery_control.JOB,
    tuple(
        JobStep(
            name, _patiently(work), attempts_max=8
        )  # about a minute: a forge may be busy for so long
        for name, work in (
            ("check", _check),
            ("push", _push),
            ("request", _open_request),
            ("comment", _write_comment),
            ("end", _end),
        )
    ),
    _give_up,
)
