"""A very small GitLab for the demonstration: one merge request, and comments on it, in memory."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

US = {"id": 1, "username": "interlock"}
"""Whose token it is by which the comment is written."""


class DemoForge:
    def __init__(self, title: str, head: str) -> None:
        self.request: dict[str, Any] = {
            "iid": 7,
            "title": title,
            "state": "opened",
            "sha": head,
            "web_url": "https://gitlab.example/demo/greeting/-/merge_requests/7",
            "source_branch": "polite",
            "target_branch": "main",
            "source_project_id": 1,
            "target_project_id": 1,
            "updated_at": "2026-01-01T00:00:00Z",
        }
        self.comments: list[dict[str, Any]] = []
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place = self.path.partition("?")[0].rpartition("/")[2]
                found = {"user": US, "notes": forge.comments}.get(place, forge.request)
                self._answer(200, found)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                written = msgspec.json.decode(body)["body"]
                comment = {"id": len(forge.comments) + 1, "author": US, "body": written}
                forge.comments.append(comment)
                self._answer(201, comment)

            def _answer(self, status: int, value: object) -> None:
                content = msgspec.json.encode(value)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its own name)
                """Say nothing: the demonstration tells."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Generator[None]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
