"""Run a tool's process beside its supervisor, and leave nothing of it behind.

The driver holds one end of a pipe, the supervisor the other: closing it ends the tool with all that
it started. So a time that is up, a call that is cancelled and a driver that is killed have the same
end. That the supervisor has ended means that everything has.
"""

import asyncio
import importlib.util
import marshal
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

import interlock
from interlock.driver.tools.tool import Workplace
from interlock.sandbox.command import OFF
from interlock.sandbox.worktree import WorktreeUnsafe, guarded_files, worktree_boundary

ERRORS_BYTES_MAX = 2_000
_END_SECONDS_MAX, _DRAIN_SECONDS_MAX = 5.0, 1.0
_READ_BYTES = 65_536
_PACKAGES = str(Path(interlock.__file__).parents[1])
_START = (
    "import sys; sys.path.append(sys.argv[1]);"
    " from interlock.driver.tools import supervisor; supervisor.main(*map(int, sys.argv[2:]))"
)
_AUTHOR, _ADDRESS = "Interlock", "interlock@localhost"


async def run_process(
    workplace: Workplace,
    words: tuple[str, ...],
    *,
    seconds: float,
    on_output: Callable[[bytes], None],
    file_call: Mapping[str, Any] | None = None,
) -> int | None:
    """Run words, or a call of a tool for files; the exit code, or None if its time was up.

    A process that was ended by a signal has the exit code of a shell for it: 128 and its number.

    Raises:
        OSError: it cannot be started, or not in a sandbox.
    """
    order = _write_order(workplace, words, file_call)
    (life_end, lifeline), (output, output_end) = os.pipe(), os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _START, _PACKAGES, str(life_end)),
            stdin=order,
            stdout=output_end,
            stderr=output_end,
            pass_fds=(life_end,),
            cwd=workplace.worktree,
            env=tool_environment(workplace),
            start_new_session=True,
        )
    except BaseException:
        os.close(lifeline)
        os.close(output)
        raise
    finally:
        for descriptor in (order, life_end, output_end):
            os.close(descriptor)
    end = asyncio.ensure_future(process.wait())
    drain = _drain(output, on_output)
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait({end})
    except TimeoutError:
        return None
    finally:
        os.close(lifeline)
        try:
            await _wait_out(process, end, drain)
        finally:
            asyncio.get_running_loop().remove_reader(output)
            os.close(output)
    return end.result()


class PipedProcess:
    """A process that lasts and is spoken with. Not confined, but ended like the others."""

    def __init__(
        self, process: asyncio.subprocess.Process, lifeline: int, output: int, errors: int
    ) -> None:
        assert process.stdin is not None, "it was asked for"
        self._process, self._lifeline, self._pipes = process, lifeline, (output, errors)
        self._stdin = process.stdin
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self.errors = b""
        """The end of what it has written to its standard error."""
        self._end = asyncio.ensure_future(process.wait())
        self._drain = _drain(output, self._chunks.put_nowait)
        self._drain.add_done_callback(lambda _: self._chunks.put_nowait(b""))
        _drain(errors, self._keep_errors)

    def _keep_errors(self, data: bytes) -> None:
        self.errors = (self.errors + data)[-ERRORS_BYTES_MAX:]

    def write(self, line: bytes) -> None:
        self._stdin.write(line)

    async def read(self, seconds: float) -> bytes | None:
        """Return its next output; empty if that was all, None if there is nothing in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._chunks.get()
        except TimeoutError:
            return None

    async def end(self) -> None:
        """End it with all that it has started, however often this is cancelled."""
        os.close(self._lifeline)
        try:
            await _wait_out(self._process, self._end, self._drain)
        finally:
            self._stdin.close()
            for pipe in self._pipes:
                asyncio.get_running_loop().remove_reader(pipe)
                os.close(pipe)


async def start_piped(
    workplace: Workplace, words: tuple[str, ...], environment: Mapping[str, str]
) -> PipedProcess:
    """Raises `OSError` if it cannot be started."""
    unconfined = msgspec.structs.replace(workplace, level=OFF)
    order = _write_order(unconfined, words, None)
    (life_end, lifeline), (output, output_end) = os.pipe(), os.pipe()
    errors, errors_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _START, _PACKAGES, str(life_end), str(order)),
            stdin=asyncio.subprocess.PIPE,
            stdout=output_end,
            stderr=errors_end,
            pass_fds=(life_end, order),
            cwd=workplace.worktree,
            env=environment,
            start_new_session=True,
        )
    except BaseException:
        for descriptor in (lifeline, output, errors):
            os.close(descriptor)
        raise
    finally:
        for descriptor in (order, life_end, output_end, errors_end):
            os.close(descriptor)
    return PipedProcess(process, lifeline, output, errors)


def tool_environment(workplace: Workplace) -> dict[str, str]:
    """The whole environment of a tool: nothing of the driver's own is in it but where tools are."""
    people = {f"GIT_{role}_NAME": _AUTHOR for role in ("AUTHOR", "COMMITTER")}
    people |= {f"GIT_{role}_EMAIL": _ADDRESS for role in ("AUTHOR", "COMMITTER")}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": f"{workplace.scratch}/home",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        **people,
        **workplace.variables,
    }


def _write_order(
    workplace: Workplace, words: tuple[str, ...], file_call: Mapping[str, Any] | None
) -> int:
    """A descriptor from which the supervisor reads what to do."""
    order: dict[str, Any] = {
        "words": list(words),
        "level": workplace.level,
        "scratch": str(workplace.scratch),
        **dict.fromkeys(("hidden", "writable", "readable", "socket_families"), ()),
        "guarded_files": {},
        "file_call": {**file_call, "packages": _package_directory("re2")} if file_call else {},
    }
    if workplace.level == OFF:
        for root in workplace.roots:
            order["guarded_files"] |= guarded_files(root, workplace.branch)
    else:
        try:
            boundary = worktree_boundary(
                *workplace.roots,
                scratch=str(workplace.scratch),
                hidden=str(workplace.home.resolve()),
                has_network=workplace.has_network,
                is_written=workplace.level == "workspace",
                branch=workplace.branch,
            )
        except WorktreeUnsafe as unsafe:
            raise PermissionError(str(unsafe)) from None
        order |= {
            "hidden": boundary.hidden,
            "writable": boundary.writable,
            "readable": boundary.readable,
            "socket_families": boundary.socket_families,
            "guarded_files": boundary.guarded_files,
        }
    descriptor = os.memfd_create("order", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(marshal.dumps(order))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _package_directory(name: str) -> str:
    """Where an installed package is, for an interpreter that knows of none."""
    found = importlib.util.find_spec(name)
    assert found is not None and found.origin, "it is one of our dependencies"  # noqa: PT018
    return str(Path(found.origin).parents[1])


def _drain(output: int, on_output: Callable[[bytes], None]) -> "asyncio.Future[None]":
    """Read the output as it comes. The future is done when nobody is left who could write."""
    loop = asyncio.get_running_loop()
    drain: asyncio.Future[None] = loop.create_future()
    os.set_blocking(output, False)

    def read() -> None:
        try:
            data = os.read(output, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            on_output(data)
        else:
            loop.remove_reader(output)
            drain.set_result(None)

    loop.add_reader(output, read)
    return drain


async def _wait_out(
    process: asyncio.subprocess.Process, end: "asyncio.Future[int]", drain: "asyncio.Future[None]"
) -> None:
    """Wait until all has ended and what it wrote was read, however often this is cancelled."""
    cancellation = await _wait_for(end, _END_SECONDS_MAX)
    if not end.done():
        process.kill()
        cancellation = await _wait_for(end, _END_SECONDS_MAX) or cancellation
    # Whoever may still hold the output is not waited for.
    cancellation = await _wait_for(drain, _DRAIN_SECONDS_MAX) or cancellation
    if cancellation:
        raise cancellation


async def _wait_for(future: "asyncio.Future[Any]", seconds: float) -> asyncio.CancelledError | None:
    loop = asyncio.get_running_loop()
    deadline, cancellation = loop.time() + seconds, None
    while not future.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait({future}, timeout=left)
        except asyncio.CancelledError as error:
            cancellation = error
    return cancellation
