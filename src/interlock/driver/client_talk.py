"""The talk with one process of a client: what it is told, and what it says, written down.

A client says only at its end what its turns have cost. It is therefore interrupted rather than
ended, if there is time, and what a killed one has not told is charged by estimate.
"""

import re
import time
from contextlib import suppress

import msgspec

from interlock.agents.clients.claude_code_headless import ClaudeCodeHeadless
from interlock.agents.clients.headless import (
    ClientEnded,
    ClientEvent,
    ClientReady,
    ClientRetry,
    ClientToolResults,
    ClientTurn,
    LineSplitter,
)
from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.failures import LeaseLost, StoreFailure
from interlock.core.session.secrets import redact_secrets
from interlock.core.unattended.conversation import (
    ModelMessage,
    SpokenPart,
    ToolReply,
    ToolRequest,
)
from interlock.core.unattended.journal import (
    ClientReported,
    ModelAnswered,
    ModelFailed,
    ToolEnded,
    ToolStarted,
)
from interlock.core.unattended.order import limit_shares
from interlock.driver.session_context import PauseWanted, SessionContext
from interlock.driver.tools.processes import PipedProcess
from interlock.driver.work_record import ADVANCING_TOOL

LOOK_SECONDS = 0.3
INTERRUPT_SECONDS = 4.0
"""How long a client that is interrupted has to say what it has cost."""
_TOKEN = re.compile(r"\bct1[a-z0-9]{40,}")


class ClientStale(Exception):
    """The client has lost our server, and must be started again."""


class ClientTalk:
    def __init__(
        self,
        context: SessionContext,
        headless: ClaudeCodeHeadless,
        process: PipedProcess,
        conversation: str,
        server: RunningServer,
    ) -> None:
        self._context, self._headless, self._process = context, headless, process
        self._conversation, self._server = conversation, server
        self._lap_began = time.monotonic()
        self._stop: Exception | None = None
        self._deadline = 0.0
        self._has_told_cost = False

    async def run(self, prompt: str) -> ClientEnded | None:
        """Let it work until it has answered; None if it has ended by itself without.

        Raises:
            Standstill, PauseWanted, ClientStale: it was interrupted for that. It still runs.
        """
        lines = LineSplitter()
        self._process.write(self._headless.message_line(prompt))
        while True:
            chunk = await self._process.read(LOOK_SECONDS)
            for line in lines.feed(chunk or b""):
                for event in self._headless.read_line(line):
                    await self._record(event)
                    if isinstance(event, ClientEnded):
                        return self._raise_or_return(event)
            if chunk == b"":
                return self._raise_or_return(None)
            self._look_up()

    async def close(self) -> None:
        """End it with all that it has started."""
        try:
            await self._process.end()
        finally:
            if not self._has_told_cost:
                with suppress(StoreFailure, LeaseLost):  # then the next driver does it
                    self._report_cost(None)

    def _raise_or_return(self, ended: ClientEnded | None) -> ClientEnded | None:
        if self._stop is not None:
            raise self._stop
        return ended

    def _look_up(self) -> None:
        """See what the user wants now, and whether a limit is reached meanwhile."""
        if self._stop is not None:
            if time.monotonic() > self._deadline:
                raise self._stop
            return
        self._stop = self._reason_to_stop()
        if self._stop is not None:
            self._deadline = time.monotonic() + INTERRUPT_SECONDS
            self._process.write(self._headless.interrupt_line())
            return
        for text in self._context.pass_on_steers():
            self._process.write(self._headless.message_line(text))

    def _reason_to_stop(self) -> Exception | None:
        context = self._context
        try:
            context.require_no_pause()
        except PauseWanted as wanted:
            return wanted
        server = find_server(context.resources.home)
        if isinstance(server, RunningServer) and server.url != self._server.url:
            return ClientStale("our server is elsewhere now")
        limits, spent = context.sheet.state.limits, context.spent
        work_ms = spent.work_ms + _ms_since(self._lap_began)
        shares = limit_shares(limits, msgspec.structs.replace(spent, work_ms=work_ms))
        if shares["minutes"] >= 1:
            return context.limit_reached("minutes")
        # The client itself minds the others.
        return context.limit_reached("tokens") if shares["tokens"] >= 1 else None

    async def _record(self, event: ClientEvent) -> None:
        match event:
            case ClientReady():
                if not event.is_connected and self._stop is None:
                    raise ClientStale("it does not reach our server")
            case ClientTurn():
                self._record_turn(event)
            case ClientToolResults():
                await self._record_results(event.message.results)
            case ClientRetry():
                text = f"the provider answered {event.status or 'nothing'}"
                self._context.append(ModelFailed("provider", text, event.wait_ms, self._lap()))
            case ClientEnded():
                self._report_cost(event.usage.cost_micros, event.spent_micros)

    def _record_turn(self, turn: ClientTurn) -> None:
        message = _without_secrets(turn.message)
        if not turn.usage.tokens:  # the client's own words: why the model has not answered
            self._context.append(ModelFailed("client", message.text, ms=self._lap()))
            return
        stop = "tools" if message.calls else "end"
        self._context.append(ModelAnswered(message, stop, turn.usage, self._lap()))
        for call in message.calls:
            self._context.append(ToolStarted(call.id, call.name))

    async def _record_results(self, results: tuple[ToolReply, ...]) -> None:
        context, has_advanced = self._context, False
        for result in results:
            if not any(call.id == result.call for call in context.record.progress.calls):
                continue  # of a turn that is over: what it says is known
            redacted = msgspec.structs.replace(result, text=_hide(result.text))
            context.append(ToolEnded(redacted, self._lap()))
            has_advanced |= result.name.endswith(ADVANCING_TOOL) and not result.is_error
        if has_advanced and not context.record.progress.calls:
            await self._follow_run()

    async def _follow_run(self) -> None:
        """Note which step the client was given."""
        context, step = self._context, self._context.record.progress.step
        answer = await context.resources.client.show_step(context.session, context.worktree)
        assert step is not None, "a client is started with a step"
        if answer.pending is None or step.token == answer.continue_token:
            return
        await context.report("working")
        context.begin_step(
            answer,
            system=step.system,
            message=answer.pending.prompt,
            model=step.model,
            tools=step.tools,
            level=context.level,
        )

    def _report_cost(self, cost_micros: int | None, total_micros: int | None = None) -> None:
        self._has_told_cost = True
        last = self._context.record.progress.client
        total = (last.total_micros if last else 0) if total_micros is None else total_micros
        entry = ClientReported(self._conversation, cost_micros, total, self._lap())
        self._context.append(entry)

    def _lap(self) -> int:
        """The time since the last entry, so that all entries together are the time of the work."""
        ms, self._lap_began = _ms_since(self._lap_began), time.monotonic()
        return ms


def _without_secrets(message: ModelMessage) -> ModelMessage:
    """Return the answer as it is kept: the client executes its calls itself."""
    change = msgspec.structs.replace
    return ModelMessage(
        tuple(
            change(part, text=_hide(part.text))
            if isinstance(part, SpokenPart)
            else change(part, arguments=_hide(part.arguments))
            if isinstance(part, ToolRequest)
            else part
            for part in message.parts
        )
    )


def _hide(text: str) -> str:
    """A text as it is kept: without secrets, and without the tokens of the run."""
    return _TOKEN.sub("ct1…", redact_secrets(text))


def _ms_since(began: float) -> int:
    return int((time.monotonic() - began) * 1_000)
