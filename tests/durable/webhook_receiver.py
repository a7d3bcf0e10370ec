"""A server for webhooks, in the process of the tests, that answers as it is told."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH = "/hooks/s3cret-p4th"


class Receiver:
    """A server that answers with the statuses that it is given, and the last one for ever."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.statuses = [204]
        self.paths: list[str] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}{PATH}"
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.paths.append(request.path)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(request.rfile.read(int(request.headers["content-length"])))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status == 0:  # it sends a byte now and then, and never ends
            for _ in range(400):
                request.wfile.write(b"x")
                request.wfile.flush()
                time.sleep(0.05)
            return
        request.send_response(status)
        request.send_header("location", self.url + "/elsewhere")
        request.send_header("content-length", "2")
        request.end_headers()
        request.wfile.write(b"ok")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
