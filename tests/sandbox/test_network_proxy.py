"""The proxy of the sandbox: which hosts it reaches, and for whom."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from interlock.sandbox import network_proxy
from interlock.sandbox.network_proxy import NetworkProxy, is_public
from interlock.sandbox.ssh_tunnel import start_ssh


@pytest.mark.parametrize(
    ("address", "is_reached"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        *((address, False) for address in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1")),
        *((address, False) for address in ("172.17.0.1", "192.168.1.1", "100.64.0.1")),
        *((address, False) for address in ("169.254.169.254", "224.0.0.1", "255.255.255.255")),
        *((address, False) for address in ("::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1")),
        *((address, False) for address in ("fe80::1%a", "fd00::1", "ff02::1", "64:ff9b::7f00:1")),
        *((address, False) for address in ("2002:7f00:1::", "2001:0:7f00:1::", "::127.0.0.1")),
        *((address, False) for address in ("168.63.129.16", "192.0.0.192")),
    ],
)
def test_only_public_addresses_are_reached(address: str, *, is_reached: bool) -> None:
    assert is_public(address) == is_reached


def test_a_public_address_of_this_machine_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 127.0.0.1 would be if it were a public address: it can be bound."""
    monkeypatch.setattr(network_proxy.ipaddress.IPv4Address, "is_global", True)

    assert is_public("93.184.216.34")
    assert not is_public("127.0.0.1")


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(0.2 if self.path == "/slow" else 0)
        asked = f"{self.path} {self.headers['Host']} {self.headers.get('Proxy-Authorization')}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(asked)))
        self.end_headers()
        self.wfile.write(asked.encode())

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> NetworkProxy:
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    started = NetworkProxy()
    started.start()
    return started


def ask(proxy: NetworkProxy, *requests: str) -> str:
    """What a command is answered that sends these, each after an answer to the one before."""
    with socket.socket() as client:
        assert proxy.connect(os.dup(client.fileno())) == 0
        client.settimeout(20)
        answer = b""
        for request in requests:
            client.sendall(f"{request}\r\nHost: a\r\n\r\n".encode())
            answer = client.recv(65536)
        while chunk := client.recv(65536):
            answer += chunk
    return answer.decode()


def test_a_request_is_passed_on_by_both_forms(
    proxy: NetworkProxy, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_proxy, "is_public", lambda _: True)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    monkeypatch.setattr(network_proxy, "_TIMEOUT_SECONDS", 0.1)  # for connections, not for answers
    host = f"localhost:{port}"

    assert ask(proxy, f"GET http://{host}/a?b HTTP/1.1").endswith("/a?b a None")
    assert ask(proxy, f"GET http://{host}/slow HTTP/1.1").endswith("/slow a None")
    tunnelled = ask(proxy, f"CONNECT {host} HTTP/1.1", "GET /c HTTP/1.1\r\nConnection: close")
    assert tunnelled.endswith("/c a None")


def test_a_private_host_is_refused_and_named(proxy: NetworkProxy, port: int) -> None:
    for request in (f"GET http://localhost:{port}/", f"CONNECT 127.1:{port}", "CONNECT [::1]:1"):
        answer = ask(proxy, f"{request} HTTP/1.1")
        assert answer.startswith("HTTP/1.1 403 "), answer
    for nonsense in ("GET", "GET ftp://a/ HTTP/1.1", "CONNECT a:b HTTP/1.1"):
        assert ask(proxy, nonsense).startswith("HTTP/1.1 403 "), nonsense


def test_a_stranger_is_not_served(proxy: NetworkProxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as stranger:
        stranger.settimeout(20)
        assert stranger.recv(1) == b""


def test_what_is_no_socket_is_not_connected_and_not_kept(proxy: NetworkProxy) -> None:
    file = os.open("/dev/null", os.O_RDONLY)

    assert proxy.connect(file) != 0
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)


def test_the_proxy_of_the_user_is_used(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may resolve what is unknown here."""
    monkeypatch.setenv("https_proxy", f"http://me:pass%20word@127.0.0.1:{port}")
    proxy = NetworkProxy()
    proxy.start()

    # A second request on the same connection could be for a private host.
    second = "Host: a\r\n\r\nGET http://127.0.0.1/b HTTP/1.1"
    answer = ask(proxy, f"GET http://unknown.invalid/a HTTP/1.1\r\n{second}")

    assert answer.endswith("http://unknown.invalid/a a Basic bWU6cGFzcyB3b3Jk")
    for host in ("127.0.0.1", "localhost.", "a.internal", "wiki", "[::1%lo]", "0x7f.1"):
        answer = ask(proxy, f"GET http://{host}/a HTTP/1.1")
        assert answer.startswith("HTTP/1.1 403 "), (host, answer)
    hidden = "X: b\n\nGET http://127.0.0.1/c HTTP/1.1"
    assert "line break" in ask(proxy, f"GET http://unknown.invalid/ HTTP/1.1\r\n{hidden}")


def test_ssh_shares_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(os, "execvp", lambda _, words: started.extend(words))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]

    start_ssh("1", "git@a.example", "git-upload-pack 'a'")

    assert started.index("ControlPath=none") < started.index("git@a.example")


def test_after_a_refusal_of_the_users_proxy_nothing_is_passed_on(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows would be a request to that proxy, which nobody has checked."""
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.delenv("https_proxy", raising=False)
    proxy = NetworkProxy()
    proxy.start()

    answer = ask(proxy, "CONNECT unknown.invalid:443 HTTP/1.1")

    assert answer.startswith("HTTP/1.1 403 "), "it knows no CONNECT"
    assert "the proxy of the user refuses it" in answer


@pytest.mark.parametrize("host", ["a`touch b`", "$(touch b)", "-oProxyCommand=a", "a'b", "a;b"])
def test_a_host_name_with_a_command_is_not_passed_on_to_ssh(host: str) -> None:
    with pytest.raises(SystemExit, match="not passed on"):
        start_ssh("1", "-p", "22", host, "git-upload-pack 'a'")
