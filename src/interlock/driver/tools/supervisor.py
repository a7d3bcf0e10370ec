"""The process that stands beside a tool: starts it in the sandbox, and ends whatever it leaves.

It is started for each call, on a bare interpreter, so it imports only the standard library and the
sandbox. What is to be done it reads from its standard input, of which the tool sees nothing, or
from another descriptor, if the tool is spoken with; its environment is the tool's. It lives as long
as the driver holds the other end of its lifeline: a driver that lets go, or is killed, ends the
tool and everything that the tool has started.
"""

import marshal
import os

from interlock.sandbox import confinement
from interlock.sandbox.command import EXIT_SIGNAL_BASE, run_command
from interlock.sandbox.confinement import Boundary
from interlock.sandbox.limits import UNATTENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_USUAL_UMASK = 0o022


def main(lifeline: int, source: int = 0) -> "NoReturn":
    """Do what the driver asks for, and end with the tool's exit code.

    `source`: where that is read. If it is not the standard input, the tool has that for itself.
    """
    with open(source, "rb", closefd=False) as given:
        order: dict[str, Any] = marshal.loads(given.read())  # by the same interpreter
    if source == 0:
        os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    os.umask(_USUAL_UMASK)
    if not os.path.lexists(os.environ["HOME"]):
        os.mkdir(os.environ["HOME"], 0o700)
    boundary = Boundary(
        order["scratch"],
        order["hidden"],
        writable=order["writable"],
        readable=order["readable"],
        socket_families=order["socket_families"],
        guarded_files=order["guarded_files"],
    )
    code = run_command(
        order["words"],
        boundary,
        order["level"],
        confinement.landlock_abi(),
        closing_line="",
        lifeline=lifeline,
        work=_file_work(order["file_call"]),
        most=UNATTENDED if source == 0 else None,  # the other is a client, which lasts
    )
    os._exit(code if code >= 0 else EXIT_SIGNAL_BASE - code)


def _file_work(call: "dict[str, Any]") -> "Callable[[], int] | None":
    """The work of a tool for files; what it needs is imported before it is confined."""
    if not call:
        return None
    from interlock.driver.tools import file_work  # noqa: PLC0415 (commands do without)

    return file_work.prepare(call)
