"""HTTP with one deadline for everything, from the look-up of a name to the last byte: JSON-RPC,
messages that want no answer, and any other request. Redirects are not followed.

`http.client` has a limit for each operation on the socket alone, so that a server that sends a byte
every second is never too late. Here it gets a socket that allows each operation the time left.
"""

import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

BODY_BYTES_MAX = 1024 * 1024
_HTTP_OK, _HTTP_REDIRECT = 200, 300
_PORTS = {"http": 80, "https": 443}


class ServerDown(Exception):
    """The server cannot be used now. The message continues a sentence that begins with it."""


class HttpAnswer(msgspec.Struct, frozen=True):
    """The answer of a server, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case. Of several with one name, the last."""
    body: bytes


class DeadlineHttp:
    """One connection to a server, for so many seconds from now on."""

    def __init__(self, url: str, token: str, seconds: float) -> None:
        self._url, self._token, self._seconds = url, token, seconds
        self._deadline = time.monotonic() + seconds
        self._socket: socket.socket | None = None
        self._calls = 0

    def close(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None

    def call(self, method: str, params: Any) -> Any:
        """Return the server's answer to one JSON-RPC call.

        Raises:
            ServerDown: there is no usable answer before the deadline.
        """
        self._calls += 1
        request = {"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params}
        with self._named_failures():
            return self._ask_json_rpc(msgspec.json.encode(request))

    def deliver(self, body: bytes) -> None:
        """Send JSON that wants no answer, and return when the server has accepted it.

        Raises:
            ServerDown: it did not accept it before the deadline.
        """
        with self._named_failures():
            response = self._send("POST", "", self._json_headers(), body)
            self.close()
            if not _HTTP_OK <= response.status < _HTTP_REDIRECT:
                raise ServerDown(status_text(response.status))

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        bytes_max: int = BODY_BYTES_MAX,
    ) -> HttpAnswer:
        """Return the answer to one request of a path below the server's address.

        Raises:
            ServerDown: there is no whole answer of so many bytes before the deadline.
        """
        with self._named_failures():
            response = self._send(method, path, headers, body)
            try:
                names = {name.lower(): value for name, value in response.getheaders()}
                return HttpAnswer(response.status, names, _read_body(response, bytes_max))
            finally:
                self._end(response)

    @contextmanager
    def _named_failures(self) -> Generator[None]:
        try:
            yield
        except TimeoutError as error:
            raise ServerDown(f"did not answer within {self._seconds:g} s") from error
        except ConnectionRefusedError as error:
            raise ServerDown("refuses connections") from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise ServerDown("answered with something else than JSON") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise ServerDown(f"cannot be used: {reason}") from error

    def _ask_json_rpc(self, body: bytes) -> Any:
        response = self._send("POST", "", self._json_headers(), body)
        try:
            if response.status != _HTTP_OK:
                raise ServerDown(status_text(response.status))
            if response.headers.get_content_type() == "text/event-stream":
                return self._read_stream(response)
            return msgspec.json.decode(_read_body(response, BODY_BYTES_MAX))
        finally:
            self._end(response)

    def _end(self, response: http.client.HTTPResponse) -> None:
        if response.will_close or not response.isclosed():  # it cannot be asked again
            self.close()
        response.close()

    def _json_headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        return {**headers, "Authorization": f"Bearer {self._token}"} if self._token else headers

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> http.client.HTTPResponse:
        parts = urlsplit(self._url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ServerDown("has no http or https address")
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            # `http.client` would quote it, and it may be a secret.
            raise ServerDown("cannot be sent a header or a token that is not plain text")
        port = parts.port or _PORTS[parts.scheme]
        if self._socket is None:
            self._socket = self._connect(parts.hostname, port)
            if parts.scheme == "https":
                self._socket.settimeout(time_left(self._deadline))
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=parts.hostname)
        connection = http.client.HTTPConnection(parts.hostname, port)
        connection.default_port = _PORTS[parts.scheme]  # the one that `Host` leaves out
        connection.sock = _DeadlineSocket(self._socket, self._deadline)
        target = parts._replace(scheme="", netloc="", fragment="").geturl()
        connection.request(method, f"{target}{path}" or "/", body, dict(headers))
        return connection.getresponse()

    def _read_stream(self, response: http.client.HTTPResponse) -> Any:
        """Return the answer out of a stream of events, which may go on after it."""
        size, data = 0, list[bytes]()
        while line := response.readline(BODY_BYTES_MAX + 1):
            size += len(line)
            if size > BODY_BYTES_MAX:
                raise ServerDown("answered with more than 1 MiB")
            line = line.rstrip(b"\r\n")
            if line.startswith(b"data:"):
                data.append(line.removeprefix(b"data:").removeprefix(b" "))
            elif not line and data:
                match event := msgspec.json.decode(b"\n".join(data)):
                    case {"id": number} if number == self._calls:
                        return event
                    case _:
                        data.clear()
        raise ServerDown("ended its stream before the answer")

    def _connect(self, host: str, port: int) -> socket.socket:
        addresses = _resolve(host, port, self._deadline)
        for position, (family, kind, protocol, _, address) in enumerate(addresses):
            opened = socket.socket(family, kind, protocol)
            try:
                # One address that swallows everything leaves the others their share.
                opened.settimeout(time_left(self._deadline) / (len(addresses) - position))
                opened.connect(address)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                opened.close()
                if position == len(addresses) - 1:
                    raise
            else:
                return opened
        raise ServerDown("has no address that can be found")


def _resolve(host: str, port: int, deadline: float) -> list[Any]:
    """Return the addresses of a host. In a thread: nothing else can end a look-up early."""
    addresses: list[Any] = []

    def look_up() -> None:
        with suppress(OSError, ValueError):
            addresses.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(time_left(deadline))
    return list(addresses)


def time_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def status_text(status: int) -> str:
    notes = {401: ": it refuses the token", 403: ": the token does not allow this"}
    redirect = ", and redirects are not followed" if 300 <= status < 400 else ""  # noqa: PLR2004
    return f"answered with status {status}{notes.get(status, redirect)}"


def _read_body(response: http.client.HTTPResponse, bytes_max: int) -> bytes:
    body = b"" if (response.length or 0) > bytes_max else response.read(bytes_max + 1)
    if (response.length or 0) + len(body) > bytes_max:
        raise ServerDown(f"answered with more than {bytes_max // 2**20} MiB")
    if response.length:
        raise ServerDown("ended the connection before the end of its answer")
    return body


class _DeadlineSocket:
    """The part of a socket that `http.client` uses."""

    def __init__(self, opened: socket.socket, deadline: float) -> None:
        self._socket, self._deadline = opened, deadline

    def sendall(self, content: bytes) -> None:
        self._socket.settimeout(time_left(self._deadline))
        self._socket.sendall(content)

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self._socket, self._deadline))

    def close(self) -> None:
        """Does nothing: `http.client` calls it before it has read the last answer."""


class _DeadlineReader(io.RawIOBase):
    def __init__(self, opened: socket.socket, deadline: float) -> None:
        self._socket, self._deadline = opened, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._socket.settimeout(time_left(self._deadline))
        return self._socket.recv_into(buffer)
