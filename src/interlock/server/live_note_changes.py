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
from interlock.server.http_refusals import HttpRefusal, refusal_response
from interlock.server.listeners import Listener, Listeners, changed_message
from interlock.server.worker import Worker

POLL_SECONDS = 0.5
FILE_SCAN_SECONDS_MIN = 0.5
PAUSE_FACTOR = 150
"""For a second of looking at files, so many seconds are let pass: two thirds of a per cent."""


class _NotesListener(Listener):
    def __init__(self, workspace: Path, seen: str) -> None:
        super().__init__()
        self.workspace = workspace
        self.seen = seen
        """The state that it knew when it came, or was told of then."""

    def notify(self, state: str) -> None:
        if state != self.seen:
            self.seen = state
            self.wake_event.set()


class LiveNoteChanges:
    def __init__(self, reader: Worker) -> None:
        self._reader = reader
        self._listeners = Listeners[_NotesListener]()
        self._next_file_scan: dict[Path, float] = {}
        """When the files of a project are looked at again."""
        self._poll_task: asyncio.Task[None] | None = None

    async def stream(self, request: Request) -> Response:
        """`in` is a project; `since` (or the header that browsers send again) what was seen."""
        asked = request.query_params.get("in", "")
        known = await self._reader.run(lambda app: known_project(app, asked))
        if isinstance(known, Explanation):
            return refusal_response(HttpRefusal(known.code, known.error, known.hint))
        if request.method == "HEAD":  # whoever asks so waits for the end, and there is none
            return Response(media_type="text/event-stream")
        since = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return StreamingResponse(
            self._messages(_NotesListener(known, since)),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def end(self) -> None:
        """Every stream ends, so that the server can."""
        self._listeners.end()

    async def _messages(self, listener: _NotesListener) -> AsyncIterator[bytes]:
        with self._listeners.subscribe(listener):
            self._start_polling()
            state = await self._state(listener.workspace)
            listener.seen = listener.seen or state  # whoever has not looked has missed nothing
            listener.notify(state or listener.seen)
            yield b": here\n\n"
            async for news in self._listeners.messages(
                listener, lambda: changed_message(listener.seen)
            ):
                yield news

    def _start_polling(self) -> None:
        if self._poll_task is None or self._poll_task.done():
            self._poll_task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        """Look at the notes that somebody looks at."""
        while self._listeners and not self._listeners.is_closed:
            await asyncio.sleep(POLL_SECONDS)
            watched = {listener.workspace for listener in self._listeners}
            # What a page shows was looked at when it was made.
            soon = time.monotonic() + FILE_SCAN_SECONDS_MIN
            self._next_file_scan = {one: self._next_file_scan.get(one, soon) for one in watched}
            for workspace in watched:
                state = await self._state(workspace)
                for listener in self._listeners:
                    if state and listener.workspace == workspace:
                        listener.notify(state)

    async def _state(self, workspace: Path) -> str:
        """Empty where nobody can say just now: whoever listens is told when somebody can."""
        try:
            if time.monotonic() < self._next_file_scan.get(workspace, float("inf")):
                return await self._reader.run(lambda app: polling.notes_state(app, workspace))
            seen = await self._reader.run(lambda app: polling.poll_files(app, workspace))
        except (StoreFailure, OSError):  # of one project: the others are told all the same
            return ""
        pause = max(
            FILE_SCAN_SECONDS_MIN, PAUSE_FACTOR * seen.cpu_seconds * len(self._next_file_scan)
        )
        self._next_file_scan[workspace] = time.monotonic() + (0 if seen.is_behind else pause)
        return seen.state
