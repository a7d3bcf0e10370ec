"""The thread of the server that watches over triggers. A data home has one server."""

import logging
import threading
from pathlib import Path

from interlock.app.context import App, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.triggers.firing import TriggerLog
from interlock.app.triggers.trigger_book import TriggerBook
from interlock.app.triggers.watch import look_once

LOOK_SECONDS = 1.0
FAILURE_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


class TriggerWatch:
    def __init__(self, home: Path, book: TriggerBook) -> None:
        self._home, self._book = home, book

    def serve(self, stop: threading.Event) -> None:
        """Watch until `stop` is set. What fails is logged and tried again."""
        app: App | None = None
        log: TriggerLog | None = None
        while not stop.wait(LOOK_SECONDS):
            try:
                if not self._book.read().triggers:
                    continue
                app = app or open_app(self._home)
                log = log or TriggerLog(self._home)
                look_once(app, self._book, log)
            except (StoreFailure, SettingsBroken) as failure:
                _LOG.warning("Triggers cannot be looked at now: %s", failure)
                stop.wait(FAILURE_SECONDS)
            except Exception:  # noqa: BLE001 (one trigger must not stop all the others)
                _LOG.exception("Triggers: this is a bug in Interlock")
                stop.wait(FAILURE_SECONDS)
        for opened in (app, log):
            if opened is not None:
                opened.close()
