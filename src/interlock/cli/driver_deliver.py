"""`interlock driver deliver`: deliver a result, or show to the word what would be delivered."""

from collections.abc import Iterator

import click

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.unattended.delivery import DeliveryPreview, deliver_work, preview_delivery
from interlock.cli.authority import SERVED, require_person, require_user
from interlock.cli.terminal import expect, print_json, print_lines, refuse
from interlock.cli.unattended_order import PLACE
from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal
from interlock.core.unattended.delivery import DeliveryState
from interlock.core.unattended.order import UnattendedState
from interlock.core.views.delivery import delivery_line


@click.command("deliver")
@click.argument("session_id", metavar="SESSION")
@click.option("--dry-run", is_flag=True, help="Show what would be delivered, and change nothing")
@click.option("--despite-secrets", is_flag=True, help="Even if something in it looks like a secret")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def deliver(session_id: str, *, dry_run: bool, despite_secrets: bool, as_json: bool) -> None:
    """Deliver the result of work that is done, as its order wants it: push, request, comment

    What is there already is found, and not made a second time.
    """
    if dry_run:
        require_user("Looking at what would be delivered")
        _show_preview(session_id, accepts_secrets=despite_secrets, as_json=as_json)
        return
    require_person("Delivering what was made unattended", SERVED)
    app = open_app(data_home())
    state = expect(
        UnattendedState, deliver_work(app, session_id, place=PLACE, accepts_secrets=despite_secrets)
    )
    assert state.delivery is not None, "it was asked for a moment ago"
    if state.delivery.needs_user:
        refuse(_explain(state.delivery, SessionId(session_id)))
    if as_json:
        print_json(state.delivery)
        return
    print_lines(delivery_line(state.delivery))


def _explain(delivery: DeliveryState, session: SessionId) -> Explanation:
    hint = (
        f"`interlock driver deliver {session} --dry-run` shows what is to be delivered, and"
        f" `interlock jobs show {delivery.job}` what was tried."
    )
    return Explanation("not_possible_now", delivery_line(delivery), hint)


def _show_preview(session_id: str, *, accepts_secrets: bool, as_json: bool) -> None:
    app = open_app(data_home())
    previews = preview_delivery(app, session_id, accepts_secrets=accepts_secrets)
    if isinstance(previews, Refusal):
        refuse(previews.explain())
    if as_json:
        print_json(previews)
        return
    for preview in previews:
        print_lines(*_preview_lines(preview))


def _preview_lines(preview: DeliveryPreview) -> Iterator[str]:
    checked, plan = preview.checked, preview.checked.plan
    yield f"{plan.result.name or 'the repository'}: {plan.result.path}"
    for one in preview.parts:
        yield f"  {one.part}: {one.outcome}{f', {one.detail}' if one.detail else ''} {one.url}"
    for secret in checked.secrets:
        yield f"  looks like a secret: {secret}"
    if plan.wants("push"):
        yield f"  commit {plan.result.commit[:12]} of {', '.join(checked.files) or 'no files'}:"
        yield from _indent(checked.message)
    if plan.wants("request"):
        yield f"  request “{plan.title}” for {plan.wish.target or 'the default branch'}:"
        yield from _indent(plan.description)
    if plan.wants("comment"):
        yield "  comment:"
        yield from _indent(plan.comment)


def _indent(text: str) -> list[str]:
    return [f"    {line}" for line in text.strip().splitlines()]
