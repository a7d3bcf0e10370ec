"""The data home: the directory of everything that Interlock stores for a user."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def data_home(environment: Mapping[str, str] = os.environ) -> Path:
    """`INTERLOCK_HOME`, or the directory that the platform has for such data."""
    if path := environment.get("INTERLOCK_HOME"):
        return Path(path).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "interlock"
    base = environment.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "interlock"
