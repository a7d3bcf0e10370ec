"""A project with everything installed in a client; the interpreter and the client are stand-ins."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.agents.hosts import codex
from interlock.agents.hosts.host import LAUNCHER, JsonPart
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.registry import host_named
from interlock.app.clock import SystemClock
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts import doctor
from interlock.app.hosts.install import InstallReport, Scope, install
from interlock.app.hosts.proofs import Check
from tests.app.hosts.installs import change_json, parts

STAND_IN = """\
#!/bin/sh
# Answers as Interlock would, and sooner.
case "$*" in
*--version) echo interlock 0 ;;
*mcp) cat >/dev/null; echo '{"id":1,"result":{}}'; echo '{"id":2,"result":{"tools":[{},{}]}}' ;;
*" pre-tool "*) case "$(cat)" in *'"%s"'*) echo '%s' ;; esac ;;
esac
"""
VERSIONS = {
    "claude-code": "2.1.325 (Claude Code)",
    "codex": "codex-cli 0.166.0",
    "gemini": "0.61.0",
    "opencode": "1.18.33",
    "cursor": "2026.01.17-abcdef0",
    "copilot": "GitHub Copilot CLI 0.0.400.",
}
"""The answers of the clients to `--version`."""


class Scene:
    def __init__(
        self, home: Path, base: Path, host: str = "claude-code", scope: Scope = "user"
    ) -> None:
        self.home, self.root, self.host = home, base / "project", host_named(host)
        self.scope: Scope = scope
        self.interpreter = base / "bin of ours" / "python"
        self.client = base / "bin" / self.host.program
        self.interpreter.parent.mkdir()
        self.client.parent.mkdir()
        self.root.mkdir()
        opt_in(self.root, "standard")
        self.denial = json.dumps(self.host.encode_decision("deny", "Interlock denies this."))
        self.stand_in = STAND_IN % (self.host.tools["edit"].split()[0], self.denial)
        self.answers(self.stand_in)
        self.program = Program(str(self.interpreter), ("-I",), str(home), shell="/bin/bash")
        self.launcher = home / LAUNCHER
        self.install(at_ms=SystemClock().now_ms() - 1000)
        self.has_client(VERSIONS[host])

    @property
    def settings(self) -> Path:
        return Path.home() / ".claude" / "settings.json"

    @property
    def servers(self) -> Path:
        return Path.home() / ".claude.json"

    def root_of(self, scope: Scope) -> Path:
        return Path.home() if scope == "user" else self.root

    def install(self, *, at_ms: int, scope: Scope | None = None) -> None:
        where = scope or self.scope
        root = self.root_of(where)
        done = install(self.home, self.host, where, root, self.program, at_ms=at_ms)
        assert isinstance(done, InstallReport), done
        assert done.notes == ()

    def has_client(self, version: str, trust: str = "trusted") -> None:
        """The client says its version, and Codex whether it trusts our hooks."""
        about = self.client.with_name("hooks.jsonl")
        about.write_text(hooks_list(self, trust) if self.host is codex.HOST else "")
        self.client.write_text(
            "#!/bin/sh\n"
            f'case "$1" in --version) echo "{version}" ;;\n'
            f"app-server) read a; read b; read c; cat '{about}' ;;\nesac\n",
            encoding="utf-8",
        )
        self.client.chmod(0o755)

    def answers(self, script: str) -> None:
        self.interpreter.write_text(script, encoding="utf-8")
        self.interpreter.chmod(0o755)

    def change(self, path: Path, change: Callable[[Any], object]) -> None:
        change_json(path, change)

    def files(self, kind: type = object) -> list[Path]:
        found = parts(self.program, self.host.name, self.scope, self.root_of(self.scope))
        return [Path(part.path) for part in found if isinstance(part, kind)]

    def write_project_settings(self, text: str) -> None:
        (self.root / ".claude").mkdir()
        (self.root / ".claude" / "settings.json").write_text(text, encoding="utf-8")

    def checks(self, directory: Path | None = None) -> list[Check]:
        path = f"{self.client.parent}:/usr/bin:/bin"
        return doctor.examine(
            *(self.host, self.home, directory or self.root, self.program),
            environment={**os.environ, "PATH": path},
            now_ms=SystemClock().now_ms(),
        )

    def problems(self, directory: Path | None = None) -> dict[str, str]:
        return {check.name: check.what for check in self.checks(directory) if not check.is_ok}


def hooks_list(scene: Scene, trust: str) -> str:
    """What `codex app-server` answers to `hooks/list`, with the hooks of its file."""
    (path,) = scene.files(JsonPart)
    hooks: list[dict[str, Any]] = [
        {
            "key": f"{path}:{event}:{index}:0",
            "eventName": event[0].lower() + event[1:],
            "handlerType": "command",
            "command": group["hooks"][0]["command"],
            "matcher": group.get("matcher"),
            "timeoutSec": group["hooks"][0]["timeout"],
            "sourcePath": str(path),
            "source": "user",
            "enabled": True,
            "isManaged": False,
            "trustStatus": trust,
        }
        for event, groups in json.loads(path.read_text())["hooks"].items()
        for index, group in enumerate(groups)
    ]
    theirs = {"command": "/usr/bin/notify-send done", "trustStatus": "untrusted"}
    listed = {"cwd": str(scene.root), "warnings": [], "errors": [], "hooks": [*hooks, theirs]}
    replies: list[dict[str, Any]] = [
        {"id": 0, "result": {"userAgent": "codex", "platformOs": "linux"}},
        {"method": "sessionConfigured", "params": {}},
        {"id": 1, "result": {"data": [listed]}},
    ]
    return "".join(f"{json.dumps(reply)}\n" for reply in replies)
