"""The user's actions on a session: archive, delete, mode, preferences, gaps, fork from a node."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from starlette.routing import Route

from interlock.app.protocol import deletion, gated_sessions
from interlock.app.refusals import NoSuchRun, NoSuchSession, NotesRequired
from interlock.app.runs import resume_at_node, user_actions
from interlock.app.sessions.lookup import find_session
from interlock.core.explanation import Explanation
from interlock.core.gate.state import LOOSE_MODES, MODES, mode_named
from interlock.core.ids import GapId, SessionId
from interlock.core.preferences import (
    AUTONOMIES,
    RISK_POLICIES,
    Autonomy,
    RiskPolicy,
    Wish,
    loosens,
)
from interlock.core.refusal import Refusal
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.head import Head
from interlock.core.session.refusals import NO_PENDING_STEP
from interlock.core.session.run_head import RunHead
from interlock.server.console import Console, Page, PageRedirect, PageRequest
from interlock.server.formatting import short_id
from interlock.server.pages.session_place import place_of, redirect_back

HOW_CHARS_MAX = 2_000
TASK_CHARS_MAX = 200  # it is read with every tool call

CONFIRMATIONS = {
    "disabled": "Switch the gate off for this session? The agent may then change any file and run"
    " any command, in every phase, until you choose another mode.",
    "full_auto_never_stop": "Let the agent go on without ever asking you? Questions and approvals"
    " are passed by, and each is recorded as a gap.",
}
"""The questions before a change that takes a safeguard away, by the mode or the autonomy."""

T = TypeVar("T")


class FoundSession(msgspec.Struct, frozen=True):
    session: SessionId
    events: int
    head: Head
    runs: tuple[RunHead, ...]

    @property
    def path(self) -> str:
        return f"/sessions/{self.session}"

    def run(self, run_id: str) -> RunHead | Explanation:
        """The run of that very name, in this session."""
        for run in self.runs:
            if run.run == run_id:
                return run
        return NoSuchRun(run_id, ()).explain()


def routes(console: Console) -> list[Route]:
    at = "/sessions/{session}"
    return [
        console.action(f"{at}/archive", partial(_with_session, archive)),
        console.action(f"{at}/unarchive", partial(_with_session, unarchive)),
        console.page(f"{at}/delete", partial(_with_session, confirm_delete)),
        console.action(f"{at}/delete", partial(_with_session, delete)),
        console.action(
            f"{at}/mode",
            partial(_with_session, change_mode),
            loosens=lambda request: request.word("mode") in LOOSE_MODES,
        ),
        console.action(
            f"{at}/preferences",
            partial(_with_session, set_preferences),
            loosens=lambda request: loosens(request.word("autonomy"), request.word("risk")),
        ),
        console.action(
            f"{at}/gaps/{{gap}}/resolve", partial(_with_session, resolve_gap), loosens=True
        ),
        console.action(f"{at}/runs/{{run}}/unblock", partial(_with_session, unblock), loosens=True),
        console.action(f"{at}/checkpoint", partial(_with_session, checkpoint)),
        console.page(f"{at}/nodes/{{node}}/fork", partial(_with_session, fork)),
        console.action(f"{at}/nodes/{{node}}/fork", partial(_with_session, fork)),
    ]


def archive(request: PageRequest, target: FoundSession) -> PageRedirect:
    user_actions.set_archived(request.app, target.session, is_archived=True)
    return redirect_back(request, target.session, "archived")


def unarchive(request: PageRequest, target: FoundSession) -> PageRedirect:
    user_actions.set_archived(request.app, target.session, is_archived=False)
    return redirect_back(request, target.session, "unarchived")


def confirm_delete(_: PageRequest, target: FoundSession) -> Page:
    return _delete_page(target, wrong=False)


def delete(request: PageRequest, target: FoundSession) -> PageRedirect | Page | Explanation:
    """There is no way back, so its name must be typed."""
    if request.word("confirm").strip() not in (short_id(target.session), target.session):
        return _delete_page(target, wrong=True)
    done = deletion.delete(request.app, target.session)
    if isinstance(done, NoSuchSession):
        return done.explain()
    if done.leftovers:
        error = "The session is deleted, but not everything that was published of it"
        return Page("error.html", error, {"error": error, "hint": " ".join(done.leftovers)})
    return PageRedirect("/sessions", "deleted")


def change_mode(request: PageRequest, target: FoundSession) -> PageRedirect | Page | Explanation:
    """Fields: `mode`; `task`, which stays as it is where it is not sent; `confirmed`."""
    mode = mode_named(request.word("mode"))
    if mode is None:
        return _no_such("mode", request.word("mode"), MODES)
    current = target.head.attended.mode if target.head.attended else None
    if question := _question_before(request, mode, current):
        return _confirm_page(request, target, question, "mode")
    task = request.word("task").strip()[:TASK_CHARS_MAX] if "task" in request.form else None
    done = gated_sessions.change_mode(request.app, target.session, mode, by="user", task=task)
    if isinstance(done, Refusal):
        return done.explain()
    return redirect_back(request, target.session, "mode")


def set_preferences(
    request: PageRequest, target: FoundSession
) -> PageRedirect | Page | Explanation:
    """Fields: `run`; `autonomy` and `risk`, of which an empty one stays as it is; `confirmed`."""
    run = target.run(request.word("run"))
    if isinstance(run, Explanation):
        return run
    wanted, risked = request.word("autonomy"), request.word("risk")
    autonomy: Autonomy | None = next((one for one in AUTONOMIES if one == wanted), None)
    risk: RiskPolicy | None = next((one for one in RISK_POLICIES if one == risked), None)
    if wanted and autonomy is None:
        return _no_such("autonomy", wanted, AUTONOMIES)
    if risked and risk is None:
        return _no_such("risk policy", risked, RISK_POLICIES)
    current = run.preferences.autonomy
    if autonomy and (question := _question_before(request, autonomy, current)):
        return _confirm_page(request, target, question, "preferences")
    done = user_actions.set_preferences(request.app, run.run, Wish(autonomy, risk))
    if isinstance(done, Refusal):
        return done.explain()
    return redirect_back(request, target.session, "preferences")


def resolve_gap(request: PageRequest, target: FoundSession) -> PageRedirect | Explanation:
    """Field: `how`."""
    how = request.word("how").strip()[:HOW_CHARS_MAX]
    if not how:
        hint = "It stays in the record: what was done, or why it need not be done."
        return Explanation("invalid_arguments", "Say how the gap was closed", hint)
    done = user_actions.resolve_gap(request.app, target.session, GapId(request.params["gap"]), how)
    if isinstance(done, Refusal):
        return done.explain()
    return redirect_back(request, target.session, "resolved")


def unblock(request: PageRequest, target: FoundSession) -> PageRedirect | Explanation:
    run = target.run(request.params["run"])
    if isinstance(run, Explanation):
        return run
    done = user_actions.unblock(request.app, run.run)
    if isinstance(done, Refusal):
        return done.explain()
    return redirect_back(request, target.session, "unblocked")


def checkpoint(request: PageRequest, target: FoundSession) -> PageRedirect | Explanation:
    """Fields: `notes`; `run`, at whose newest step it is kept, and otherwise the newest run."""
    newest = target.head.latest_run
    run = target.run(request.word("run") or newest) if newest else None
    if isinstance(run, Explanation):
        return run
    tip = run.tip if run else None
    done = resume_at_node.add_checkpoint(
        request.app, target.session, tip or "", request.word("notes")
    )
    if isinstance(done, NotesRequired):
        hint = "One sentence will do: what stands here, and why it is worth finding again."
        return Explanation("notes_missing", "A checkpoint needs notes", hint)
    if isinstance(done, Refusal):
        return done.explain()
    return redirect_back(request, target.session, "checkpoint")


def fork(request: PageRequest, target: FoundSession) -> Page | Explanation:
    """A token for the node, and the words to give to an agent with it. Changes nothing."""
    node = request.params["node"]
    picked = resume_at_node.pick_up(request.app, target.session, node)
    if not isinstance(picked, RenderedAnswer):
        return picked.explain()
    if picked.answer.is_complete:
        return NO_PENDING_STEP.explain()
    facts = {"session": target.session, "node": node, "answer": picked.answer}
    return Page("fork.html", "Continue from here", facts)


def _with_session(
    answer: Callable[[PageRequest, FoundSession], T], request: PageRequest
) -> T | Explanation:
    """The answer for the session of that very name: an id is never guessed from its start."""
    name = request.params["session"]
    session = find_session(request.app.reader, name)
    if isinstance(session, NoSuchSession) or session != name:
        return NoSuchSession(name, ()).explain()
    stream = request.app.reader.stream(session)
    assert stream is not None, "it was found a moment ago"
    assert stream.head is not None, "a stored stream has a head"
    runs = tuple(request.app.reader.runs(session))
    return answer(request, FoundSession(session, stream.version, stream.head, runs))


def _delete_page(target: FoundSession, *, wrong: bool) -> Page:
    facts = {"found": target, "typed": short_id(target.session), "wrong": wrong}
    return Page(
        "delete.html", f"Delete {short_id(target.session)}", facts, status=400 if wrong else 200
    )


def _question_before(request: PageRequest, wanted: str, current: str | None) -> str:
    """The question that is asked before `wanted` comes into force; empty if none is open."""
    is_settled = wanted == current or request.word("confirmed") == "yes"
    return "" if is_settled else CONFIRMATIONS.get(wanted, "")


def _confirm_page(request: PageRequest, target: FoundSession, question: str, action: str) -> Page:
    """Ask on a page, where no script has asked already."""
    place = place_of(request, target.session)
    fields = {
        name: value
        for name, value in request.form.items()
        if isinstance(value, str) and name not in ("csrf", "confirmed")
    }
    facts = {"question": question, "fields": fields, "place": place, "action": action}
    return Page("confirm.html", "Are you sure?", facts)


def _no_such(what: str, given: str, known: Sequence[str]) -> Explanation:
    hint = f"Choose one of these: {', '.join(known)}."
    return Explanation("invalid_arguments", f"There is no {what} `{given}`", hint)
