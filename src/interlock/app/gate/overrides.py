"""The override: the user switches the gate off for an hour, by a file that is read first."""

import os
from pathlib import Path

import msgspec

from interlock.app.clock import SystemClock
from interlock.store.failures import StoreUnusable
from interlock.workspace.files.private_file import write_private_file
from interlock.workspace.files.regular_file import read_regular_file

OVERRIDE_FILE = "gate-off"
OVERRIDE_BYTES_MAX = 4096
OVERRIDE_MS = 3_600_000  # an hour, then the gate is on again by itself


class GateOverride(msgspec.Struct, frozen=True, rename="camel"):
    """The gate is switched off everywhere: by whom, and until when."""

    who: str
    until_ms: int


def start_override(home: Path) -> int:
    """Switch the gate off for an hour, whatever state the store is in. Returns when that ends.

    Raises:
        StoreFailure: the override cannot be written.
    """
    override = GateOverride(os.environ.get("USER", "unknown"), SystemClock().now_ms() + OVERRIDE_MS)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private_file(home / OVERRIDE_FILE, msgspec.json.encode(override))
    except OSError as error:
        raise StoreUnusable(
            f"The gate is still on: `{home / OVERRIDE_FILE}` cannot be written ({error.strerror})",
            "Make room, or make the directory writable, and repeat the command. Without it, take"
            ' Interlock\'s hooks out of Claude Code by setting `"disableAllHooks": true` in its'
            " settings.",
        ) from error
    return override.until_ms


def end_override(home: Path) -> bool:
    """Switch the gate on again; False if nobody had switched it off.

    Raises:
        StoreFailure: the override cannot be removed.
    """
    is_off = active_override(home) is not None
    try:
        (home / OVERRIDE_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise StoreUnusable(
            f"The gate is still off: `{home / OVERRIDE_FILE}` cannot be removed ({error.strerror})",
            "Make the directory writable, and repeat the command.",
        ) from error
    return is_off


def active_override(home: Path) -> GateOverride | None:
    """The override, as long as it lasts.

    One that ends in more than an hour counts as none: it was written by a clock that was wrong, and
    if it counted for an hour from each reading, it would last for years.
    """
    try:
        content = read_regular_file(home / OVERRIDE_FILE, OVERRIDE_BYTES_MAX)
        override = msgspec.json.decode(content, type=GateOverride)
    except (OSError, msgspec.MsgspecError):
        return None
    remaining_ms = override.until_ms - SystemClock().now_ms()
    return override if 0 < remaining_ms <= OVERRIDE_MS else None
