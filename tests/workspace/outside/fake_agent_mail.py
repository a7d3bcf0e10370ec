"""A stand-in for an MCP Agent Mail server: its documented tools and refusals, over HTTP.

`FakeMail.control` makes it fail as real servers do, at every tool or at one.
"""

import fnmatch
import json
import secrets
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HUGE_BYTES = 50 * 1024 * 1024


class ToolRefusal(Exception):
    """A tool says no."""


class Mailbox:
    """Projects, agents, messages and reservations, and the tools on them."""

    def __init__(self) -> None:
        self.agents: dict[tuple[str, str], dict[str, Any]] = {}
        self.messages: list[dict[str, Any]] = []
        self.reservations: list[dict[str, Any]] = []
        self.projects: set[str] = set()

    def unknown_tool(self, **_: Any) -> Any:
        raise ToolRefusal("Unknown tool")

    def ensure_project(self, human_key: str) -> Any:
        if not human_key.startswith("/"):
            raise ToolRefusal("human_key must be an absolute path")
        self.projects.add(human_key)
        return {"slug": human_key.strip("/").replace("/", "-"), "human_key": human_key}

    def register_agent(
        self,
        *,
        project_key: str,
        program: str,
        model: str,
        name: str,
        task_description: str = "",
        registration_token: str = "",
    ) -> Any:
        if project_key not in self.projects:
            raise ToolRefusal(f"Project '{project_key}' not found")
        known = self.agents.get((project_key, name.lower()))
        if known and registration_token != known["registration_token"]:
            raise ToolRefusal(f"Agent '{name}' already exists: registration_token required")
        agent = {
            "name": name,
            "program": program,
            "model": model,
            "task_description": task_description,
            "registration_token": known["registration_token"] if known else secrets.token_hex(8),
            "last_active_ts": _written_time(),
        }
        self.agents[project_key, name.lower()] = agent
        return agent

    def send_message(
        self,
        *,
        project_key: str,
        sender_name: str,
        to: list[str],
        subject: str,
        body_md: str,
        thread_id: str = "",
    ) -> None:
        self.messages.append(
            {
                "id": len(self.messages) + 1,
                "project": project_key,
                "to": to,
                "from": sender_name,
                "subject": subject,
                "body_md": body_md,
                "thread_id": thread_id or None,
                "created_ts": _written_time(),
                "importance": "normal",
                "ack_required": False,
                "kind": "to",
            }
        )

    def fetch_inbox(
        self,
        project_key: str,
        agent_name: str,
        limit: int = 20,
        since_ts: str = "",
        *,
        include_bodies: bool = False,
    ) -> Any:
        self._agent(project_key, agent_name)
        own = [
            message
            for message in self.messages
            if message["project"] == project_key
            and agent_name in message["to"]
            and (not since_ts or _time_of(message["created_ts"]) > _time_of(since_ts))
        ]
        hidden = {"project", "to"} if include_bodies else {"project", "to", "body_md"}
        return [
            {key: value for key, value in message.items() if key not in hidden}
            for message in reversed(own)
        ][:limit]

    def file_reservation_paths(
        self,
        project_key: str,
        agent_name: str,
        paths: list[str],
        ttl_seconds: int = 3600,
        *,
        exclusive: bool = True,
    ) -> Any:
        """Grants everything, and looks for overlap one way alone, as the real one does."""
        self._agent(project_key, agent_name)
        granted: list[Any] = []
        conflicts: list[Any] = []
        expires = _written_time(ttl_seconds)
        for path in paths:
            holders = [
                {key: held[key] for key in ("agent", "path_pattern", "exclusive", "expires_ts")}
                for held in self.reservations
                if held["project"] == project_key
                and held["agent"] != agent_name
                and (exclusive or held["exclusive"])
                and fnmatch.fnmatchcase(path, held["path_pattern"])
            ]
            if holders:
                conflicts.append({"path": path, "holders": holders})
            reservation = {
                "id": len(self.reservations) + 1,
                "project": project_key,
                "agent": agent_name,
                "path_pattern": path,
                "exclusive": exclusive,
                "expires_ts": expires,
            }
            self.reservations.append(reservation)
            granted.append(reservation)
        return {"granted": granted, "conflicts": conflicts}

    def release_file_reservations(
        self, project_key: str, agent_name: str, paths: list[str] | None = None
    ) -> Any:
        self._agent(project_key, agent_name)
        remaining = [
            held
            for held in self.reservations
            if (held["project"], held["agent"]) != (project_key, agent_name)
            or (paths and held["path_pattern"] not in paths)
        ]
        released = len(self.reservations) - len(remaining)
        self.reservations[:] = remaining
        return {"released": released}

    def _agent(self, project_key: str, name: str) -> dict[str, Any]:
        agent = self.agents.get((project_key, name.lower()))
        if agent is None:
            raise ToolRefusal(f"Agent '{name}' not registered for project '{project_key}'")
        return agent


def _written_time(in_seconds: int = 0) -> str:
    return datetime.fromtimestamp(time.time_ns() / 1e9 + in_seconds, UTC).isoformat()


def _time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


class FakeMail(ThreadingHTTPServer):
    """The server, in a thread of the tests."""

    daemon_threads = True

    def __init__(self, *, port: int = 0, token: str = "") -> None:
        super().__init__(("127.0.0.1", port), _MailHandler)
        self.mailbox, self.token = Mailbox(), token
        self.mode, self.failing_tool, self.delay_ms = "", "", 0
        self.called: list[str] = []
        """The names of the tools that were called."""
        self.port = self.server_port
        self.url = f"http://127.0.0.1:{self.port}/api/"
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def control(self, mode: str, *, tool: str = "", delay_ms: int = 0) -> None:
        """Fail in this way from now on, at every tool or at one."""
        self.mode, self.failing_tool, self.delay_ms = mode, tool, delay_ms

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _MailHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeMail  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = self.server.token
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            self._send(b'{"detail": "Unauthorized"}', status=401)
        else:
            with suppress(ConnectionError):
                self._answer(json.loads(body))

    def _answer(self, request: dict[str, Any]) -> None:
        name = request["params"]["name"]
        self.server.called.append(name)
        mode = self.server.mode if self.server.failing_tool in ("", name) else ""
        if mode == "missing_tool":
            name = "unknown_tool"
        if mode == "rename":
            arguments = request["params"]["arguments"]
            arguments["name"] = arguments["name"].replace("-", "")
        answer = json.dumps(self._result(request, name)).encode()
        if mode == "delay":
            time.sleep(self.server.delay_ms / 1000)
        if mode == "hang_mid_body":
            self._begin(len(answer))
            self.wfile.write(answer[:10])
            self.connection.recv(1)  # until the client goes
            self.close_connection = True
        elif mode == "trickle":
            self._begin(len(answer))
            for position in range(len(answer)):
                self.wfile.write(answer[position : position + 1])
                time.sleep(0.05)
        elif mode == "status_500":
            self._send(b"Internal Server Error", status=500)
        elif mode == "redirect":
            self._send(b"", status=307, location="/elsewhere/")
        elif mode == "invalid_json":
            self._send(b"<html>no</html>")
        elif mode == "huge":
            self._send_huge(length=HUGE_BYTES)
        elif mode == "huge_without_length":
            self._send_huge(length=None)
        elif mode == "stream":
            self._send_stream(answer)
        else:
            self._send(answer)

    def _result(self, request: dict[str, Any], name: str) -> dict[str, Any]:
        mailbox, is_error = self.server.mailbox, False
        try:
            value = getattr(mailbox, name, mailbox.unknown_tool)(**request["params"]["arguments"])
        except (ToolRefusal, TypeError) as refusal:
            is_error, value = True, str(refusal)
        text = value if is_error else json.dumps(value)
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
        if not is_error:
            result["structuredContent"] = {"result": value} if isinstance(value, list) else value
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def _begin(self, length: int | None, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if length is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send(self, body: bytes, *, status: int = 200, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def _send_huge(self, *, length: int | None) -> None:
        self._begin(length)
        for _ in range(HUGE_BYTES // 65_536):
            self.wfile.write(b" " * 65_536)

    def _send_stream(self, answer: bytes) -> None:
        """Another event, then the answer; then it stays open, as a stream may."""
        self._begin(None, "text/event-stream; charset=utf-8")
        self.wfile.write(
            b': hello\n\nevent: message\ndata: {"method": "notifications/message"}\n\n'
        )
        self.wfile.write(b"event: message\r\ndata: " + answer + b"\r\n\r\n")
        self.connection.recv(1)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """Says nothing."""
