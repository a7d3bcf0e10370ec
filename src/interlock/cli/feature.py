"""`interlock feature`: say that a feature is complete, and have it reviewed."""

from pathlib import Path

import click
import msgspec

from interlock.app.callers.caller import local_caller, session_meant
from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.protocol import feature_reviews
from interlock.cli.session_state import refuse_caller
from interlock.cli.terminal import expect, print_json, print_lines
from interlock.core.protocol.feature_completion import (
    DEADLINE_HOURS_MAX,
    DEADLINE_MS_DEFAULT,
    HOUR_MS,
    FeatureCompletionRequest,
)
from interlock.core.views.delegated_work import review_line


@click.group()
def feature() -> None:
    """Complete a feature: its reviewers give their verdicts"""


@feature.command()
@click.argument("name", required=False)
@click.option("--reviewer", "reviewers", multiple=True, help="An agent that must review it")
@click.option(
    "--deadline",
    "hours",
    type=click.IntRange(1, DEADLINE_HOURS_MAX),
    default=DEADLINE_MS_DEFAULT // HOUR_MS,
    show_default=True,
    help="Hours after which a missing verdict counts as needs_revision",
)
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def complete(
    name: str | None,
    reviewers: tuple[str, ...],
    hours: int,
    session_id: str | None,
    *,
    as_json: bool,
) -> None:
    """Open the review of a feature; default: the one that the session is about

    Open delegations, runs, critical gaps and rejected decisions stop it.
    """
    app = open_app(data_home())
    session = session_meant(app, local_caller(app, Path.cwd(), session=session_id))
    if not isinstance(session, str):
        refuse_caller(session)
    request = FeatureCompletionRequest(name, reviewers, hours * HOUR_MS)
    outcome = expect(
        feature_reviews.RequestedReview, feature_reviews.complete_feature(app, session, request)
    )
    if as_json:
        print_json({"isNew": outcome.is_new, **msgspec.structs.asdict(outcome.review)})
        return
    print_lines(review_line(outcome.review))
    for reviewer in outcome.review.awaited_reviewers if outcome.review.is_open else ():
        print_lines(
            f"  interlock agent complete {reviewer.delegation} SUMMARY --verdict VERDICT"
            f"  ({reviewer.agent})"
        )
