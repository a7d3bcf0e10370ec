"""Run what a client would run: the hooks and the server, by the command lines in its files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from interlock.agents.hosts.host import Host, JsonPart, OwnFile, TomlPart
from interlock.agents.hosts.launcher import START, Program
from interlock.agents.hosts.own_entries import own_hooks, server_in, start_of
from interlock.agents.hosts.registry import host_named
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallReport, Scope
from interlock.app.hosts.probe import run_with_timeout
from interlock.workspace.files import toml_patch

PATH = "/usr/bin:/bin"
SECONDS_MAX = 10


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


SILENT = Outcome(0, "", "")


class Machine:
    """An interpreter and a package that say that they were started, and a project."""

    def __init__(self, base: Path, home: Path, host: str = "claude-code") -> None:
        self.home, self.project, self.host = home, base / "my project", host_named(host)
        self.interpreter, self.package = base / "bin of ours" / "python", base / "site" / "it's"
        self.user = base / "user"
        (self.project / "src").mkdir(parents=True)
        (self.package / START).parent.mkdir(parents=True)
        (self.package / START).write_text("")
        self.interpreter.parent.mkdir()
        self.answers('echo "started $*"')
        package = str(self.package)
        self.program = Program(str(self.interpreter), ("-I",), str(home), package, "/bin/bash")

    def install(self, scope: Scope = "user") -> None:
        root = self.user if scope == "user" else self.project
        done = use.install(self.home, self.host, scope, root, self.program, at_ms=1)
        assert isinstance(done, InstallReport), done

    def answers(self, script: str) -> None:
        self.interpreter.write_text(f"#!/bin/sh\n{script}\n")
        self.interpreter.chmod(0o755)

    def opt_in(self) -> None:
        (self.project / ".interlock").mkdir()
        (self.project / ".interlock" / "config.toml").write_text("")

    def hook(
        self, name: str, scope: Scope = "user", content: bytes = b"", /, **variables: str
    ) -> Outcome:
        command = hook_commands(self.host, scope, str(self.home))[name]
        return self.run(["/bin/sh", "-c", command], variables, content)

    def server(self, scope: Scope = "user", **variables: str) -> Outcome:
        command, more = server_start(self.host, scope, str(self.home))
        return self.run(command, {**more, **variables})

    def run(
        self, words: Sequence[str], variables: Mapping[str, str], content: bytes = b""
    ) -> Outcome:
        environment = {"PATH": PATH, "HOME": str(self.user), **variables}
        cwd = self.project / "src"
        done = run_with_timeout(words, content, cwd, environment, SECONDS_MAX)
        assert not isinstance(done, str), done
        return Outcome(done.code, done.out.decode(), done.err.decode())


def hook_commands(host: Host, scope: Scope, home: str) -> dict[str, str]:
    """The command lines by the names of the events, out of the files of an install."""
    if host.name == "opencode":  # its plugin starts the launcher with the same words
        return {event.name: host.command(event, home, scope) for event in host.events}
    (commands,) = [
        {path[1]: command for path, command in own_hooks(host, _content(part))}
        for part in host.parts(scope, "/root", home, {})
        if "hooks" in _content(part)
    ]
    assert set(commands) == {event.native for event in host.events}
    return {event.name: commands[event.native] for event in host.events}


def server_start(host: Host, scope: Scope, home: str) -> tuple[list[str], dict[str, str]]:
    """The command line of the server and its variables, out of the files of an install."""
    entries: list[Any] = []
    for part in host.parts(scope, "/root", home, {}):
        if isinstance(part, TomlPart):
            found = toml_patch.read(part.text.encode())
            assert isinstance(found, tuple)
            entries.append(toml_patch.find_table(found[1], part.table))
        for key in ("mcpServers", "mcp", "servers"):
            entries.append(server_in(_content(part), key))
    starts = [start_of(entry) for entry in entries if entry]
    assert starts
    assert starts[0] is not None
    assert all(start == starts[0] for start in starts)
    return starts[0]


def _content(part: JsonPart | TomlPart | OwnFile) -> dict[str, Any]:
    if isinstance(part, JsonPart):
        return part.addition
    return part.content if isinstance(part, OwnFile) and isinstance(part.content, dict) else {}
