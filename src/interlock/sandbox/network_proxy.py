"""A proxy by which a confined command reads from public hosts, and reaches nothing else.

The command may connect only to the proxy's port, and only the command may use it. The proxy
resolves names and refuses the addresses of this machine and of private networks, so that no daemon
is reached. The command needs neither a name server nor datagrams, which would be another way out.
"""

import _thread
import ipaddress
import os
import re
import socket
from contextlib import suppress
from struct import pack
from urllib.parse import unquote, urlsplit

HOST = "127.0.0.1"
ENDED, _TIMEOUT_SECONDS, _HEAD_BYTES_MAX, _CHUNK_BYTES = b"\r\n\r\n", 30, 64 * 1024, 64 * 1024
_CONNECTED = b"HTTP/1.1 200 Connection established" + ENDED
_EACCES = 13
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_OF_CLOUDS = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24")))
"""Addresses at which a cloud serves its machines, although they look public."""
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*\.[a-z][\w-]*|[\d.]+|[\da-f:.]+", re.ASCII)
_LOCAL_ENDS = (".localhost", ".local", ".internal", ".localdomain")


class HostRefused(Exception):
    """The host is on this machine or in a private network."""


class NetworkProxy:
    """It serves in threads, from its start for as long as this process lives."""

    def __init__(self) -> None:
        self._server = socket.create_server((HOST, 0))
        self.port: int = self._server.getsockname()[1]
        self.address = pack("=H", socket.AF_INET) + pack("!H", self.port) + socket.inet_aton(HOST)
        """As the kernel is given it."""
        self.refused: list[str] = []
        """The private hosts that the command asked for. Many programs do not show our answer."""
        self._upstream = _upstream()  # now, because the command's variables are other ones
        self._clients: set[int] = set()

    def start(self) -> None:
        _thread.start_new_thread(self._accept_all, ())

    def connect(self, file: int) -> int:
        """Connect a socket of the command. Returns the number of the error, or 0."""
        try:
            client = socket.socket(fileno=file)
        except OSError:  # it is none
            os.close(file)
            return _EACCES
        with client:
            if client.family != socket.AF_INET:
                return _EACCES
            with suppress(OSError):  # the command has bound it already
                client.bind((HOST, 0))
            self._clients.add(client.getsockname()[1])
            return client.connect_ex((HOST, self.port))

    def _accept_all(self) -> None:
        while True:
            connection, (_, port) = self._server.accept()
            if port in self._clients:
                self._clients.discard(port)
                _thread.start_new_thread(self._serve, (connection,))
            else:
                connection.close()  # it is not the command's

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(_TIMEOUT_SECONDS)
                head, rest = _read_head(connection)
                remote, answer, request = _open(head, self._upstream)
            except HostRefused as refused:
                self.refused.append(str(refused))
                _reply(connection, 403, f"`{refused}` is on this machine or in a private network")
                return
            except (OSError, ValueError) as failure:
                _reply(connection, 403, str(failure))  # some programs repeat after a 502
                return
            with remote, suppress(OSError):  # one of them is gone
                connection.settimeout(None)
                remote.settimeout(None)
                connection.sendall(answer)
                remote.sendall(request)
                if not head.startswith(b"CONNECT "):
                    # What follows could be a request for another host, and would go unchecked.
                    _copy(remote, connection)
                    return
                remote.sendall(rest)
                is_answered = _thread.allocate_lock()
                is_answered.acquire()
                _thread.start_new_thread(_copy, (remote, connection, is_answered))
                _copy(connection, remote)
                is_answered.acquire()


def _open(head: bytes, upstream: str) -> tuple[socket.socket, bytes, bytes]:
    """Connect to the requested host. Returns the socket, the reply, and the bytes to forward.

    Raises:
        HostRefused: it is not a public one.
        OSError: it cannot be reached.
        ValueError: the request makes no sense.
    """
    line, *headers = head.decode("latin-1").split("\r\n")
    if re.search(rb"[\r\n]", head.replace(b"\r\n", b"")):
        raise ValueError("a line of the request holds a line break")
    method, target, version = line.split(" ")
    is_tunnel = method == "CONNECT"
    parts = urlsplit(f"//{target}" if is_tunnel else target)
    host, port = parts.hostname or "", parts.port or 80
    if not is_tunnel and parts.scheme != "http":
        raise ValueError("only http and https are passed on")
    kept = [
        header for header in headers if not header.lower().startswith(("proxy-", "connection:"))
    ]
    if upstream:
        # Two readers could differ about the host of an address as it was written.
        netloc = f"[{host}]" if ":" in host else host
        netloc += f":{port}" if is_tunnel or parts.port else ""
        address = netloc if is_tunnel else parts._replace(netloc=netloc).geturl()
        ended = () if is_tunnel else ("Connection: close",)
        lines = (f"{method} {address} {version}", *kept, *_authorisation(upstream), *ended)
        request = "\r\n".join(lines).encode("latin-1") + ENDED
        remote = _open_upstream(upstream, host, port)
        if not is_tunnel:
            return remote, b"", request
        remote.sendall(request)
        answer, _ = _read_head(remote)
        if b" 200" not in answer.partition(b"\r\n")[0]:
            remote.close()  # what follows would be requests to the proxy
            raise ValueError("the proxy of the user refuses it")
        return remote, _CONNECTED, b""
    remote = _connect_public(host, port)
    if is_tunnel:
        return remote, _CONNECTED, b""
    path = parts._replace(scheme="", netloc="").geturl() or "/"
    lines = (f"{method} {path} {version}", *kept, "Connection: close")
    return remote, b"", "\r\n".join(lines).encode("latin-1") + ENDED


def proxy_variables(port: int) -> dict[str, str]:
    """The variables by which programs find the proxy, also where they have other settings."""
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "PIP_PROXY")
    more = ("CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy")
    none = ("no_proxy", "NO_PROXY", "npm_config_noproxy")
    address = f"http://{HOST}:{port}"
    return {**dict.fromkeys((*names, *more), address), **dict.fromkeys(none, "")}


def is_public(address: str) -> bool:
    """Whether an address leads to another machine, outside of every private network."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return is_public(str(ip.ipv4_mapped))
        # Other forms contain an IPv4 address, which a router may take out.
        if ip not in _GLOBAL_UNICAST or ip.sixtofour or ip.teredo:
            return False
    is_of_cloud = any(ip in network for network in _OF_CLOUDS)
    return ip.is_global and not ip.is_multicast and not is_of_cloud and not _is_own(str(ip))


def _is_own(address: str) -> bool:
    """Whether it is a public address of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _connect_public(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    public = [address for address in addresses if is_public(address)]
    if not public:
        raise HostRefused(host)
    failure = OSError(f"`{host}` cannot be reached")
    for address in public:
        try:
            return socket.create_connection((address, port), _TIMEOUT_SECONDS)
        except OSError as error:
            failure = error
    raise failure


def _upstream() -> str:
    """The proxy of the user's, if that is a plain one."""
    names = ("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY")
    addresses = (os.environ.get(name, "") for name in names)
    return next((address for address in addresses if address.startswith("http://")), "")


def _open_upstream(upstream: str, host: str, port: int) -> socket.socket:
    """Connect to the user's proxy. It may know names that cannot be resolved here.

    A name that it could read as another one, or that means its own machine, is refused.
    """
    if not _HOST.fullmatch(host) or host.endswith(_LOCAL_ENDS):
        raise HostRefused(host)
    try:
        addresses = {str(address[0]) for *_, address in socket.getaddrinfo(host, port)}
    except OSError:
        addresses = set[str]()
    if not all(map(is_public, addresses)):
        raise HostRefused(host)
    parts = urlsplit(upstream)
    return socket.create_connection((parts.hostname or "", parts.port or 80), _TIMEOUT_SECONDS)


def _authorisation(upstream: str) -> tuple[str, ...]:
    parts = urlsplit(upstream)
    if not parts.username:
        return ()
    from base64 import b64encode  # noqa: PLC0415 (rarely needed)

    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return (f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}",)


def _read_head(connection: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request, and what has come after it."""
    content = b""
    while ENDED not in content:
        chunk = connection.recv(_CHUNK_BYTES)
        content += chunk
        if not chunk or len(content) > _HEAD_BYTES_MAX:
            raise ValueError("the request has no head")
    head, _, rest = content.partition(ENDED)
    return head, rest


def _copy(
    source: socket.socket, target: socket.socket, done: _thread.LockType | None = None
) -> None:
    """Pass on what one end sends until it has sent everything, or one of them is gone."""
    try:
        while chunk := source.recv(_CHUNK_BYTES):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
    finally:
        if done:
            done.release()


def _reply(connection: socket.socket, code: int, text: str) -> None:
    body = f"interlock: {text}\n".encode(errors="replace")
    head = f"HTTP/1.1 {code} Refused\r\nContent-Length: {len(body)}\r\nConnection: close"
    with suppress(OSError):  # the command has gone on
        connection.sendall(head.encode() + ENDED + body)
