"""Having jobs run: by the executor that there is, or by one that is started for them.

A process that an agent client waits for imports nothing that jobs need. It records what it wants,
sees to it that an executor runs, and looks for the outcome in the log.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.jobs.executor_role import has_executor
from interlock.app.jobs.notify_settings import notify_settings
from interlock.core.session.announcements import Topic

WAIT_SECONDS = 40.0
LOG_BYTES_MAX = 1_000_000
_POLL_SECONDS = 0.05
_LOOK_SECONDS = 1.0

Outcome = TypeVar("Outcome")


def wait_for_outcome(
    app: App, find: Callable[[], Outcome | None], *, seconds: float = WAIT_SECONDS
) -> Outcome | None:
    """Return what `find` finds once a job has recorded it; None if that takes too long.

    An executor may end just when it is needed, so that is looked at from time to time.
    """
    if not app.waits_for_jobs:
        return find()
    deadline = time.monotonic() + seconds
    look_at, child = 0.0, None
    while (outcome := find()) is None and (now := time.monotonic()) < deadline:
        is_child_running = child is not None and child.poll() is None
        if now >= look_at and not is_child_running:
            child = None if has_executor(app) else _start_executor(app)
            look_at = now + _LOOK_SECONDS
        time.sleep(_POLL_SECONDS)
    return outcome


def start_if_notifying(app: App, topics: Iterable[Topic]) -> None:
    """Have a notification sent now, if the user wants one and nobody runs jobs."""
    try:
        settings = notify_settings(app.home)
    except SettingsBroken:
        return  # whoever runs jobs next says so
    if any(map(settings.wants, topics)) and not has_executor(app):
        _start_executor(app)


def _start_executor(app: App) -> "subprocess.Popen[bytes]":
    """Start a process that runs the jobs that there are, and ends."""
    logs = app.home / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    log = os.open(logs / "jobs.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if os.fstat(log).st_size > LOG_BYTES_MAX:
        os.ftruncate(log, 0)
    process = start_module(["interlock", "jobs", "run"], app.home, app.environment, log)
    # Nobody waits for its end, but somebody has to: a server would collect the dead.
    threading.Thread(target=process.wait, daemon=True).start()
    return process


def start_module(
    words: Sequence[str], home: Path, environment: Mapping[str, str], log: int
) -> "subprocess.Popen[bytes]":
    """Start a module of ours, with its arguments, as a process that outlives us; closes `log`."""
    try:
        return subprocess.Popen(
            # Not from where we are: that may be a project, whose modules are not to be imported.
            [sys.executable, "-P", "-m", *words],
            cwd=home,
            env={**environment, "INTERLOCK_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
