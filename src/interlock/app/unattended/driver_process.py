"""Have a driver run on this machine while a server does and there is work for one.

None is started before there is work: most people never use one. A driver that died is started
again, later each time; one that was started by hand is left to itself.
"""

import logging
import os
import subprocess
import threading
import time
from pathlib import Path

from interlock.app.context import App, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.jobs.executor_process import start_module
from interlock.app.jobs.executor_role import own_machine
from interlock.app.sessions.driver_lease import current_lease
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.orders import list_active

LOOK_SECONDS = 0.5
WAIT_MAX_SECONDS = 30.0
STOP_SECONDS = 10.0
"""The time in which a driver ends that was told to; it lets a tool end first."""
LOG_FILE, LOG_BYTES_MAX = "driver.log", 5_000_000
_LOG = logging.getLogger(__name__)


class DriverSupervisor:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = threading.Event()
        self._starts_in_row = 0
        self._not_before = 0.0

    def serve(self) -> None:
        """Look after the driver until `stop`. Whatever fails is tried again."""
        app: App | None = None
        while not self._is_stopping.wait(LOOK_SECONDS):
            try:
                app = app or open_app(self._home)
                self._look(app)
            except (StoreFailure, SettingsBroken, OSError) as failure:
                _LOG.warning("No driver can be started now: %s", failure)
                self._is_stopping.wait(LOOK_SECONDS * 10)
        if app is not None:
            app.close()

    def stop(self) -> None:
        """End the driver that was started here, and wait until its work is set aside."""
        self._is_stopping.set()
        if self._child is None or self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    @property
    def has_child(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def _look(self, app: App) -> None:
        if self.has_child:
            return
        machine = own_machine(app)
        has_work = any(
            state.status != "paused" and state.order.machine == machine
            for _, state in list_active(app)
        )
        if not has_work or not driver_settings(self._home).autostart:
            self._starts_in_row = 0
            return
        lease = current_lease(app)
        if (lease is not None and lease.left_ms > 0) or time.monotonic() < self._not_before:
            return
        self._child = _start_driver(self._home)
        self._starts_in_row += 1
        wait = min(WAIT_MAX_SECONDS, 0.5 * 2**self._starts_in_row)
        self._not_before = time.monotonic() + wait


def _start_driver(home: Path) -> "subprocess.Popen[bytes]":
    logs = home / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    path = logs / LOG_FILE
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(f"{LOG_FILE}.1"))
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return start_module(["interlock.driver"], home, os.environ, log)
