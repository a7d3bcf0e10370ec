"""The loop of a model: its answer, its tools, their results, until the step is submitted.

There is no state but the journal. Each round asks `next_action`, carries it out and appends what
came of it; a driver that was killed at any point goes on with the same journal in the same way.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from interlock.agents.models.model_port import (
    FailureKind,
    ModelFailure,
    ModelPort,
    ModelUnavailable,
)
from interlock.agents.models.retrying import answer_with_retries
from interlock.app.unattended.driver_desk import (
    CHILD_DEPTH_MAX,
    CHILDREN_MAX,
    ChildRequest,
    WorkSheet,
)
from interlock.core.canonical import Json, blob_ref
from interlock.core.counting import pluralise
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import Answer
from interlock.core.session.secrets import redact_secrets
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.compaction import compact, conversation_chars
from interlock.core.unattended.conversation import (
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    ToolReply,
    ToolRequest,
)
from interlock.core.unattended.journal import (
    COMPLETE_STEP,
    INTERRUPTED,
    AdvanceAnswered,
    AdvanceIntended,
    BeginStep,
    CallModel,
    ConversationCompacted,
    JournalNote,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ProofEnded,
    RunTool,
    SendAdvance,
    ToolEnded,
    ToolStarted,
    WorkProgress,
    next_action,
)
from interlock.core.unattended.order import Limits, Outcome, ParkReason, Spent, limits_left
from interlock.core.unattended.proof import ProofCommand
from interlock.core.unattended.stuck import ADVISORY, SIGN_TEXTS, find_sign
from interlock.driver import prompts
from interlock.driver.permission import find_objection, record_shell_command, withheld_tools
from interlock.driver.server_client import CHANGING_NOTE_TOOLS, NOTE_TOOLS, CallRefused
from interlock.driver.session_context import SessionContext, Standstill
from interlock.driver.step_tools import (
    ASK_USER,
    REPORT_ISSUE,
    SPAWN_AGENT,
    AskUser,
    CompleteStep,
    ReportIssue,
    SpawnAgent,
    advance_arguments,
    own_tool_specs,
    parse_own_call,
)
from interlock.driver.tools.bounded_output import BoundedOutput
from interlock.driver.tools.catalogue import (
    TOOLS,
    MalformedCall,
    check_call,
    repository_of,
    repository_tools,
    tool_specs,
)
from interlock.driver.tools.proof_run import run_in_worktree
from interlock.driver.tools.tool import DriverTool

SAID_CHARS = 300
RESET_SECONDS_MAX = 24 * 3_600
"""The longest wait for a provider after which work continues by itself."""
TOKEN_CHARS = 4
"""The characters of a token, about: for a call whose answer never comes."""
CHARS_PER_TOKEN_MIN = 3
"""The characters of a token in code, about: a conversation must not be too long for the model."""
SHARE_AFTER_COMPACTION = 0.5
"""The share of that length to which a conversation is cut, so that it is not cut in each turn."""
_PARK_REASONS: dict[FailureKind, ParkReason] = {
    "credentials": "credentials",
    "rate_limited": "provider",
    "overloaded": "provider",
    "network": "provider",
    "timeout": "provider",
}
OWN_TOOLS = (COMPLETE_STEP, REPORT_ISSUE, ASK_USER, SPAWN_AGENT)
ANSWERED = "The user has answered:"
NOT_ANSWERED = (
    "The user let the work continue without an answer. Decide yourself, and state your assumption"
    " in the notes."
)
CUT_CALL = "Your answer was cut off at the limit of output tokens: answer in smaller parts."
RunSession = Callable[[SessionContext], Awaitable[Outcome | None]]


class ModelLoop:
    """The first of the two ways to do steps: our own loop, over a model."""

    def __init__(self, context: SessionContext, run_session: RunSession) -> None:
        self._context, self._run_session = context, run_session

    async def run(self) -> None:
        """Work until the run is complete.

        Raises:
            Standstill, PauseWanted: it is not complete yet.
        """
        while True:
            await self._context.resources.confirm_lease()
            match next_action(self._context.record.progress):
                case BeginStep():
                    self._context.require_no_pause()
                    if not await self._begin_step():
                        return
                case CallModel():
                    self._context.require_no_pause()
                    self._context.pass_on_steers()
                    await self._require_sense()
                    await self._context.require_limits(warns_model=True)
                    await self._call_model()
                case RunTool() as action:
                    self._context.require_no_shutdown()
                    await self._run_tool(action.call, was_started=action.was_started)
                case SendAdvance() as action:
                    await self._send_advance(action.intended)

    async def _begin_step(self) -> bool:
        """Begin the conversation about the pending step; False if the run is complete."""
        context = self._context
        answer = await context.resources.client.show_step(context.session, context.worktree)
        if answer.is_complete:
            return False
        context.require_workable(answer)
        only_reads = answer.pending is not None and answer.pending.is_read_only
        workplace = context.workplace_for(only_reads=only_reads)
        briefing = await context.brief()
        left = limits_left(context.sheet.state.limits, context.spent)
        # A later step knows by the notes of earlier ones what mattered; constraints bind them all.
        is_first = context.record.progress.step is None
        knowledge = briefing.knowledge if is_first else briefing.constraints
        context.begin_step(
            answer,
            system=prompts.system_prompt(
                workplace, context.settings.output_tokens, briefing.instructions
            ),
            message=prompts.first_message(answer, context.order, knowledge, left),
            model=context.order.model or context.settings.model,
            tools=self._tool_names(is_read_only=only_reads or context.order.is_read_only),
            level=workplace.level,
            proof=proof_command(answer),
        )
        return True

    def _tool_names(self, *, is_read_only: bool = False) -> tuple[str, ...]:
        context, order = self._context, self._context.order
        withheld = withheld_tools(context.settings, is_read_only=is_read_only)
        withheld.update(() if order.depth < CHILD_DEPTH_MAX else (SPAWN_AGENT,))
        withheld.discard(COMPLETE_STEP)
        withheld.update(() if context.parent is None else (ASK_USER,))
        names = (*TOOLS, *NOTE_TOOLS, *OWN_TOOLS)
        return tuple(name for name in names if name not in withheld)

    def _tools(self) -> Mapping[str, DriverTool]:
        return repository_tools(tuple(self._context.require_workplace().worktrees))

    async def _send_advance(self, intended: AdvanceIntended) -> None:
        arguments = msgspec.json.decode(intended.arguments, type=dict[str, Json])
        structure, text, is_refused = await self._context.resources.client.call_tool(
            "continue_workflow", {**arguments, "continueToken": intended.token}
        )
        answer = cast("dict[str, Any]", structure or {})
        if is_refused:
            said = ". ".join(str(answer[key]) for key in ("error", "hint") if answer.get(key))
            hidden = (said or text).replace(intended.token, "…")
            self._context.append(AdvanceAnswered("refused", hidden))
        elif answer.get("kind") == "blocked" and answer.get("nextIntent") == "rehydrate_only":
            self._context.append(AdvanceAnswered("exhausted", ""))
            await self._context.report("working")
        elif answer.get("kind") == "blocked":
            token = str(answer["continueToken"])
            text = "\n\n".join(filter(None, (_blocked_text(answer), intended.proof)))
            self._context.append(AdvanceAnswered("blocked", text, token))
        else:
            self._context.append(AdvanceAnswered("advanced", ""))
            await self._context.report("working")

    async def _call_model(self) -> None:
        context, progress = self._context, self._context.record.progress
        step = progress.step
        assert step is not None, "a conversation is about a step"
        specs = tool_specs((name for name in step.tools if name in TOOLS), self._tools())
        note_specs = await context.resources.client.note_specs()
        specs += tuple(spec for spec in note_specs if spec.name in step.tools)
        try:
            model = await context.resources.shelf.model(step.model)
        except ModelUnavailable as unavailable:
            raise Standstill("credentials", f"{unavailable} {unavailable.hint}") from unavailable
        self._make_room(context.settings.context_tokens or model.port.context_tokens)
        request = ModelRequest(
            step.model,
            step.system,
            specs + own_tool_specs(step.tools),
            context.record.progress.messages,
            context.settings.output_tokens,
        )
        started = time.monotonic()

        def on_wait(failure: ModelFailure, seconds: float) -> None:
            context.append(ModelFailed(failure.kind, str(failure), wait_ms=int(seconds * 1_000)))

        try:
            answer = await answer_with_retries(
                _JournaledModel(model.port, context),
                request,
                ignore_text,
                bucket=model.pause,
                on_wait=on_wait,
            )
        except ModelFailure as failure:
            context.append(ModelFailed(failure.kind, str(failure), ms=_ms_since(started)))
            chars = conversation_chars(request.messages)
            if failure.kind == "context_too_long" and self._compact(chars // 2):
                return
            context.resources.shelf.forget(step.model)  # its key may be another one next time
            reason = _PARK_REASONS.get(failure.kind, "failed")
            wait = failure.retry_after_seconds or 0
            if reason != "provider" or not 0 < wait <= RESET_SECONDS_MAX:
                raise Standstill(reason, str(failure)) from failure
            resume_ms = context.resources.clock.now_ms() + int(wait * 1_000)
            at = datetime.fromtimestamp(resume_ms / 1_000, UTC)
            detail = f"{failure} The work continues by itself after {at:%Y-%m-%d %H:%M} UTC."
            raise Standstill(reason, detail, resume_ms=resume_ms) from failure
        usage = context.settings.price(step.model, answer.usage)
        context.append(ModelAnswered(answer.message, answer.stop, usage, _ms_since(started)))

    def _make_room(self, context_tokens: int) -> None:
        """Shorten a conversation that comes near the length which the model can read."""
        step, messages = self._context.record.progress.step, self._context.record.progress.messages
        assert step is not None, "a conversation is about a step"
        tokens_max = context_tokens - self._context.settings.output_tokens
        chars_max = max(0, tokens_max * CHARS_PER_TOKEN_MIN - len(step.system))
        if conversation_chars(messages) > chars_max:
            self._compact(int(chars_max * SHARE_AFTER_COMPACTION))

    def _compact(self, chars_max: int) -> bool:
        """Shorten the conversation; False if it cannot be made shorter."""
        messages = self._context.record.progress.messages
        if compact(messages, chars_max) == messages:
            return False
        self._context.append(ConversationCompacted(chars_max))
        return True

    async def _require_sense(self) -> None:
        """Raise `Standstill` if the model goes in circles, or tell the user; each sign once."""
        context, progress = self._context, self._context.record.progress
        sign = find_sign(progress, context.sheet.state.limits)
        if sign is None or sign in progress.signs:
            return
        goes_on = sign in ADVISORY or context.settings.on_stuck == "notify"
        why = SIGN_TEXTS[sign]
        if sign == "no call":
            why += f": “{redact_secrets(last_words(progress))[:SAID_CHARS]}”"
        if goes_on:
            await context.report("working", reason="stuck", detail=why)
        context.append(JournalNote("stuck", sign))
        if not goes_on:
            raise Standstill("stuck", why)

    async def _run_tool(self, call: ToolRequest, *, was_started: bool) -> None:
        context, step = self._context, self._context.record.progress.step
        assert step is not None, "a tool is called in a conversation"
        # What the settings withhold by now is withheld, though the model was told of it.
        names = tuple(name for name in step.tools if name in self._tool_names())
        if call.name in OWN_TOOLS and call.name in names:
            await self._run_own_tool(call)
            return
        if call.name in NOTE_TOOLS and call.name in names:
            await self._run_note_tool(call, was_started=was_started)
            return
        if was_started:
            context.append(_error_reply(call, INTERRUPTED))
            return
        offered = {name: tool for name, tool in self._tools().items() if name in names}
        checked = check_call(call.name, call.arguments, offered, names)
        if isinstance(checked, MalformedCall):
            context.append(self._malformed_reply(call, checked.message))
            return
        tool, arguments = checked
        if objection := await find_objection(context, call, tool.kind):
            context.append(_error_reply(call, objection))
            return
        context.append(ToolStarted(call.id, call.name))
        started = time.monotonic()
        try:
            place = context.step_workplace.in_repository(repository_of(arguments))
            outcome = await tool.run(place, arguments)
        except OSError as error:
            context.append(_error_reply(call, f"{call.name} could not be run: {error}"))
            return
        text = context.resources.shelf.hide_keys(outcome.text)
        result = ToolReply(call.id, call.name, text, outcome.is_error)
        context.append(ToolEnded(result, _ms_since(started), outcome.exit_code))
        if tool.kind == "shell" and outcome.exit_code is not None:
            record_shell_command(context, call, outcome.exit_code)

    async def _run_note_tool(self, call: ToolRequest, *, was_started: bool) -> None:
        """Call a note tool of the server, on the notes of the user's checkout.

        A call names itself, so the server carries it out once: after a crash it is sent again.
        """
        context, client = self._context, self._context.resources.client
        try:
            sent = msgspec.json.decode(call.arguments or "{}", type=dict[str, Json])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            text = f"The arguments of {call.name} cannot be used: {error}. Nothing was done."
            context.append(self._malformed_reply(call, text))
            return
        if objection := await find_objection(context, call, "own"):
            context.append(_error_reply(call, objection))
            return
        if not was_started:
            context.append(ToolStarted(call.id, call.name))
        sent.pop("workspacePath", None)
        if call.name in CHANGING_NOTE_TOOLS:
            sent["requestId"] = f"{context.session}:{context.name_call(call.id)}"
        started = time.monotonic()
        try:
            _, text, is_error = await client.call_tool(call.name, sent, context.session)
        except CallRefused as refused:
            text, is_error = str(refused), True
        output = BoundedOutput()
        output.add(text.encode(errors="replace"))
        shown = output.show(context.step_workplace.spill)
        result = ToolReply(call.id, call.name, shown, is_error)
        context.append(ToolEnded(result, _ms_since(started)))

    async def _run_own_tool(self, call: ToolRequest) -> None:
        # What is submitted is stored and shown; what other tools get is executed as it was written.
        context, parsed = self._context, parse_own_call(call.name, redact_secrets(call.arguments))
        match parsed:
            case CompleteStep():
                arguments = msgspec.json.encode(advance_arguments(parsed)).decode()
                proof = await self._prove_step(call)
                token = context.record.progress.token
                context.append(AdvanceIntended(call.id, token, arguments, proof))
            case ReportIssue():
                text = f"{parsed.severity}: {parsed.summary}"
                context.append(JournalNote("issue", text, call=call.id))
                context.append(ToolEnded(ToolReply(call.id, call.name, "Recorded.")))
            case AskUser():
                self._ask_user(call, parsed.question)
            case SpawnAgent():
                await run_child(context, call, parsed, self._run_session)
            case _:
                context.append(self._malformed_reply(call, str(parsed)))

    async def _prove_step(self, call: ToolRequest) -> str:
        """Run the command that proves the step, if one does, and return how it ended.

        What the model says about it does not count. A run as its last call is not repeated.
        """
        context, step = self._context, self._context.record.progress.step
        assert step is not None, "a tool is called in a conversation"
        if not step.proof:
            return ""
        arguments = msgspec.json.encode({"command": step.proof}).decode()
        command = ToolRequest(call.id, "Bash", arguments)
        history = context.record.progress.history
        if history and history[-1][0] == f"Bash {arguments}":
            return ""
        if objection := await find_objection(context, command, "shell"):
            return f"`{step.proof}`, which proves this step, was not run: {objection}"
        wanted = ProofCommand(step.proof, "workflow")
        seconds = context.settings.proof_minutes * 60
        try:
            proof = await run_in_worktree(context.step_workplace, wanted, seconds=seconds)
        except OSError as error:
            return f"`{step.proof}`, which proves this step, could not be run: {error}"
        context.append(ProofEnded(proof))
        record_shell_command(context, command, 1 if proof.exit_code is None else proof.exit_code)
        return f"Interlock ran `{proof.command}`, and it {proof.end}:\n{proof.output}"

    def _malformed_reply(self, call: ToolRequest, text: str) -> ToolEnded:
        is_cut = self._context.record.progress.stop == "length"
        result = ToolReply(
            call.id, call.name, f"{text} {CUT_CALL}" if is_cut else text, is_error=True
        )
        return ToolEnded(result, is_malformed=True)

    def _ask_user(self, call: ToolRequest, question: str) -> None:
        """Park with the question; once it was answered or the work resumed, tell the model."""
        context = self._context
        name = context.name_call(call.id)
        if name not in context.record.asked:
            context.pass_on_steers()  # what was said before the question does not answer it
        context.require_answer(name, question)
        text = ANSWERED if context.pass_on_steers() else NOT_ANSWERED
        context.append(ToolEnded(ToolReply(call.id, call.name, text)))


class _JournaledModel:
    """A model whose calls are written down before they are made."""

    def __init__(self, port: ModelPort, context: SessionContext) -> None:
        self._port, self._context = port, context
        self.context_tokens = port.context_tokens

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        content = msgspec.json.encode(request)
        digest = blob_ref(content).partition(":")[2][:16]
        self._context.append(ModelCalled(digest, len(content) // TOKEN_CHARS))
        return await self._port.answer(request, on_text)

    async def close(self) -> None:
        await asyncio.sleep(0)


def ignore_text(_: str) -> None:
    """Ignore the pieces of an answer: nobody is shown half of one."""


def last_words(progress: WorkProgress) -> str:
    """Return the text of the model's last answer."""
    answers = [one for one in progress.messages if isinstance(one, ModelMessage)]
    return answers[-1].text.strip() if answers else ""


def _error_reply(call: ToolRequest, text: str) -> ToolEnded:
    return ToolEnded(ToolReply(call.id, call.name, text, is_error=True))


def proof_command(answer: Answer) -> str:
    """Return the command that proves the pending step; empty if none does."""
    output = answer.next_call.params.get("output") if answer.next_call else None
    artifacts = output.get("artifacts") if isinstance(output, dict) else None
    for artifact in artifacts if isinstance(artifacts, list) else []:
        if isinstance(artifact, dict) and artifact.get("kind") == "verification":
            return str(artifact.get("command", ""))
    return ""


def _blocked_text(answer: dict[str, Any]) -> str:
    blocked, form = answer["blocked"], {**answer["nextCall"]["params"]}
    form.pop("continueToken", None)
    lines = [
        f"- {one['message']} ({one['pointer']}). {one['suggestion']}" for one in blocked["blockers"]
    ]
    return "\n".join(
        (
            "The step was not accepted yet. What is missing:",
            *lines,
            f"Send it in this form: {msgspec.json.encode(form).decode()}",
            f"{pluralise(blocked['attemptsLeft'], 'attempt')} left.",
        )
    )


def _ms_since(started: float) -> int:
    return int((time.monotonic() - started) * 1_000)


async def run_child(
    context: SessionContext, call: ToolRequest, wanted: SpawnAgent, run_session: RunSession
) -> None:
    """Run another model through a workflow in the worktree of the requesting model.

    The child works inside its parent's turn and slot, so it can neither deadlock the queue nor
    clobber its parent. It is named after the tool call: begun twice, it is the same child.
    """
    if context.record.progress.started != call.id:
        if context.record.spawned >= CHILDREN_MAX:
            text = f"No more than {CHILDREN_MAX} agents are spawned by one. Do it yourself."
            context.append(ToolEnded(ToolReply(call.id, call.name, text, is_error=True)))
            return
        context.append(ToolStarted(call.id, call.name))
    request = ChildRequest(
        WorkflowId(wanted.workflow),
        wanted.goal,
        context.name_call(call.id),
        _limits_left(context.sheet.state.limits, context.spent),
        str(context.worktree),
        context.branch,
        context.step_workplace.level == "read-only",
    )
    client = context.resources.client
    try:
        child = await client.spawn(context.session, request)
        state = await client.report(child, UnattendedMoved("working", Spent()))
    except CallRefused as refused:
        text = f"No agent was spawned: {refused}"
        context.append(ToolEnded(ToolReply(call.id, call.name, text, is_error=True)))
        return
    spawned = SessionContext(context.resources, WorkSheet(child, state, ()), context)
    outcome = await run_session(spawned)
    if outcome is None:
        context.require_no_shutdown()  # it is set aside too, and resumes with its parent
    ended, notes = spawned.sheet.state, spawned.record.handed.notes
    why = f": {ended.detail}" if ended.detail else ""
    text = f"The agent has ended ({outcome or 'stopped'}{why}). Its notes:\n\n{notes}"
    result = ToolReply(call.id, call.name, text, outcome != "success")
    context.append(ToolEnded(result, spent=spawned.spent))


def _limits_left(limits: Limits, spent: Spent) -> Limits:
    """The limits of a child: the rest of its parent's limits."""
    cost = limits.cost_micros
    if cost is not None and spent.usage.cost_micros is not None:
        cost = max(0, cost - spent.usage.cost_micros)
    return Limits(
        max(1, limits.turns - spent.turns),
        max(1, limits.minutes - spent.work_ms // 60_000),
        max(1, limits.tokens - spent.usage.tokens),
        cost,
    )
