"""The data home: where everything that Interlock keeps for a user lies."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def data_home(environment: Mapping[str, str] = os.environ) -> Path:
    """`INTERLOCK_HOME`, or the place that the platform has for such data."""
    if chosen := environment.get("INTERLOCK_HOME"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "interlock"
    base = environment.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "interlock"
