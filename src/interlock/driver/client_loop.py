"""The other way to do steps: an agent client that people have already, which works by itself.

It is told where the run stands, and submits step after step by our own server, with the tokens
that it gets there: the only runner to which they are shown. What it says is written to the journal
(`client_talk`). Whenever it has answered, the run is looked at: what it says of itself counts for
nothing. It goes on in the same conversation after a pause, a limit or a kill; an advance that was
made is not made again, because its token stands for it.
"""

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from interlock.agents.clients.claude_code_headless import TOOLS, ClaudeCodeHeadless
from interlock.agents.clients.headless import ClientEnded, ClientStart, ServerAddress
from interlock.agents.hosts.claude_code import HOST
from interlock.app.admin.access import agent_secret_file
from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.hosts.install import write_scripts
from interlock.app.hosts.install_changes import InstallFailed
from interlock.app.hosts.program import find_program
from interlock.app.unattended.driver_briefing import DriverBriefing
from interlock.app.unattended.tool_gate import let_gate_know, withdraw_conversations
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.answer import Answer
from interlock.core.unattended.conversation import ToolReply
from interlock.core.unattended.journal import INTERRUPTED, ClientReported, MessageAdded, ToolEnded
from interlock.core.unattended.order import Limits, ParkReason
from interlock.driver import prompts
from interlock.driver.client_talk import ClientStale, ClientTalk
from interlock.driver.permission import withheld_tools
from interlock.driver.session_context import SessionContext, Standstill
from interlock.driver.tools.processes import start_piped

IDLE_MAX = 2
"""How often in a row it may stop without having brought the run forward."""
RESTARTS_MAX = 5
SERVER_WAIT_SECONDS = 0.2
PROVIDER = "anthropic"
_UNKNOWN_CONVERSATION = "No conversation found"
_SIGN_IN = "/login"
_UNAUTHORISED, _RATE_LIMITED, _SERVER_ERROR = (401, 403), 429, 500


class ClientLoop:
    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._program, self._shell = "", ""
        reported = context.record.progress.client
        self._conversation = reported.conversation if reported else ""
        """The one that goes on; empty if a new one is to begin."""
        self._restarts = 0

    async def run(self) -> None:
        """Work until the run is complete.

        Raises:
            Standstill, PauseWanted: it is not complete yet.
        """
        context = self._context
        self._program = _find_client(context.settings.client_program)
        self._shell = await asyncio.to_thread(self._prepare_shell)
        try:
            await self._work()
        finally:
            with suppress(StoreFailure):  # then the gate knows somebody who is gone
                withdraw_conversations(context.resources.home, context.session)

    async def _work(self) -> None:
        context, last_token, idle = self._context, "", 0
        while True:
            await context.resources.confirm_lease()
            context.require_no_pause()
            answer = await context.resources.client.show_step(context.session, context.worktree)
            if answer.is_complete:
                return
            context.require_workable(answer)
            context.pass_on_steers()
            is_same = answer.continue_token == last_token and not context.record.progress.unheard
            idle = idle + 1 if is_same else 0
            if idle >= IDLE_MAX:
                raise Standstill("stuck", f"{HOST.title} stops, and brings the run no further")
            await context.require_limits()
            try:
                await self._converse(answer)
            except ClientStale as stale:
                self._count_restart(str(stale))
                continue  # it had no chance
            last_token = answer.continue_token

    async def _converse(self, answer: Answer) -> None:
        """Let a process of the client work until it has answered, and judge how it ended."""
        context, server = self._context, await self._find_server()
        limits, progress = context.sheet.state.limits, context.record.progress
        is_resumed, total_micros = bool(self._conversation), 0
        if progress.client and is_resumed:
            total_micros = progress.client.total_micros
        self._conversation = self._conversation or str(uuid4())
        briefing = await context.brief()
        let_gate_know(
            context.resources.home,
            context.session,
            Conversation(HOST.name, self._conversation),
            Path(context.order.repository),
            context.order.goal,
            is_read_only=context.order.is_read_only,
        )
        start = self._client_start(server, briefing.instructions, is_resumed=is_resumed)
        headless = ClaudeCodeHeadless(self._program, spent_micros=total_micros)
        prompt = self._begin(answer, total_micros, start, briefing)
        try:
            command = headless.command(start, os.environ)
            workplace = context.require_workplace()
            variables = {**command.environment, **workplace.variables}
            process = await start_piped(workplace, command.words, variables)
        except OSError as error:
            raise Standstill("failed", f"{HOST.title} cannot be started: {error}") from error
        talk = ClientTalk(context, headless, process, self._conversation, server)
        try:
            ended = await talk.run(prompt)
        finally:
            await talk.close()
        await self._judge(ended, process.errors.decode(errors="replace").strip(), limits)

    def _begin(
        self, answer: Answer, total_micros: int, start: ClientStart, briefing: DriverBriefing
    ) -> str:
        """Write down what the client is told, and return it."""
        context = self._context
        context.append(ClientReported(self._conversation, None, total_micros))
        for call in context.record.progress.calls:
            result = ToolReply(call.id, call.name, INTERRUPTED, is_error=True)
            context.append(ToolEnded(result))
        # A conversation that goes on has been briefed.
        knowledge = "" if start.is_resumed else briefing.knowledge
        message = prompts.client_message(
            answer, context.order, knowledge, is_resumed=start.is_resumed
        )
        shown = message.replace(answer.continue_token, "ct1…")
        progress = context.record.progress
        if progress.step and progress.step.token == answer.continue_token:
            context.append(MessageAdded(shown, "driver"))
        else:
            model, rules = start.model or HOST.title, start.rules
            context.begin_step(
                answer,
                system=rules,
                message=shown,
                model=model,
                tools=start.tools,
                level=context.level,
            )
        return "\n\n".join((message, *progress.unheard))

    def _client_start(
        self, server: RunningServer, instructions: str, *, is_resumed: bool
    ) -> ClientStart:
        context, home = self._context, self._context.resources.home
        limits, spent = context.sheet.state.limits, context.spent
        cost_left = None
        if limits.cost_micros is not None and spent.usage.cost_micros is not None:
            cost_left = limits.cost_micros - spent.usage.cost_micros
        lease = context.resources.client.lease
        assert lease is not None, "work begins with a lease"
        headers = {"Interlock-Lease": f"{lease.name}:{lease.epoch}"}
        provider, mark, model = context.order.model.rpartition(":")
        return ClientStart(
            home,
            context.worktree,
            self._conversation,
            limits.turns - spent.turns,
            self._tools(),
            is_resumed=is_resumed,
            branch=context.branch,
            is_gated=True,
            shell=self._shell,
            server=ServerAddress(server.url, agent_secret_file(home), headers),
            model=model if provider == PROVIDER or not mark else "",
            rules=prompts.client_rules(context.require_workplace(), instructions),
            cost_micros_max=cost_left,
        )

    def _tools(self) -> tuple[str, ...]:
        """The tools that it gets; not those of which it would have to ask somebody."""
        settings, is_read_only = self._context.settings, self._context.order.is_read_only
        withheld = withheld_tools(settings, is_read_only=is_read_only) | {*settings.ask}
        return tuple(name for name in TOOLS if name not in withheld)

    async def _judge(self, ended: ClientEnded | None, errors: str, limits: Limits) -> None:
        """Raise `Standstill` if it has not just stopped. `limits`: those it was started with."""
        context, text = self._context, (ended.text if ended else "") or errors
        if ended is None or ended.reason == "failed":
            if _UNKNOWN_CONVERSATION in f"{text}{errors}":
                self._conversation = ""
                self._count_restart(text)
                return
            status = ended.status if ended else 0
            said = text or "it said nothing"
            raise Standstill(_park_reason(status, said), f"{HOST.title} has failed: {said}")
        if ended.reason in ("turns", "money"):
            await context.require_limits()
            if limits == context.sheet.state.limits:  # it counts a little otherwise than we do
                raise context.limit_reached("turns" if ended.reason == "turns" else "cost")

    def _count_restart(self, why: str) -> None:
        self._restarts += 1
        if self._restarts > RESTARTS_MAX:
            raise Standstill("failed", f"{HOST.title} was started too often: {why}")

    async def _find_server(self) -> RunningServer:
        while True:
            server = find_server(self._context.resources.home)
            if isinstance(server, RunningServer):
                return server
            await asyncio.sleep(SERVER_WAIT_SECONDS)

    def _prepare_shell(self) -> str:
        """The script that confines commands; empty where none are."""
        context = self._context
        try:
            program, _ = find_program(context.resources.home)
            shell = write_scripts(program)
        except (InstallFailed, SettingsBroken) as failed:
            raise Standstill("failed", str(failed)) from failed
        if shell or context.level == "off":
            return "" if context.level == "off" else shell
        raise Standstill("sandbox", "no shell was found that could confine commands")


def _find_client(name: str) -> str:
    if program := shutil.which(name):
        return program
    package = HOST.packages[0]
    raise Standstill(
        "failed",
        f"`{name}` was not found where the driver looks for programs (PATH). Install {HOST.title}"
        f" with `npm install -g {package}` and sign in with it, or name its program with"
        " `client_program` under `[driver]` in config.toml; then start the driver again.",
    )


def _park_reason(status: int, text: str) -> ParkReason:
    if status in _UNAUTHORISED or _SIGN_IN in text:
        return "credentials"
    return "provider" if status == _RATE_LIMITED or status >= _SERVER_ERROR else "failed"
