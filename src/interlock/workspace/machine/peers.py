"""Find the processes at the other end of a TCP connection, where there is a `/proc`."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

from interlock.workspace.machine.processes import PROC

Address: TypeAlias = tuple[str, int]

DESCRIPTORS_MAX = 200_000  # of all processes that can be looked into: about a second
_TABLES = (("tcp", ""), ("tcp6", ""), ("tcp6", "::ffff:"))  # some use IPv6 sockets for IPv4, too


def connected_processes(client: Address, server: Address) -> list[int]:
    """Return the processes that hold the client's end of a connection that the server has.

    A socket can be inherited, so there may be several. There are none if the system does not tell:
    the connection is closed, or its process is another user's, in a container, or elsewhere.
    """
    inode = _socket_inode(client, server)
    pids = (int(name) for name in os.listdir(PROC) if name.isdecimal()) if inode else ()
    found = ((pid, target) for pid in pids for target in _open_files(pid))
    targets = list(islice(found, DESCRIPTORS_MAX + 1))
    if len(targets) > DESCRIPTORS_MAX:
        return []  # there may be holders that were not seen
    return sorted({pid for pid, target in targets if target == f"socket:[{inode}]"})


def _socket_inode(client: Address, server: Address) -> str:
    for table, prefix in _TABLES:
        with suppress(OSError):  # not an address of that family, or the system has no such table
            ends = [_kernel_form(f"{prefix}{host}", port) for host, port in (client, server)]
            for fields in map(str.split, (PROC / "net" / table).read_text().splitlines()):
                if fields[1:3] == ends and fields[9] != "0":
                    return fields[9]
    return ""


def _kernel_form(host: str, port: int) -> str:
    """Return an address as `/proc/net` shows it: 32-bit words in the order of this machine."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):  # of another user, or gone
        for name in os.listdir(f"{PROC}/{pid}/fd"):
            with suppress(OSError):  # closed meanwhile
                yield os.readlink(f"{PROC}/{pid}/fd/{name}")
