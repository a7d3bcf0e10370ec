"""Run a command as a client would run it, and return its outcome."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class CompletedCommand(NamedTuple):
    code: int
    out: bytes
    err: bytes


def run_with_timeout(
    command: Sequence[str], content: bytes, cwd: Path, environment: Mapping[str, str], seconds: int
) -> CompletedCommand | str:
    """The outcome of a command; or the reason for none, as words that follow its name."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    try:
        out, err = process.communicate(content, timeout=seconds)
    except subprocess.TimeoutExpired:
        # The group, because a shell's child would go on and hold our pipes open.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"has not answered within {seconds} s"
    return CompletedCommand(process.returncode, out, err)


def last_line(output: bytes) -> str:
    """The last line of the output, for a message."""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def ask_until(
    command: Sequence[str],
    content: bytes,
    mark: bytes,
    *,
    environment: Mapping[str, str],
    seconds: int,
) -> bytes:
    """The output of a command that answers while its input is open, up to a line with `mark`.

    Spaces do not count. Nothing if the line does not come.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return b""
    assert process.stdin is not None, "stdin is a pipe"
    assert process.stdout is not None, "stdout is a pipe"
    timer = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    out = b""
    try:
        process.stdin.write(content)
        process.stdin.flush()
        while mark not in out.replace(b" ", b"") and (line := process.stdout.readline()):
            out += line
    except OSError:
        return b""  # it has ended before it was asked
    finally:
        timer.cancel()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return out if mark in out.replace(b" ", b"") else b""
