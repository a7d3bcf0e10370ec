"""What a person does about unattended work: pause, resume, cancel, steer, set limits, stop all."""

from collections.abc import Mapping
from typing import get_args

import msgspec
from starlette.routing import Route

from interlock.app.refusals import NoSuchSession
from interlock.app.unattended import orders
from interlock.app.unattended.delivery import deliver_work
from interlock.core.explanation import Explanation
from interlock.core.session.unattended_control import ControlRefusal
from interlock.core.session.unattended_events import Control
from interlock.core.unattended.order import LimitsWish, UnattendedState
from interlock.server.console import Console, Page, PageHandler, PageRedirect, PageRequest
from interlock.server.http_refusals import status_of
from interlock.server.pages import session, session_graph, session_turns
from interlock.server.pages.session_place import INBOX, VIEWS, place_of, redirect_back

PLACE = "in the console"
ControlOutcome = UnattendedState | NoSuchSession | ControlRefusal
DOLLAR_MICROS = 1_000_000
_VIEW_PAGES: Mapping[str, PageHandler] = {
    "path": session.path,
    "graph": session_graph.graph,
    "timeline": session.timeline,
    "events": session.events,
    "agents": session.agents,
    "turns": session_turns.turns,
    "diff": session_turns.diff,
}


def routes(console: Console) -> list[Route]:
    at = "/sessions/{session}/work"
    return [
        console.action("/unattended/cancel", cancel_all),
        console.action(f"{at}/steer", steer, loosens=True),
        console.action(f"{at}/limits", set_limits, loosens=True),
        console.action(f"{at}/deliver", deliver, loosens=True),
        console.action(f"{at}/{{control}}", control, loosens=_resumes_or_steers),
    ]


def _resumes_or_steers(request: PageRequest) -> bool:
    return request.params["control"] == "resume" or bool(request.word("text").strip())


def control(request: PageRequest) -> PageRedirect | Page | Explanation:
    """Field: `text`, a message to the model to go on with."""
    name = request.params["control"]
    wanted: Control | None = next((one for one in get_args(Control) if one == name), None)
    if wanted is None:
        hint = f"There are: {', '.join(get_args(Control))}, steer, limits, deliver."
        return Explanation("invalid_arguments", f"There is no control `{name}`", hint)
    done = _steer_along(request)
    if done is None or isinstance(done, UnattendedState):
        done = orders.control_work(request.app, request.params["session"], wanted, place=PLACE)
    return _answer(request, done, f"work_{wanted}")


def steer(request: PageRequest) -> PageRedirect | Page | Explanation:
    """Field: `text`."""
    text = request.word("text").strip()
    done = orders.steer_work(request.app, request.params["session"], text, place=PLACE)
    return _answer(request, done, "steered")


def set_limits(request: PageRequest) -> PageRedirect | Page | Explanation:
    """Fields: `turns`, `minutes`, `tokens`, `dollars`, of which an empty one stays; `text`."""
    wish = read_limits(request)
    if isinstance(wish, Explanation):
        return _refuse(request, wish)
    done = _steer_along(request)
    if done is None or isinstance(done, UnattendedState):
        done = orders.raise_limits(request.app, request.params["session"], wish, place=PLACE)
    return _answer(request, done, "limits_set")


def deliver(request: PageRequest) -> PageRedirect | Page | Explanation:
    """Deliver the result once more. Field: `despite`, which may be `secrets`."""
    accepts_secrets = request.word("despite") == "secrets"
    session = request.params["session"]
    done = deliver_work(request.app, session, place=PLACE, accepts_secrets=accepts_secrets)
    return _answer(request, done, "delivery_wanted")


def cancel_all(request: PageRequest) -> PageRedirect:
    orders.cancel_all(request.app, place=PLACE)
    return PageRedirect("/now", "all_cancelled")


def read_limits(request: PageRequest) -> LimitsWish | Explanation:
    """The limits in a form."""
    amounts: dict[str, int] = {}
    try:
        for name in ("turns", "minutes", "tokens"):
            if text := request.word(name).strip().replace(",", ""):
                amounts[name] = int(text)
        if text := request.word("dollars").strip().removeprefix("$"):
            amounts["costMicros"] = round(float(text) * DOLLAR_MICROS)
        return msgspec.convert(amounts, LimitsWish)
    except (ValueError, OverflowError, msgspec.ValidationError):
        hint = "Turns, minutes and tokens are whole numbers above 0, and dollars like 2.50."
        return Explanation("invalid_arguments", "A limit is not a number that fits", hint)


def _steer_along(request: PageRequest) -> ControlOutcome | None:
    """Tell the model what was written beside a change, before the work goes on; None if nothing."""
    text = request.word("text").strip()
    if not text:
        return None
    return orders.steer_work(request.app, request.params["session"], text, place=PLACE)


def _answer(
    request: PageRequest,
    done: ControlOutcome,
    message_key: str,
) -> PageRedirect | Page | Explanation:
    if isinstance(done, UnattendedState):
        return redirect_back(request, request.params["session"], message_key)
    if isinstance(done, NoSuchSession):
        return done.explain()
    return _refuse(request, done.explain())


def _refuse(request: PageRequest, told: Explanation) -> Page | Explanation:
    """Show the page from which it was asked for, with the reason why nothing was changed."""
    if request.query.get("view") == INBOX.strip("/"):
        return told
    place = place_of(request, request.params["session"])
    path = f"/sessions/{place.session}{VIEWS[place.view]}"
    shown = _VIEW_PAGES[place.view](msgspec.structs.replace(request, path=path, form={}))
    if not isinstance(shown, Page):
        return told
    facts = shown.facts | {"refusal": told}
    return msgspec.structs.replace(shown, facts=facts, status=status_of(told.code))
