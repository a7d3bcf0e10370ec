"""Streams that report changes of notes to the pages that show them, whoever made the changes.

What agents write through Interlock is in the index at once, and asking that costs next to nothing.
What is written by hand or by git is found by looking at the files, which costs more the more there
are: so that is done only as often as a fixed share of the processor allows.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.notes import polling
from interlock.app.notes.all_projects import PROJECTS_MAX, known_project
from interlock.app.runs.waiting import count_waiting
from interlock.core.explanation import Explanation
from interlock.server.http_refusals import HttpRefusal, refusal_response
from interlock.server.listeners import Listener, Listeners
from interlock.server.worker import Worker

POLL_SECONDS = 0.5
FILE_SCAN_SECONDS_MIN = 0.5
PAUSE_FACTOR = 150
"""Seconds of pause for each second of looking at files: two thirds of a per cent."""


class _NotesListener(Listener):
    def __init__(self, workspaces: tuple[Path, ...], known_state: str) -> None:
        super().__init__()
        self.workspaces = workspaces
        self.known_state = known_state
        """The state of the notes that the listener has last been told of."""

    def notify(self, state: str) -> None:
        if state != self.known_state:
            self.known_state = state
            self.has_news = True
            self.wake_event.set()


class LiveNoteChanges:
    def __init__(self, reader: Worker) -> None:
        self._reader = reader
        self._listeners = Listeners[_NotesListener]()
        self._next_file_scan: dict[Path, float] = {}
        """The time at which the files of each project are read again."""
        self._poll_task: asyncio.Task[None] | None = None
        self._waiting_count = 0
        self._marker = -1
        """The state of the store when that was counted."""

    async def stream(self, request: Request) -> Response:
        """Answer with a stream for the projects `in`.

        `since` or `Last-Event-ID` is the known state.
        """
        directories = request.query_params.getlist("in")[:PROJECTS_MAX] or [""]
        projects = await self._reader.run(
            lambda app: [known_project(app, directory) for directory in directories]
        )
        known = tuple(project for project in projects if isinstance(project, Path))
        for project in projects:
            if isinstance(project, Explanation):
                return refusal_response(HttpRefusal(project.code, project.error, project.hint))
        if request.method == "HEAD":  # a client waits for its end, and a stream has none
            return Response(media_type="text/event-stream")
        since = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return StreamingResponse(
            self._messages(_NotesListener(known, since)),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def end(self) -> None:
        """End every stream, so that the server can end."""
        self._listeners.end()

    async def _messages(self, listener: _NotesListener) -> AsyncIterator[bytes]:
        with self._listeners.subscribe(listener):
            self._start_polling()
            states = [await self._state(workspace) for workspace in listener.workspaces]
            state = polling.combine_states(states)
            listener.known_state = (
                listener.known_state or state
            )  # a page without a state has missed nothing
            listener.notify(state or listener.known_state)
            await self._count_waiting()
            yield b": here\n\n" + self._message(listener)
            async for message in self._listeners.messages(
                listener, lambda: self._message(listener)
            ):
                yield message

    def _message(self, listener: _NotesListener) -> bytes:
        listener.wake_event.clear()
        return listener.message(listener.known_state, self._waiting_count)

    def _start_polling(self) -> None:
        if self._poll_task is None or self._poll_task.done():
            self._poll_task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        """Poll the notes of the watched projects for as long as somebody listens."""
        while self._listeners and not self._listeners.is_closed:
            await asyncio.sleep(POLL_SECONDS)
            watched = {one for listener in self._listeners for one in listener.workspaces}
            # The files were read when the page was made, so not at once.
            soon = time.monotonic() + FILE_SCAN_SECONDS_MIN
            self._next_file_scan = {
                workspace: self._next_file_scan.get(workspace, soon) for workspace in watched
            }
            states = {workspace: await self._state(workspace) for workspace in watched}
            await self._count_waiting()
            for listener in self._listeners:
                if listener.waiting_count != self._waiting_count:
                    listener.wake_event.set()
                # One that came meanwhile has been told already.
                known = [states.get(workspace, "") for workspace in listener.workspaces]
                if all(known):
                    listener.notify(polling.combine_states(known))

    async def _count_waiting(self) -> None:
        """Count what waits, if something was written since the last time."""

        def look(app: App) -> tuple[int, int]:
            marker = app.reader.change_marker()
            return marker, self._waiting_count if marker == self._marker else count_waiting(app)

        with contextlib.suppress(StoreFailure):  # it is told once the store can be read again
            self._marker, self._waiting_count = await self._reader.run(look)

    async def _state(self, workspace: Path) -> str:
        """The state of the notes; empty while it cannot be read: listeners are told once it can."""
        try:
            if time.monotonic() < self._next_file_scan.get(workspace, float("inf")):
                return await self._reader.run(lambda app: polling.notes_state(app, workspace))
            poll = await self._reader.run(lambda app: polling.poll_files(app, workspace))
        except (
            StoreFailure,
            OSError,
        ):  # only this project's: the listeners of others are still told
            return ""
        pause = max(
            FILE_SCAN_SECONDS_MIN, PAUSE_FACTOR * poll.cpu_seconds * len(self._next_file_scan)
        )
        self._next_file_scan[workspace] = time.monotonic() + (0 if poll.is_behind else pause)
        return poll.state
