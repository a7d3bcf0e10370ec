"""Changes of notes, told to the pages that show them, by whatever they were made.

What agents write through Interlock is in the index at once, and asking that costs next to nothing.
What is written by hand or by git is known to the kernel, and then the files are looked at, which
costs the more the more there are: so that is done as often as a share of the processor allows.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.app.explanation import Explanation
from interlock.app.failures import StoreFailure
from interlock.app.notes import polling
from interlock.app.notes.projects import known_project
from interlock.server.http_refusals import Refused, told
from interlock.server.listeners import Listener, Listeners, message
from interlock.server.worker import Worker

LOOK_SECONDS = 0.5
FILES_SECONDS_MIN = 0.5
REST = 150
"""For a second of looking at files, so many seconds are let pass: two thirds of a per cent."""


class _Listener(Listener):
    def __init__(self, workspace: Path, seen: str) -> None:
        super().__init__()
        self.workspace = workspace
        self.seen = seen
        """The state that it knew when it came, or was told of then."""

    def hear(self, state: str) -> None:
        if state != self.seen:
            self.seen = state
            self.woken.set()


class NotesLive:
    def __init__(self, reader: Worker) -> None:
        self._reader = reader
        self._listeners = Listeners[_Listener]()
        self._files_due: dict[Path, float] = {}
        """When the files of a project are looked at again."""
        self._looking: asyncio.Task[None] | None = None

    async def stream(self, request: Request) -> Response:
        """`in` is a project; `since` (or the header that browsers send again) what was seen."""
        asked = request.query_params.get("in", "")
        known = await self._reader.run(lambda app: known_project(app, asked))
        if isinstance(known, Explanation):
            return told(Refused(known.code, known.error, known.hint))
        if request.method == "HEAD":  # whoever asks so waits for the end, and there is none
            return Response(media_type="text/event-stream")
        since = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return StreamingResponse(
            self._told(_Listener(known, since)),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def end(self) -> None:
        """Every stream ends, so that the server can."""
        self._listeners.end()

    async def _told(self, listener: _Listener) -> AsyncIterator[bytes]:
        with self._listeners.joined(listener):
            self._look_from_now_on()
            state = await self._state(listener.workspace)
            listener.seen = listener.seen or state  # whoever has not looked has missed nothing
            listener.hear(state or listener.seen)
            yield b": here\n\n"
            async for news in self._listeners.told(listener, lambda: message(listener.seen)):
                yield news

    def _look_from_now_on(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """Look at the notes that somebody looks at."""
        while self._listeners and not self._listeners.is_over:
            await asyncio.sleep(LOOK_SECONDS)
            watched = {listener.workspace for listener in self._listeners}
            # What a page shows was looked at when it was made.
            soon = time.monotonic() + FILES_SECONDS_MIN
            self._files_due = {one: self._files_due.get(one, soon) for one in watched}
            for workspace in watched:
                state = await self._state(workspace)
                for listener in self._listeners:
                    if state and listener.workspace == workspace:
                        listener.hear(state)

    async def _state(self, workspace: Path) -> str:
        """Empty where nobody can say just now: whoever listens is told when somebody can."""
        try:
            if time.monotonic() < self._files_due.get(workspace, float("inf")):
                return await self._reader.run(lambda app: polling.notes_state(app, workspace))
            seen = await self._reader.run(lambda app: polling.poll_files(app, workspace))
        except (StoreFailure, OSError):  # of one project: the others are told all the same
            return ""
        pause = max(FILES_SECONDS_MIN, REST * seen.cpu_seconds * len(self._files_due))
        self._files_due[workspace] = time.monotonic() + (0 if seen.is_behind else pause)
        return seen.state
