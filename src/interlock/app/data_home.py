"""The data home: the directory of everything that Interlock stores for a user."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def data_home(environment: "Mapping[str, str]" = os.environ) -> "Path":
    """`INTERLOCK_HOME`, or the directory that the platform has for such data."""
    from pathlib import Path  # noqa: PLC0415 (it takes longer to import than Python to start)

    return Path(data_home_path(environment))


def data_home_path(environment: "Mapping[str, str]" = os.environ) -> str:
    """The same as text, for a process that has not imported anything yet."""
    if path := environment.get("INTERLOCK_HOME"):
        return os.path.join(os.getcwd(), os.path.expanduser(path))
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/interlock")
    base = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "interlock")
