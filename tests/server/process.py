"""Asking the server's process in every way, and the commands around it."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from interlock.app.admin.access import Secret, load_secret
from tests.person import run_as_person
from tests.server.server_process import Answer, Server

SECONDS_MAX = 20


class Process(Server):
    """The server, for those who look closely at who asks and how."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def secret(self) -> Secret:
        return load_secret(self.home)

    @property
    def log(self) -> str:
        return (self.home.parent / "server.err").read_text()

    def signed(self) -> dict[str, str]:
        """What a program sends."""
        return {"authorization": f"Bearer {self.bearer}"}

    def csrf(self, browser: Mapping[str, str]) -> dict[str, str]:
        return {"x-csrf-token": self.secret.csrf(browser["cookie"].partition("=")[2])}

    def plain(
        self, method: str, path: str, headers: Mapping[str, str] = {}, body: bytes | None = None
    ) -> Answer:
        """One request that says nothing about who asks, unless `headers` do."""
        return self.ask(method, path, headers=dict(headers), body=body, is_signed=False)

    def look(self, path: str, **query: object) -> Any:
        """What the REST API answers."""
        said = self.ask("GET", _below(path, query))
        assert said.status == 200, (said.status, said.body)
        return said.json

    def change(self, path: str, body: object = None) -> Any:
        said = self.send(path, body)
        assert said.status == 200, (said.status, said.body)
        return said.json

    def send(self, path: str, body: object = None, method: str = "POST") -> Answer:
        headers = {"content-type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        return self.ask(method, f"/api/v2{path}", headers=headers, body=content)

    def refused(self, path: str, **query: object) -> tuple[int, str, str]:
        """Status, code and error of a look that is refused."""
        return refusal(self.ask("GET", _below(path, query)))


def _below(path: str, query: Mapping[str, object]) -> str:
    return f"/api/v2{path}" + (f"?{urlencode(query)}" if query else "")


def refusal(said: Answer) -> tuple[int, str, str]:
    """Checks that it has its three words."""
    assert said.headers["content-type"] == "application/json"
    told = said.json
    assert set(told) - {"logId"} == {"code", "error", "hint"}
    assert all(told.values())
    return said.status, told["code"], told["error"]


def typed(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command in a terminal of its own."""
    command = (sys.executable, "-m", "interlock", *arguments)
    return run_as_person(command, environment={"INTERLOCK_HOME": str(home)})


def wired(server: Server, request: bytes, *, seconds: float = 10) -> bytes:
    """Bytes as they are, and what comes back until the server ends."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as wire:
        wire.sendall(request)
        said = b""
        try:
            while more := wire.recv(65_536):
                said += more
        except ConnectionResetError:
            pass
        return said


def line(target: str, *headers: str, method: str = "GET") -> bytes:
    """A request without a body, with these headers and no others."""
    lines = [f"{method} {target} HTTP/1.1", *headers, "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def until(is_so: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)


def told_in(home: Path) -> Any:
    """What the server says of itself to whoever looks for it."""
    return json.loads((home / "server.json").read_bytes())
