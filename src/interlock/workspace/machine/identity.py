"""The name of this machine among those that share a store.

It is kept in the data home: a container may get another host name with each start, and two users of
one machine have checkouts of their own.
"""

import re
import socket
from contextlib import suppress
from pathlib import Path

from interlock.workspace.files.private_file import write_private_file

FILE = "machine"
_NAME = re.compile(r"[a-z0-9-]{3,80}")


def machine_name(home: Path, entropy: bytes) -> str:
    """Return the name; it is made on first use, from the host's name and `entropy`."""
    path = home / FILE
    with suppress(OSError, UnicodeDecodeError):
        name = path.read_text("ascii").strip()
        if _NAME.fullmatch(name):
            return name
    host = re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-")[:40]
    write_private_file(path, f"{host or 'machine'}-{entropy.hex()}\n".encode())
    return path.read_text("ascii").strip()
