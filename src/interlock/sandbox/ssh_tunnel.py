"""Git's ssh in a confined command: it connects through the proxy of the sandbox.

Git starts it as its ssh, and ssh starts it as its proxy command. It is a script, because neither
may need anything that Python would look for in a directory.
"""

import os
import re
import select
import socket
import sys

_ENDED = b"\r\n\r\n"
_HOST = re.compile(r"(?:[\w.-]+@)?[\w.:\[\]][\w.:\[\]-]*")


def start_ssh(port: str, *words: str) -> None:
    """Become ssh. `words` are those that git gives it: options, the host, and a command."""
    *_, host, _ = words
    # Some versions of ssh pass a host name on to a shell as it is.
    if not _HOST.fullmatch(host):
        sys.exit("interlock: this host name is not passed on to ssh")
    command = f"'{sys.executable}' -I -S '{__file__}' tunnel {port} %h %p"
    # There are no Unix sockets, so a shared connection of the user's settings would fail.
    alone = ("-o", "ControlMaster=no", "-o", "ControlPath=none")
    options = (*alone, "-o", "BatchMode=yes", "-o", f"ProxyCommand={command}")
    os.execvp("ssh", ["ssh", *options, *words])


def tunnel(port: str, host: str, host_port: str) -> None:
    """Connect standard input and output with a host."""
    target = f"[{host}]:{host_port}" if ":" in host else f"{host}:{host_port}"
    with socket.create_connection(("127.0.0.1", int(port))) as proxy:
        proxy.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}".encode() + _ENDED)
        answer = b""
        while _ENDED not in answer and (chunk := proxy.recv(1)):
            answer += chunk
        if b" 200 " not in answer:
            sys.exit("interlock: the host is not a public one, or cannot be reached")
        _pass_on(proxy)


def _pass_on(proxy: socket.socket) -> None:
    ends = {0: proxy.fileno(), proxy.fileno(): 1}
    while proxy.fileno() in ends:
        for source in select.select(list(ends), [], [])[0]:
            content = os.read(source, 65536)
            if not content:
                del ends[source]
                if source == 0:
                    proxy.shutdown(socket.SHUT_WR)
            while content:
                content = content[os.write(ends[source], content) :]


if __name__ == "__main__":
    {"ssh": start_ssh, "tunnel": tunnel}[sys.argv[1]](*sys.argv[2:])
