"""What the user does to a session: put away, delete, mode, preferences, gaps, go on from a node."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from starlette.routing import Route

from interlock.app.explain import explain
from interlock.app.explanation import Explanation
from interlock.app.protocol import deletion, gated_sessions
from interlock.app.refusals import NoSuchRun, NoSuchSession, NotesRequired
from interlock.app.runs import resume_at_node, user_actions
from interlock.app.sessions.lookup import find_session
from interlock.core.gate.state import MODES, mode_named
from interlock.core.ids import GapId, RunId, SessionId
from interlock.core.preferences import (
    AUTONOMIES,
    RISK_POLICIES,
    Autonomy,
    Preferences,
    RiskPolicy,
    Wish,
)
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.decide import NoPendingStep
from interlock.core.session.events import GapRecorded
from interlock.core.session.head import Head, RunHead
from interlock.core.session.state import SessionState
from interlock.server.console import Console, Page, PageRedirect, PageRequest
from interlock.server.formatting import short_id

HOW_CHARS_MAX = 2_000
TASK_CHARS_MAX = 200  # it is read with every tool call

T = TypeVar("T")


class FoundSession(msgspec.Struct, frozen=True):
    session: SessionId
    events: int
    head: Head

    @property
    def path(self) -> str:
        return f"/sessions/{self.session}"

    def run(self, asked: str) -> RunId | Explanation:
        """The run of that very name, in this session."""
        for run in self.head.runs:
            if run.run == asked:
                return run.run
        return explain(NoSuchRun(asked, ()))


def routes(console: Console) -> list[Route]:
    at = "/sessions/{session}"
    return [
        console.action(f"{at}/archive", partial(_with_session, archive)),
        console.action(f"{at}/unarchive", partial(_with_session, unarchive)),
        console.page(f"{at}/delete", partial(_with_session, confirm_delete)),
        console.action(f"{at}/delete", partial(_with_session, delete)),
        console.action(f"{at}/mode", partial(_with_session, change_mode)),
        console.action(f"{at}/preferences", partial(_with_session, set_preferences)),
        console.action(f"{at}/gaps/{{gap}}/resolve", partial(_with_session, resolve_gap)),
        console.action(f"{at}/runs/{{run}}/unblock", partial(_with_session, unblock)),
        console.action(f"{at}/checkpoint", partial(_with_session, checkpoint)),
        console.page(f"{at}/nodes/{{node}}/fork", partial(_with_session, fork)),
        console.action(f"{at}/nodes/{{node}}/fork", partial(_with_session, fork)),
    ]


def archive(asked: PageRequest, found: FoundSession) -> PageRedirect:
    user_actions.set_archived(asked.app, found.session, is_archived=True)
    return PageRedirect(found.path, "archived")


def unarchive(asked: PageRequest, found: FoundSession) -> PageRedirect:
    user_actions.set_archived(asked.app, found.session, is_archived=False)
    return PageRedirect(found.path, "unarchived")


def confirm_delete(_: PageRequest, found: FoundSession) -> Page:
    return _delete_page(found, wrong=False)


def delete(asked: PageRequest, found: FoundSession) -> PageRedirect | Page | Explanation:
    """There is no way back, so its name must be typed."""
    if asked.word("confirm").strip() not in (short_id(found.session), found.session):
        return _delete_page(found, wrong=True)
    done = deletion.delete(asked.app, found.session)
    if isinstance(done, NoSuchSession):
        return explain(done)
    if done.leftovers:
        error = "The session is deleted, but not everything that was published of it"
        return Page("error.html", error, {"error": error, "hint": " ".join(done.leftovers)})
    return PageRedirect("/sessions", "deleted")


def change_mode(asked: PageRequest, found: FoundSession) -> PageRedirect | Explanation:
    """Fields: `mode`; `task`, which stays as it is where it is not sent."""
    mode = mode_named(asked.word("mode"))
    if mode is None:
        return _no_such("mode", asked.word("mode"), MODES)
    task = asked.word("task").strip()[:TASK_CHARS_MAX] if "task" in asked.form else None
    done = gated_sessions.change_mode(asked.app, found.session, mode, by="user", task=task)
    return PageRedirect(found.path, "mode") if isinstance(done, SessionState) else explain(done)


def set_preferences(asked: PageRequest, found: FoundSession) -> PageRedirect | Explanation:
    """Fields: `run`; `autonomy` and `risk`, of which an empty one stays as it is."""
    run = found.run(asked.word("run"))
    if isinstance(run, Explanation):
        return run
    wanted, risked = asked.word("autonomy"), asked.word("risk")
    autonomy: Autonomy | None = next((one for one in AUTONOMIES if one == wanted), None)
    risk: RiskPolicy | None = next((one for one in RISK_POLICIES if one == risked), None)
    if wanted and autonomy is None:
        return _no_such("autonomy", wanted, AUTONOMIES)
    if risked and risk is None:
        return _no_such("risk policy", risked, RISK_POLICIES)
    done = user_actions.set_preferences(asked.app, run, Wish(autonomy, risk))
    return (
        PageRedirect(found.path, "preferences") if isinstance(done, Preferences) else explain(done)
    )


def resolve_gap(asked: PageRequest, found: FoundSession) -> PageRedirect | Explanation:
    """Field: `how`."""
    how = asked.word("how").strip()[:HOW_CHARS_MAX]
    if not how:
        hint = "It stays in the record: what was done, or why it need not be done."
        return Explanation("invalid_arguments", "Say how the gap was closed", hint)
    done = user_actions.resolve_gap(asked.app, found.session, GapId(asked.params["gap"]), how)
    return PageRedirect(found.path, "resolved") if isinstance(done, GapRecorded) else explain(done)


def unblock(asked: PageRequest, found: FoundSession) -> PageRedirect | Explanation:
    run = found.run(asked.params["run"])
    if isinstance(run, Explanation):
        return run
    done = user_actions.unblock(asked.app, run)
    return PageRedirect(found.path, "unblocked") if isinstance(done, RunHead) else explain(done)


def checkpoint(asked: PageRequest, found: FoundSession) -> PageRedirect | Explanation:
    """Fields: `notes`; `run`, at whose newest step it is kept, and otherwise the newest run."""
    newest = found.head.runs[-1].run if found.head.runs else ""
    run = found.run(asked.word("run") or newest) if newest else None
    if isinstance(run, Explanation):
        return run
    tip = found.head.run(run).tip if run else None
    done = resume_at_node.add_checkpoint(asked.app, found.session, tip or "", asked.word("notes"))
    if isinstance(done, NotesRequired):
        hint = "One sentence will do: what stands here, and why it is worth finding again."
        return Explanation("notes_missing", "A checkpoint needs notes", hint)
    return (
        PageRedirect(found.path, "checkpoint")
        if isinstance(done, RenderedAnswer)
        else explain(done)
    )


def fork(asked: PageRequest, found: FoundSession) -> Page | Explanation:
    """A token for the node, and the words to give to an agent with it. Changes nothing."""
    node = asked.params["node"]
    picked = resume_at_node.pick_up(asked.app, found.session, node)
    if not isinstance(picked, RenderedAnswer):
        return explain(picked)
    if picked.answer.is_complete:
        return explain(NoPendingStep())
    facts = {"session": found.session, "node": node, "answer": picked.answer}
    return Page("fork.html", "Continue from here", facts)


def _with_session(
    answer: Callable[[PageRequest, FoundSession], T], asked: PageRequest
) -> T | Explanation:
    """The answer for the session of that very name: an id is never guessed from its start."""
    name = asked.params["session"]
    session = find_session(asked.app.reader, name)
    if isinstance(session, NoSuchSession) or session != name:
        return explain(NoSuchSession(name, ()))
    stream = asked.app.reader.stream(session)
    assert stream is not None, "it was found a moment ago"
    assert stream.head is not None, "a stored stream has a head"
    return answer(asked, FoundSession(session, stream.version, stream.head))


def _delete_page(found: FoundSession, *, wrong: bool) -> Page:
    facts = {"found": found, "typed": short_id(found.session), "wrong": wrong}
    return Page(
        "delete.html", f"Delete {short_id(found.session)}", facts, status=400 if wrong else 200
    )


def _no_such(what: str, given: str, known: Sequence[str]) -> Explanation:
    hint = f"Choose one of these: {', '.join(known)}."
    return Explanation("invalid_arguments", f"There is no {what} `{given}`", hint)
