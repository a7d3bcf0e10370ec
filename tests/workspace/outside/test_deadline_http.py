"""Any request with one deadline, with a real server on the other side."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from interlock.workspace.outside.deadline_http import DeadlineHttp, HttpAnswer, ServerDown

SECRET = "s3cret"


class EchoHandler(BaseHTTPRequestHandler):
    """Answers with what it was asked, as the path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        asked = self.rfile.read(int(self.headers.get("content-length", 0)))
        port = self.client_address[1]
        body = f"{self.command} {self.path} {self.headers['x-token']} {port} ".encode() + asked
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("X-Answer", "yes")
        self.send_header("Content-Length", str(len(body) + (1 if "cut" in self.path else 0)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = "cut" in self.path

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def http() -> Iterator[DeadlineHttp]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), EchoHandler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    connection = DeadlineHttp(f"http://127.0.0.1:{server.server_port}/api", "", 10)
    yield connection
    connection.close()
    server.shutdown()
    server.server_close()


def ask(http: DeadlineHttp, method: str, path: str, body: bytes | None = None) -> HttpAnswer:
    return http.ask(method, path, {"X-Token": SECRET}, body)


def test_an_answer_has_its_status_headers_and_body(http: DeadlineHttp) -> None:
    read = ask(http, "GET", "/things?page=2")
    sent = ask(http, "POST", "/things/missing", b"new")

    port = read.body.split()[-1].decode()
    assert (read.status, read.headers["x-answer"]) == (200, "yes")
    assert read.body == f"GET /api/things?page=2 {SECRET} {port} ".encode()
    # On the same connection.
    assert (sent.status, sent.body) == (
        404,
        f"POST /api/things/missing {SECRET} {port} new".encode(),
    )


def test_an_answer_that_is_cut_off_is_none(http: DeadlineHttp) -> None:
    with pytest.raises(ServerDown, match="before the end of its answer"):
        ask(http, "GET", "/cut")


def test_an_answer_is_as_long_as_it_may_be(http: DeadlineHttp) -> None:
    with pytest.raises(ServerDown, match="answered with more than 1 MiB"):
        ask(http, "POST", "/things", b"x" * 2**20)

    assert http.ask("POST", "/things", {}, b"x" * 2**20, bytes_max=2**21).status == 200


@pytest.mark.parametrize("secret", ["s3cret\n", "s3cret\r\nX-Other: 1", "s3crét", "s3cret\x00"])
def test_a_secret_that_cannot_be_sent_is_not_quoted(http: DeadlineHttp, secret: str) -> None:
    with pytest.raises(ServerDown) as failure:
        http.ask("GET", "/things", {"X-Token": secret})
    with pytest.raises(ServerDown) as rpc_failure:
        DeadlineHttp("http://127.0.0.1:9/", secret, 10).call("ping", {})

    assert "s3cr" not in f"{failure.value} {failure.value.__cause__} {rpc_failure.value}"
