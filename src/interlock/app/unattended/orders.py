"""Ask for unattended work, watch over it, and control it. The driver does the rest."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from interlock.agents.models.credentials import is_model_name
from interlock.app.append_loop import append_plan
from interlock.app.catalogue.workflow_files import find_workflow
from interlock.app.context import App
from interlock.app.coordination.participants import end_participation
from interlock.app.jobs.executor_role import own_machine
from interlock.app.refusals import GoalMissing, NoSuchDirectory, NoSuchSession, NoSuchWorkflow
from interlock.app.runs import user_actions
from interlock.app.runs.start import GOAL_CHARS_MAX
from interlock.app.sessions.lookup import find_session
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.other_repositories import has_origin, settle_repositories
from interlock.core import ids
from interlock.core.canonical import Json
from interlock.core.git_names import is_commit
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.refusal import PlainRefusal, TextRefusal
from interlock.core.session import unattended_control as control
from interlock.core.session.head import Head
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.refusals import InputRefused
from interlock.core.session.unattended_control import ControlRefusal
from interlock.core.session.unattended_events import (
    Control,
    UnattendedMoved,
    UnattendedSteered,
    steer_key,
)
from interlock.core.unattended.order import (
    DeliveryWish,
    ForgeSubject,
    LimitsWish,
    OtherRepository,
    Runner,
    UnattendedOrder,
    UnattendedState,
)
from interlock.core.unattended.proof import ProofCommand
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.placeholders import placeholder_paths
from interlock.workspace.git.state import observe, root_of
from interlock.workspace.git.worktrees import head_commit
from interlock.workspace.machine.identity import user_name
from interlock.workspace.projects.project import CONFIG
from interlock.workspace.projects.settings import proofs_in

UNSETTLED_MAX = 10_000
STEER_BYTES = 6
NO_MODEL = PlainRefusal(
    "not_possible_now",
    "No model is chosen for unattended work",
    'Name one with `--model anthropic:MODEL`, or set `model = "anthropic:MODEL"` under'
    " `[driver]` in config.toml of the data home. With Claude Code instead of a model:"
    " `--runner claude-code`.",
)


class OrderRequest(msgspec.Struct, frozen=True):
    workflow: WorkflowId
    goal: str
    directory: Path
    model: str = ""
    runner: Runner | None = None
    base: str = ""
    is_read_only: bool = False
    limits: LimitsWish = LimitsWish()
    context: dict[str, Json] = {}
    session: SessionId | None = None
    """The session to be; None: any. If there is one of that id, the work was ordered before."""
    trigger: str = ""
    subject: ForgeSubject | None = None
    fetch: str = ""
    target: str = ""
    quoted: str = ""
    delivery: DeliveryWish | None = None
    repositories: tuple[OtherRepository, ...] = ()
    """Others that the work is about."""
    proof: str = ""
    """A command that proves the result; empty: those of the project and the workflow."""


class AlreadyOrdered(TextRefusal, frozen=True):
    session: SessionId

    code = "not_possible_now"
    error = "This was ordered before, as session `{session}`"
    hint = "`interlock session show {session}` shows what came of it."


class OrderedWork(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    position: int
    """Its place among those that wait or are worked on; 1 is the first."""


OrderRefusal = (
    GoalMissing | NoSuchDirectory | NoSuchWorkflow | PlainRefusal | InputRefused | AlreadyOrdered
)


def order_work(app: App, request: OrderRequest, *, place: str) -> OrderedWork | OrderRefusal:
    """Have a workflow run without anybody attending. `place` says where that was asked for.

    Raises:
        SettingsBroken: the user's config cannot be used.
    """
    if not request.goal.strip():
        return GoalMissing()
    if len(request.goal) > GOAL_CHARS_MAX:
        return InputRefused("/goal", f"it has more than {GOAL_CHARS_MAX} characters")
    if not request.directory.is_dir():
        return NoSuchDirectory(str(request.directory))
    root, git = root_of(request.directory), observe(request.directory)
    if root is None or git is None or git.head is None:
        return PlainRefusal(
            "no_project",
            f"`{request.directory}` is not in a git repository with a commit",
            "Unattended work runs in its own worktree, so that yours stays unchanged. Make"
            " one: `git init && git add . && git commit`.",
        )
    entry = find_workflow(app, request.directory, request.workflow)
    if isinstance(entry, NoSuchWorkflow):
        return entry
    base, fetch = _starting_point(root, request)
    if not base and not fetch:
        return InputRefused("/base", f"`{request.base}` is not a commit of `{root}`")
    if request.delivery and (field := request.delivery.unsound_name()):
        why = f"`{getattr(request.delivery, field)}` is not the name of a {field}"
        return InputRefused(f"/delivery/{field}", why)
    settings = driver_settings(app.home)
    runner, model = request.runner or settings.runner, request.model or settings.model
    if refusal := _model_objection(runner, model):
        return refusal
    others = settle_repositories(root, request.repositories, runner)
    if isinstance(others, PlainRefusal):
        return others
    order = UnattendedOrder(
        request.workflow,
        request.goal.strip(),
        str(root),
        own_machine(app),
        runner,
        model,
        base,
        request.is_read_only,
        request.context,
        trigger=request.trigger,
        subject=request.subject,
        fetch=fetch,
        target=request.target,
        quoted=request.quoted,
        delivery=request.delivery,
        repositories=others,
        proofs=_proofs(root, request, entry.pinned.workflow),
    )
    limits = request.limits.apply(settings.default_limits)
    session = request.session or ids.session_id(app.entropy(ids.RANDOM_BYTES))
    who = f"{user_name()}, {place}"

    def decide() -> Plan | AlreadyOrdered:
        if app.log.stream(session):
            return AlreadyOrdered(session)
        return control.plan_order(session, order, limits, who=who, at_ms=app.clock.now_ms())

    if (refusal := append_plan(app, decide)) is not None:
        return refusal
    names = [name for name, _ in list_active(app)]
    return OrderedWork(session, names.index(session) + 1 if session in names else 1)


def _model_objection(runner: Runner, model: str) -> PlainRefusal | InputRefused | None:
    if runner != "model" or is_model_name(model):
        return None
    if not model:
        return NO_MODEL
    why = "it is not a model: name one as in `anthropic:MODEL` or `openai:MODEL`"
    return InputRefused("/model", why)


def _proofs(
    root: Path, request: OrderRequest, workflow: CompiledWorkflow
) -> tuple[ProofCommand, ...]:
    """The commands that prove the result, by whoever may choose them: never the model."""
    if request.proof:
        return (ProofCommand(request.proof, "order"),)
    found = [ProofCommand(command, "project") for command in proofs_in(root / CONFIG)]
    for step, _ in workflow.steps_with_loops():
        # Where a command has placeholders, the model may have filled them in.
        if step.verification and not placeholder_paths(step.verification):
            found.append(ProofCommand(step.verification, "workflow"))
    by_command = {one.command: one for one in reversed(found)}
    return tuple(reversed(by_command.values()))


def _starting_point(root: Path, request: OrderRequest) -> tuple[str, str]:
    """Return the commit to start from, if it is known yet, and the ref to fetch, if any."""
    if request.fetch and request.base:  # a request on a forge: its commit may be nowhere here
        return (request.base, request.fetch) if is_commit(request.base) else ("", "")
    if request.fetch and has_origin(root):
        return "", request.fetch
    return head_commit(root, request.base or "HEAD"), ""


def list_active(app: App) -> list[tuple[SessionId, UnattendedState]]:
    """Unattended work that is not over, in the order in which it was asked for."""
    return [(session, state) for session, state in _list_unsettled(app) if not state.is_over]


def list_undelivered(app: App) -> list[tuple[SessionId, UnattendedState]]:
    """Work that is done, but whose result is on its way, or was refused on it."""
    return [(session, state) for session, state in _list_unsettled(app) if state.is_undelivered]


def _list_unsettled(app: App) -> list[tuple[SessionId, UnattendedState]]:
    rows = app.reader.unattended_sessions(limit=UNSETTLED_MAX)
    return [(session, head.unattended) for session, head in rows if head.unattended]


def control_work(
    app: App, session_id: str, wanted: Control, *, place: str
) -> UnattendedState | NoSuchSession | ControlRefusal:
    """Pause, resume or cancel. The driver follows within a second; asked twice, it is the same."""
    who = f"{user_name()}, {place}"
    state = _change(
        app,
        session_id,
        lambda stream: control.plan_control(stream, wanted, who=who, at_ms=app.clock.now_ms()),
    )
    if wanted == "resume" and isinstance(state, UnattendedState):
        _unblock_run(app, session_id)
    return state


def record_move(
    app: App, session_id: str, moved: UnattendedMoved
) -> UnattendedState | NoSuchSession | ControlRefusal:
    """Record the status that a driver reports."""
    return _change(
        app,
        session_id,
        lambda stream: control.plan_move(stream, moved, at_ms=app.clock.now_ms()),
    )


def end_orphaned_agents(
    app: App, active: Mapping[SessionId, UnattendedState]
) -> dict[SessionId, UnattendedState]:
    """End spawned agents whose parent is not active: no driver would continue them.

    Returns the work that stays active.
    """
    kept: dict[SessionId, UnattendedState] = {}
    for session, state in active.items():
        if not state.order.parent or state.order.parent in active:
            kept[session] = state
            continue
        detail = "the work that spawned it is over"
        end = UnattendedMoved("done", state.spent, detail=detail, outcome="cancelled")
        record_move(app, session, end)
    return kept


def _unblock_run(app: App, session_id: str) -> None:
    """Let the run go on, too, if it waits after too many attempts that were not accepted."""
    session = find_session(app.reader, session_id)
    runs = app.log.runs(session, latest=1) if not isinstance(session, NoSuchSession) else []
    if runs and runs[-1].is_waiting:
        user_actions.unblock(app, runs[-1].run)


def steer_work(
    app: App, session_id: str, text: str, *, place: str, steer: str = ""
) -> UnattendedState | NoSuchSession | ControlRefusal:
    """Tell the model something before its next turn. A second one with the same id is ignored."""
    name = steer or f"steer_{app.entropy(STEER_BYTES).hex()}"
    who = f"{user_name()}, {place}"

    def decide(stream: Stream) -> Plan | ControlRefusal | None:
        if app.log.event_with_key(stream.session, steer_key(name)):
            return None
        return control.plan_steer(stream, name, text, who=who, at_ms=app.clock.now_ms())

    return _change(app, session_id, decide)


def raise_limits(
    app: App, session_id: str, wish: LimitsWish, *, place: str
) -> UnattendedState | NoSuchSession | ControlRefusal:
    """Set other limits. Work that stands still because one was reached goes on."""
    who = f"{user_name()}, {place}"
    return _change(
        app,
        session_id,
        lambda stream: control.plan_limits(stream, wish, who=who, at_ms=app.clock.now_ms()),
    )


def cancel_all(app: App, *, place: str) -> tuple[SessionId, ...]:
    """Cancel everything that is not over; what was cancelled."""
    sessions = tuple(session for session, _ in list_active(app))
    for session in sessions:
        control_work(app, session, "cancel", place=place)
    return sessions


def steer_texts(
    app: App, session: SessionId, names: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """The messages to the model that wait, each with its id."""
    found = app.reader.events_with_keys(session, [steer_key(name) for name in names])
    events = (found[key].event for name in names if (key := steer_key(name)) in found)
    return tuple((one.steer, one.text) for one in events if isinstance(one, UnattendedSteered))


def _change(
    app: App,
    session_id: str,
    decide: Callable[[Stream], Plan | ControlRefusal | None],
) -> UnattendedState | NoSuchSession | ControlRefusal:
    """Append what `decide` plans on the stream with all runs, and return the state after it."""
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session

    def decide_now() -> Plan | ControlRefusal | None:
        stream = app.log.known_stream(session)
        runs = {run.run: run for run in app.log.runs(session)}
        return decide(msgspec.structs.replace(stream, runs=runs))

    refusal = append_plan(app, decide_now)
    state = state_of(app, session)
    if state and state.is_over:
        # Also if it was over before: the process that ended it may have been killed here.
        why = f"its work is over ({state.outcome})"
        end_participation(app, session, Path(state.order.repository), why)
        rows = app.log.unattended_sessions(limit=UNSETTLED_MAX)  # including this change
        works = ((one, head.unattended) for one, head in rows if head.unattended)
        end_orphaned_agents(app, {one: work for one, work in works if not work.is_over})
    return refusal or state or control.NotUnattended(session)


def state_of(app: App, session: SessionId) -> UnattendedState | None:
    head = head_of(app, session)
    return head.unattended if head else None


def head_of(app: App, session: SessionId) -> Head | None:
    stream = app.log.stream(session)
    return stream.head if stream else None
