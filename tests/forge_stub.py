"""A forge on loopback: the parts of GitHub's and GitLab's REST APIs that we use, in memory.

    with StubForge("gitlab") as stub:
        stub.open_merge_request(number=7, author="cleo", head="ab12…")
        forge = forge_of("gitlab", stub.url, stub.token)

It serves from threads of the test process, so what it was asked (`log`) and what it knows
(`requests`, `comments`) can be looked at whatever becomes of the client. `fail_once` makes it fail
as real forges do.
"""

import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlsplit

from interlock.workspace.outside.forges.registry import ForgeKind
from tests.forge_forms import ForgeForms, StubComment, StubRequest

Fault = Literal["500", "before", "after", "hang", "429", "403", "301", "garbled"]
"""`before` and `after`: the connection is cut, and nothing or everything was done. 403 is how
GitHub says that it was asked too often.
"""

RETRY_AFTER = 7
RESET_AFTER = 600
_ROUTES = {
    "github": {
        "project": r"/repos/(?P<project>[^/]+/[^/]+)",
        "requests": r"/repos/(?P<project>[^/]+/[^/]+)/pulls",
        "request": r"/repos/(?P<project>[^/]+/[^/]+)/pulls/(?P<number>\d+)",
        "comments": r"/repos/(?P<project>[^/]+/[^/]+)/issues/(?P<number>\d+)/comments",
        "user": r"/user",
    },
    "gitlab": {
        "project": r"/api/v4/projects/(?P<project>[^/]+)",
        "requests": r"/api/v4/projects/(?P<project>[^/]+)/merge_requests",
        "request": r"/api/v4/projects/(?P<project>[^/]+)/merge_requests/(?P<number>\d+)",
        "comments": r"/api/v4/projects/(?P<project>[^/]+)/merge_requests/(?P<number>\d+)/notes",
        "user": r"/api/v4/user",
    },
}


class StubAnswer(NamedTuple):
    status: int
    content: Any
    headers: Mapping[str, str] = MappingProxyType({})


class StubForge:
    """A forge with one repository, and one token that belongs to `user`."""

    def __init__(
        self,
        kind: ForgeKind,
        *,
        repository: str = "team/shop",
        token: str = "stub-forge-token",
        user: str = "interlock-bot",
        page_size: int = 2,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.kind: ForgeKind = kind
        self.repository, self.token, self.user, self.page_size = repository, token, user, page_size
        self.default_branch = "main"
        self.requests: dict[int, StubRequest] = {}
        self.comments: list[StubComment] = []
        self.branch_heads: dict[str, str] = {}
        """The commits of branches, for requests that are opened through the API."""
        self.log: list[tuple[str, str]] = []
        """Methods and paths with their queries, in the order of the requests."""
        self._faults: list[tuple[str, str, Fault]] = []
        self._forms = ForgeForms(kind, repository)
        self._changes = 0
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # or the client waits for its acknowledgement of the headers

            def do_GET(self) -> None:
                stub._serve(self)

            def do_POST(self) -> None:
                stub._serve(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self.url = f"https://localhost:{self._server.server_port}"
        # The pause is how long it takes to stop.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._server.shutdown()
        self._server.server_close()

    def fail_once(self, method: str, path_pattern: str, how: Fault) -> None:
        """Fail at the next request of that method whose path, with its query, has the pattern."""
        with self._lock:
            self._faults.append((method, path_pattern, how))

    def open_merge_request(
        self,
        *,
        number: int = 0,
        title: str = "Let the door close",
        author: str = "ana",
        head: str = "",
        source_branch: str = "",
        target_branch: str = "main",
        body: str = "",
        labels: tuple[str, ...] = (),
        assignees: tuple[str, ...] = (),
        is_draft: bool = False,
        is_fork: bool = False,
    ) -> StubRequest:
        with self._lock:
            number = number or max(self.requests, default=0) + 1
            self.requests[number] = StubRequest(
                number=number,
                title=title,
                author=author,
                head=head or sha256(f"head {number}".encode()).hexdigest()[:40],
                source_branch=source_branch or f"branch-{number}",
                target_branch=target_branch,
                body=body,
                labels=labels,
                assignees=assignees,
                is_draft=is_draft,
                is_fork=is_fork,
                state="open",
                updated_at=self._next_time(),
            )
            return self.requests[number]

    def change(self, number: int, **fields: Any) -> StubRequest:
        """Change fields of a request, as people do."""
        with self._lock:
            changed = replace(self.requests[number], updated_at=self._next_time(), **fields)
            self.requests[number] = changed
            return changed

    def push(self, number: int, head: str) -> StubRequest:
        return self.change(number, head=head)

    def close(self, number: int) -> StubRequest:
        return self.change(number, state="closed")

    def merge(self, number: int) -> StubRequest:
        return self.change(number, state="merged")

    def add_comment(self, number: int, body: str, author: str = "ana") -> StubComment:
        with self._lock:
            comment = StubComment(1000 + len(self.comments), number, author, body)
            self.comments.append(comment)
            return comment

    def comments_on(self, number: int) -> list[str]:
        return [comment.body for comment in self.comments if comment.request == number]

    def _next_time(self) -> str:
        self._changes += 1
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._changes)
        fraction = ".000Z" if self.kind == "gitlab" else "Z"
        return at.strftime("%Y-%m-%dT%H:%M:%S") + fraction

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        with self._lock:
            self.log.append((handler.command, handler.path))
            fault = self._take_fault(handler.command, handler.path)
            is_done = fault in (None, "after")
            answer = self._answer(handler, body) if is_done else _refusal(fault)
        if fault == "hang":
            self._is_over.wait()
        if fault in ("before", "after", "hang"):
            handler.close_connection = True
            with suppress(OSError):
                handler.connection.shutdown(socket.SHUT_RDWR)
            return
        with suppress(OSError):
            self._send(handler, answer)

    def _take_fault(self, method: str, path: str) -> Fault | None:
        for position, (expected, pattern, how) in enumerate(self._faults):
            if expected == method and re.search(pattern, path):
                del self._faults[position]
                return how
        return None

    def _send(self, handler: BaseHTTPRequestHandler, answer: StubAnswer) -> None:
        body = json.dumps(answer.content).encode()
        headers = {"Content-Type": "application/json", **answer.headers}
        if handler.command == "GET" and answer.status == 200:
            headers["ETag"] = f'W/"{sha256(body).hexdigest()[:32]}"'
        if headers.get("ETag") and headers["ETag"] == handler.headers.get("If-None-Match"):
            handler.send_response(304)  # as GitHub does, without the tag
            handler.end_headers()
            return
        handler.send_response(answer.status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> StubAnswer:
        bearer = {"github": handler.headers.get("Authorization", "").removeprefix("Bearer ")}
        if bearer.get(self.kind, handler.headers.get("PRIVATE-TOKEN")) != self.token:
            return StubAnswer(401, {"message": "401 Unauthorized"})
        if self.kind == "github" and not handler.headers.get("User-Agent"):
            return StubAnswer(403, {"message": "Request forbidden by administrative rules"})
        target = urlsplit(handler.path)
        project = self.repository if self.kind == "github" else quote(self.repository, safe="")
        for name, pattern in _ROUTES[self.kind].items():
            route = re.fullmatch(pattern, target.path)
            if route and route.groupdict().get("project", project) == project:
                number = int(route.groupdict().get("number") or 0)
                query, content = dict(parse_qsl(target.query)), json.loads(body or b"{}")
                return self._answer_route(f"{handler.command} {name}", number, query, content)
        return StubAnswer(404, {"message": "404 Not Found"})

    def _answer_route(
        self, route: str, number: int, query: dict[str, str], content: dict[str, Any]
    ) -> StubAnswer:
        if number and number not in self.requests:
            return StubAnswer(404, {"message": "404 Not Found"})
        match route:
            case "GET user":
                return StubAnswer(200, self._forms.user(self.user))
            case "GET project":
                return StubAnswer(200, {"id": 1, "default_branch": self.default_branch})
            case "GET request":
                return StubAnswer(200, self._forms.request(self.requests[number]))
            case "GET requests":
                return self._page(self._select(query), self._forms.request, query)
            case "POST requests":
                return self._open(content)
            case "GET comments":
                present = [comment for comment in self.comments if comment.request == number]
                ordered = present if self.kind == "github" else present[::-1]
                return self._page(ordered, self._forms.comment, query)
            case "POST comments":
                comment = self.add_comment(number, content["body"], self.user)
                return StubAnswer(201, self._forms.comment(comment))
            case _:
                return StubAnswer(405, {"message": "405 Method Not Allowed"})

    def _page(
        self, items: list[Any], form: Callable[[Any], Any], query: dict[str, str]
    ) -> StubAnswer:
        size, page = min(int(query["per_page"]), self.page_size), int(query["page"])
        shown, rest = items[(page - 1) * size : page * size], items[page * size :]
        links = {"Link": f'<{self.url}/elsewhere?page={page + 1}>; rel="next"'} if rest else {}
        return StubAnswer(200, [form(item) for item in shown], links)

    def _select(self, query: dict[str, str]) -> list[StubRequest]:
        """The requests of a list, with the defaults of the forge where the query says nothing."""
        if self.kind == "github":
            state, branch = query.get("state", "open"), query.get("head", ":").partition(":")[2]
            is_by_change = query.get("sort") == "updated"
            is_newest_first = query.get("direction", "asc" if is_by_change else "desc") == "desc"
        else:
            state, branch = query.get("state", "all"), query.get("source_branch", "")
            is_by_change = query.get("order_by") == "updated_at"
            is_newest_first = query.get("sort", "desc") == "desc"
        states = {"all": ("open", "closed", "merged"), "opened": ("open",), "open": ("open",)}
        chosen = [
            request
            for request in self.requests.values()
            if request.state in states[state] and branch in ("", request.source_branch)
        ]
        if is_by_change:
            chosen.sort(key=lambda request: request.updated_at)
        return chosen[::-1] if is_newest_first else chosen

    def _open(self, content: dict[str, Any]) -> StubAnswer:
        names = ("head", "base") if self.kind == "github" else ("source_branch", "target_branch")
        source, target = (content[name] for name in names)
        for one in self.requests.values():
            if (one.source_branch, one.target_branch, one.state) == (source, target, "open"):
                text = f"A request already exists for {source}: {one.number}"
                fault = {"message": "Validation Failed", "errors": [{"message": text}]}
                is_github = self.kind == "github"
                return StubAnswer(422, fault) if is_github else StubAnswer(409, {"message": [text]})
        request = self.open_merge_request(
            title=content["title"],
            author=self.user,
            head=self.branch_heads.get(source, ""),
            source_branch=source,
            target_branch=target,
            body=content["body" if self.kind == "github" else "description"],
            is_draft=content.get("draft", content["title"].startswith("Draft: ")),
        )
        return StubAnswer(201, self._forms.request(request))


def _refusal(fault: Fault | None) -> StubAnswer:
    match fault:
        case "429":
            return StubAnswer(429, {"message": "Too many"}, {"Retry-After": str(RETRY_AFTER)})
        case "403":
            reset = int(time.time()) + RESET_AFTER  # noqa: TID251
            headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
            return StubAnswer(403, {"message": "API rate limit exceeded"}, headers)
        case "301":
            return StubAnswer(301, {"message": "Moved"}, {"Location": "/api/v4/elsewhere"})
        case "garbled":
            return StubAnswer(200, "<html>Please sign in</html>")
        case _:
            return StubAnswer(500, {"message": "500 Internal Server Error"})
