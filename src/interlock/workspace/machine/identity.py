"""The name of this machine among those that share a store.

It is kept in the data home: a container may get another host name with each start, and two users of
one machine have checkouts of their own.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from interlock.workspace.files.private_file import write_private_file

FILE = "machine"
NAME_BYTES = 3
_NAME = re.compile(r"[a-z0-9-]{3,80}")


def machine_name(home: Path, entropy: bytes) -> str:
    """Return the name; it is made on first use, from the host's name and `entropy`."""
    path = home / FILE
    if name := _recorded_name(path):
        return name
    host = re.sub(r"[^a-z0-9]+", "-", os.uname().nodename.lower()).strip("-")[:40]
    draft = path.with_name(f".{FILE}-{entropy.hex()}")
    write_private_file(draft, f"{host or 'machine'}-{entropy.hex()}\n".encode())
    try:
        # Of several who make it at once, one succeeds, and all use that name.
        with suppress(FileExistsError):
            os.link(draft, path)
        if name := _recorded_name(path):
            return name
        draft.replace(path)  # what was there is no name
        return path.read_text("ascii").strip()
    finally:
        draft.unlink(missing_ok=True)


def _recorded_name(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        name = path.read_text("ascii").strip()
        return name if _NAME.fullmatch(name) else ""
    return ""


def user_name() -> str:
    """Return the user's account name, which an agent's variables cannot change."""
    import pwd  # noqa: PLC0415 (only an answer of the user's needs it)

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
