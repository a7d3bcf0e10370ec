"""Start the real server, ask it, end it."""

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from interlock.app.admin.access import LoginStore, load_secret
from interlock.app.clock import SystemClock
from tests.child_process import end_with_parent

START_SECONDS = 30
SERVE = Path(__file__).with_name("serve.py")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """`with Server(home) as server:`. The port stays the same over restarts."""

    def __init__(self, home: Path, *, workspace: Path | None = None) -> None:
        self.home = home
        self.workspace = workspace
        self.port: int = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it runs"
        return self._process.pid

    @property
    def bearer(self) -> str:
        return load_secret(self.home).bearer

    def start(self) -> None:
        command = [sys.executable, "-P", SERVE, "up", "--port", str(self.port), "--json"]
        with (self.home.parent / "server.err").open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.workspace or self.home.parent,  # not in a project
                env=os.environ | {"HOME": str(self.home.parent), "INTERLOCK_HOME": str(self.home)},
                preexec_fn=end_with_parent,  # noqa: PLW1509 (it takes no lock)
            )
        try:
            self.port = self._read_port()
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def _read_port(self) -> int:
        assert self._process is not None, "it runs"
        assert self._process.stdout is not None, "it was asked for"
        told = b""
        while not told.endswith(b"}\n"):
            line = self._process.stdout.readline()
            assert line, (self.home.parent / "server.err").read_text()
            told += line
        address: str = json.loads(told)["url"]
        return urlsplit(address).port or 0

    def stop(self, number: int = signal.SIGTERM) -> int:
        """The exit code."""
        assert self._process is not None, "it runs"
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended. The exit code."""
        assert self._process is not None, "it runs"
        try:
            code = self._process.wait(START_SECONDS)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            assert self._process.stdout is not None, "it was asked for"
            self._process.stdout.close()
            self._process = None
        return code

    def restart(self, number: int = signal.SIGTERM) -> None:
        self.stop(number)
        self.start()

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        is_signed: bool = True,
    ) -> Answer:
        """One request on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"authorization": f"Bearer {self.bearer}"} if is_signed else {}
        try:
            connection.request(method, path, body=body, headers=sent | (headers or {}))
            reply = connection.getresponse()
            found = {name.lower(): value for name, value in reply.getheaders()}
            return Answer(reply.status, found, reply.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def login_code(self, *, age_ms: int = 0) -> str:
        return LoginStore(self.home).issue("code", now_ms=SystemClock().now_ms() - age_ms)

    def login_address(self) -> str:
        """What `interlock console` would open."""
        return f"{self.url}/auth#code={self.login_code()}"

    def browser_headers(self) -> dict[str, str]:
        """The headers of a browser that is signed in, with a form of ours."""
        cookie = LoginStore(self.home).issue("cookie", now_ms=SystemClock().now_ms())
        return {"cookie": f"interlock_{self.port}={cookie}", "origin": self.url}

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        """Send a form as a browser does."""
        headers = self.browser_headers()
        token = load_secret(self.home).csrf(headers["cookie"].partition("=")[2])
        body = urlencode({"csrf": token, **fields}).encode()
        return self.ask("POST", path, body=body, headers=FORM | headers, is_signed=False)


FORM = {"content-type": "application/x-www-form-urlencoded"}
