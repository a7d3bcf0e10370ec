"""A driver that is killed (kill -9) at one of its durable points, counted from its start.

`python -m tests.driver.killed_driver NUMBER [VICTIM]`: the points are the moments before and after
each entry of the journal, and before and after each call to the server. With 0 it is never killed,
and counts them to `points` in the data home. VICTIM: a process that is killed instead; -1: nobody
is, but the driver stands still there as long as there is a file `at-point`.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.app.unattended.driver_files import DriverJournal
from interlock.driver.process import serve_driver
from interlock.driver.server_client import ServerClient


class KillPoints:
    def __init__(self, home: Path, number: int, victim: int) -> None:
        self._home, self._number, self._victim, self._passed = home, number, victim, 0

    def reach(self) -> None:
        self._passed += 1
        (self._home / "points").write_text(str(self._passed))
        if self._passed != self._number:
            return
        if self._victim >= 0:
            os.kill(self._victim or os.getpid(), signal.SIGKILL)
            return
        mark = self._home / "at-point"
        mark.touch()
        while mark.exists():
            time.sleep(0.02)

    def surround(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def surrounded(*arguments: Any, **named: Any) -> Any:
            self.reach()
            result = work(*arguments, **named)
            self.reach()
            return result

        return surrounded


def main() -> None:
    home = Path(os.environ["INTERLOCK_HOME"])
    victim = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    points = KillPoints(home, int(sys.argv[1]), victim)
    DriverJournal.append = points.surround(DriverJournal.append)
    call_rest = ServerClient.call_rest

    def surrounded_rest(self: ServerClient, path: str, body: Any, answer: Any) -> Any:
        counted = call_rest if "check-in" in path else points.surround(call_rest)
        return counted(self, path, body, answer)

    ServerClient.call_rest = surrounded_rest
    ServerClient.call_mcp = points.surround(ServerClient.call_mcp)
    raise SystemExit(serve_driver(home))


if __name__ == "__main__":
    main()
