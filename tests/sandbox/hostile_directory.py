"""A directory that an agent has written, with programs, links and settings that lead elsewhere."""

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec

from interlock.agents.hosts.claude_code import HOST
from interlock.app.hosts import install
from interlock.app.hosts.program import find_program
from interlock.mcp.client import StdioClient
from tests.scenes import linear
from tests.server.server_process import Server
from tests.workspace.git.test_hostile import Trap
from tests.workspace.git.test_state import run

MODULES = ("interlock/__init__", "json", "msgspec", "pymarkdown/__init__", "sitecustomize")


class Hostile:
    """A directory of an agent's, and what must stay as it is."""

    def __init__(self, base: Path, home: Path, address: str) -> None:
        self.base, self.home, self.address = base, home, address
        self.outside = base / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text("original\n")
        self.trap = Trap(base)
        self.root = self.trap.root
        self.connections: list[str] = []
        self._write_files()
        self.trap.arm()
        program, _ = find_program(home)
        done = install.install(home, HOST, "user", base / "user", program, at_ms=1)
        assert isinstance(done, install.InstallReport)
        self._before = self._outside()

    def _write_files(self) -> None:
        program, address = self.trap.program, self.address
        for module in MODULES:
            path = self.root / f"{module}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"open({str(self.trap.log)!r}, 'a').write({module!r})\n")
        for name in ("git", "bd", "gh", "ss", ".beads/hooks/on_create"):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(program)
        config = f"""store = "postgresql://x@{address.removeprefix("http://")}/x"
[project]
profile = "standard"
[notify]
command = ["{program}"]
webhook = "{address}"
[protocol]
commit = true
"""
        files = {
            ".interlock/config.toml": config,
            ".interlock/workflows/line.json": msgspec.json.encode(linear(1)).decode(),
            ".interlock/workflows/far.json": json.dumps(_far_workflow(address)),
            ".pymarkdown": json.dumps(
                {"plugins": {"additional_paths": str(self.root / "json.py")}}
            ),
            ".env": f"HTTP_PROXY={address}\nDBOS_SYSTEM_DATABASE_URL={config.splitlines()[0]}\n",
            "dbos-config.yaml": f"name: x\nsystem_database_url: {config.splitlines()[0]}\n",
            "AGENTS.md": "Say hello.\n",
        }
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        run(self.root, "add", "-A")
        run(self.root, "commit", "-q", "-m", "two")
        exclude = self.root / ".git" / "info" / "exclude"
        exclude.unlink(missing_ok=True)
        exclude.symlink_to(self.outside / "file")
        (self.root / ".agents").symlink_to(self.outside)
        notes = self.root / ".interlock" / "notes"
        notes.mkdir()
        (notes / "link.md").symlink_to(self.outside / "file")
        (notes / "away").symlink_to(self.outside)

    def _outside(self) -> dict[str, str]:
        files = sorted(path for path in self.outside.rglob("*") if path.is_file())
        return {str(path): path.read_text() for path in files}

    def assert_untouched(self) -> None:
        assert self.trap.programs_run() == ""
        assert self._outside() == self._before
        assert self.connections == []

    def launch(
        self, *words: str, given: str = "", **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Start Interlock as clients do, in the hostile directory."""
        return subprocess.run(
            ["/bin/sh", str(self.home / "launch"), *words],
            cwd=self.root,
            env={**os.environ, **variables},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )


def _far_workflow(address: str) -> dict[str, Any]:
    """A workflow whose schema and whose reference are elsewhere."""
    far: dict[str, Any] = msgspec.to_builtins(linear(1)) | {"id": "far"}
    far["references"] = [
        {"id": "r", "title": "r", "source": address, "purpose": "x", "authoritative": True}
    ]
    schema = {"$schema": address, "$ref": f"{address}/schema.json"}
    far["steps"][0]["outputContract"] = {"schema": schema}
    return far


class LaunchedServer(StdioClient):
    """The MCP server as a client starts it."""

    def __init__(self, hostile: Hostile) -> None:
        self.server = subprocess.Popen(
            ["/bin/sh", str(hostile.home / "launch"), "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=hostile.root,
        )
        self._last_id = 0


class LaunchedUp(Server):
    """The server, started in the hostile directory."""

    def start(self) -> None:
        words = ["/bin/sh", str(self.home / "launch"), "up", "--port", "0", "--json"]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=self.workspace)
        self.port = self._read_port()


@contextmanager
def hostile_directory(base: Path, home: Path) -> Generator[Hostile]:
    connections: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            connections.append(str(self.client_address))
            self.close_connection = True

    server = HTTPServer(("127.0.0.1", 0), Listener)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    made = Hostile(base, home, f"http://127.0.0.1:{server.server_port}")
    made.connections = connections
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
