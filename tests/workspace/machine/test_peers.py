"""The processes at the other end of a connection, as the kernel tells them."""

import os
import socket
import subprocess
import sys

import pytest

from interlock.workspace.machine.peers import connected_processes


@pytest.mark.parametrize(
    ("family", "host", "dialled"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1"),
    ],
    ids=["IPv4", "IPv6", "IPv4 from an IPv6 socket"],
)
def test_all_who_hold_the_clients_end_are_found(
    family: socket.AddressFamily, host: str, dialled: str
) -> None:
    with socket.create_server((host, 0), family=family) as server:
        client = socket.create_connection((dialled, server.getsockname()[1]))
        accepted, _ = server.accept()
        with accepted:
            ends = accepted.getpeername()[:2], accepted.getsockname()[:2]
            assert connected_processes(*ends) == [os.getpid()]
            words = [sys.executable, "-c", "input()"]
            child = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[client.fileno()])
            assert sorted(connected_processes(*ends)) == sorted([os.getpid(), child.pid])
            client.close()
            assert connected_processes(*ends) == [child.pid]
            child.communicate(b"\n")
            assert connected_processes(*ends) == []
