"""The operation that has a result delivered. To look at it first would take a forge's time."""

from typing import Annotated

from msgspec import Meta

from interlock.app.context import App
from interlock.app.unattended.delivery import deliver_work
from interlock.core.unattended.delivery import DeliveryState
from interlock.core.unattended.order import UnattendedState
from interlock.server.api.driver import CONTROLLED, PLACE
from interlock.server.api.operation import Body, rest_operation
from interlock.server.api.sessions import SessionParameters


class DeliveryBody(Body, frozen=True):
    accepts_secrets: Annotated[
        bool, Meta(description="Deliver it even if something in it looks like a secret.")
    ] = False


@rest_operation(
    "POST",
    "/sessions/{session}/deliver",
    "Deliver the result of unattended work that is done, as its order wants it",
    answer=DeliveryState,
    codes=CONTROLLED,
    about="It is done in the background: `daemon-status` and the events say what came of it.",
    loosens=True,
)
def _deliver_work(app: App, at: SessionParameters, body: DeliveryBody) -> object:
    state = deliver_work(app, at.session, place=PLACE, accepts_secrets=body.accepts_secrets)
    return state.delivery if isinstance(state, UnattendedState) else state
