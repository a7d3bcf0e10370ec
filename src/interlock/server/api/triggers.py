"""Operations on triggers: list them, try one out, let one fire."""

from typing import Annotated, Any

from msgspec import Meta

from interlock.app.context import App
from interlock.app.triggers import overview
from interlock.app.triggers.firing import Firing
from interlock.app.triggers.overview import NoSuchTrigger, TriggerList
from interlock.app.triggers.trial import Occasion, TrialOutcome, run_trigger, try_trigger
from interlock.core.refusal import Refusal
from interlock.server.api.operation import Body, NoParameters, Parameters, rest_operation

_CODES = ("unknown_trigger", "invalid_arguments", "not_possible_now")


class TriggerParameters(Parameters, frozen=True):
    project: Annotated[str, Meta(pattern=r"^[0-9a-f]{8}$(?!\n)", description="As in its address.")]
    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,62}$(?!\n)")]


class OccasionBody(Body, frozen=True):
    """The occasion: nothing for a schedule, else one of them."""

    payload: Annotated[dict[str, Any] | None, Meta(description="What a webhook would send.")] = None
    event: Annotated[str, Meta(max_length=100, description="As the header of it names it.")] = ""
    request: Annotated[int, Meta(ge=1, le=10**9)] | None = None

    def occasion(self) -> Occasion:
        return self.payload if self.payload is not None else self.request


@rest_operation(
    "GET", "/triggers", "List the triggers of all trusted projects, with their last results"
)
def _list_triggers(app: App, _: NoParameters) -> TriggerList:
    return overview.list_triggers(app, overview.load_triggers(app.home))


@rest_operation(
    "POST",
    "/triggers/{project}/{name}/test",
    "Show what an event would start (dry run)",
    codes=_CODES,
    is_patient=True,
)
def _test_trigger(app: App, at: TriggerParameters, body: OccasionBody) -> TrialOutcome | Refusal:
    one = overview.find_trigger(overview.load_triggers(app.home), f"{at.project}/{at.name}")
    if isinstance(one, NoSuchTrigger):
        return one
    return try_trigger(app, one, body.occasion(), body.event)


@rest_operation(
    "POST",
    "/triggers/{project}/{name}/run",
    "Fire a trigger now; the same event starts the same work only once",
    codes=_CODES,
    is_patient=True,
    loosens=True,
)
def _run_trigger(app: App, at: TriggerParameters, body: OccasionBody) -> Firing | Refusal:
    one = overview.find_trigger(overview.load_triggers(app.home), f"{at.project}/{at.name}")
    if isinstance(one, NoSuchTrigger):
        return one
    return run_trigger(app, one, body.occasion(), body.event)
