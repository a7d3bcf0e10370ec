"""Claude Code itself as the driver starts it: in a worktree, unattended, with our server and gate.

There is no network, and the model plays a script.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from interlock.agents.clients.claude_code_headless import TOOLS, ClaudeCodeHeadless
from interlock.agents.clients.headless import (
    ClientEnded,
    ClientEvent,
    ClientReady,
    ClientStart,
    ClientToolResults,
    ClientTurn,
    LineSplitter,
    ServerAddress,
)
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from tests.e2e.desk import Desk, hand_in
from tests.e2e.real_clients import ClaudeCode
from tests.server.server_process import Server

CLAUDE = ClaudeCode()
SECONDS_MAX = 60
TOKEN_IN_PROMPT = {"from": "last", "re": "(ct1[a-z0-9]{45})"}
WORKFLOW = {
    "id": "two-steps",
    "name": "Two steps",
    "description": "Make a file, and say so",
    "version": "1.0.0",
    "steps": [
        {"id": "make", "title": "Make it", "prompt": "Make a file."},
        {"id": "tell", "title": "Tell it", "prompt": "Say what was made."},
    ],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not CLAUDE.is_here(),
        reason="NOT TESTED: Claude Code, which `make e2e-clients` fetches from npm, is not here",
    ),
    pytest.mark.skipif(landlock_abi() < ABI_MIN, reason="NOT TESTED: this machine has no Landlock"),
]


class Unattended:
    """A worktree with an open run, and clients that are started in it one after the other."""

    def __init__(self, base: Path) -> None:
        self.desk = Desk(base)
        self.desk.interlock("init")
        self.desk.interlock("install", "claude-code")
        folder = self.desk.project / ".interlock"
        (folder / "config.toml").write_text('[project]\nprofile = "light"\n')
        (folder / "workflows").mkdir(exist_ok=True)
        (folder / "workflows" / "two-steps.json").write_text(json.dumps(WORKFLOW))
        self.main, self.branch = self.desk.project, "interlock/try/work"
        self.git("add", ".")
        self.git("-c", "user.name=T", "-c", "user.email=t@t", "commit", "-qm", "begin")
        worktree = base / "worktree"
        self.git("worktree", "add", "-q", "-b", self.branch, str(worktree))
        self.desk.project = worktree
        self.desk.interlock("trust")
        self.conversation = str(uuid4())

    @property
    def worktree(self) -> Path:
        return self.desk.project

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.main, capture_output=True, text=True, check=True
        )
        return done.stdout

    def start_run(self) -> str:
        """The token with which the run goes on."""
        words = ("run", "start", "two-steps", "--goal", "See it work", "--json")
        return json.loads(self.desk.interlock(*words))["continueToken"]

    @contextmanager
    def client(
        self,
        *turns: object,
        server: Server | None = None,
        is_resumed: bool = False,
        turns_max: int = 30,
        spent_micros: int = 0,
        **more: object,
    ) -> Generator["StartedClient"]:
        start = ClientStart(
            self.desk.home,
            self.worktree,
            self.conversation,
            turns_max,
            TOOLS,
            is_resumed=is_resumed,
            branch=self.branch,
            shell=str(self.desk.home / "launch-bash"),
            server=server and ServerAddress(server.url, self.desk.home / "agent-secret"),
            rules="THE-RULES",
        )
        with self.desk.model(*turns, **more) as (address, log):
            user = self.desk.environment(
                ANTHROPIC_API_KEY="sk-secret", ANTHROPIC_BASE_URL=address, GITHUB_TOKEN="forge"
            )
            headless = ClaudeCodeHeadless(str(CLAUDE.program), spent_micros=spent_micros)
            client = StartedClient(self.desk, headless, start, user, log)
            try:
                yield client
            finally:
                client.close()


class StartedClient:
    def __init__(
        self,
        desk: Desk,
        headless: ClaudeCodeHeadless,
        start: ClientStart,
        user: dict[str, str],
        log: Path,
    ) -> None:
        self.headless, self.log, self.desk = headless, log, desk
        self.events: list[ClientEvent] = []
        self._lines = LineSplitter()
        self._unread: list[ClientEvent] = []
        command = headless.command(start, user)
        with (desk.base / "client.err").open("ab") as errors:
            self.process = subprocess.Popen(
                command.words,
                cwd=start.worktree,
                env=dict(command.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def say(self, line: bytes) -> None:
        assert self.process.stdin is not None, "it was asked for"
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def read_until(self, is_enough: Callable[[ClientEvent], bool]) -> ClientEvent:
        """Read what it says until there is such an event, which is returned."""
        assert self.process.stdout is not None, "it was asked for"
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            while self._unread:
                self.events.append(event := self._unread.pop(0))
                if is_enough(event):
                    return event
            chunk = os.read(self.process.stdout.fileno(), 65_536)
            assert chunk, f"it has ended: {(self.desk.base / 'client.err').read_text()}"
            for line in self._lines.feed(chunk):
                self._unread += self.headless.read_line(line)
        raise AssertionError(self.events)

    def finish(self) -> ClientEnded:
        """Let it answer, and end."""
        end = self.read_until(lambda event: isinstance(event, ClientEnded))
        assert isinstance(end, ClientEnded)
        assert self.process.stdin is not None, "it was asked for"
        self.process.stdin.close()
        self.process.wait(SECONDS_MAX)
        return end

    def close(self) -> None:
        self.process.kill()
        with self.process:
            pass

    def turns(self) -> list[ClientTurn]:
        return [event for event in self.events if isinstance(event, ClientTurn)]

    def results(self) -> list[str]:
        return [
            result.text
            for event in self.events
            if isinstance(event, ClientToolResults)
            for result in event.message.results
        ]

    def requests(self) -> list[str]:
        return [json.dumps(one["body"]) for one in self.desk.requests(self.log)]


@pytest.fixture
def unattended(tmp_path: Path) -> Unattended:
    return Unattended(tmp_path)


def go_on(token: str) -> str:
    return f"Go on with the run. Its continueToken is {token}."


def shell(command: str) -> dict[str, Any]:
    return CLAUDE.shell(command)


def first_step(notes: str) -> dict[str, Any]:
    return {**hand_in(notes), "extract": {"token": TOKEN_IN_PROMPT}}


def test_a_run_comes_to_its_end_and_nothing_outside_of_the_worktree_changes(
    unattended: Unattended,
) -> None:
    """The model writes what would run outside of the sandbox, if the client read it there."""
    desk, made = unattended.desk, unattended.worktree / "made.txt"
    token = unattended.start_run()
    hostile = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [_touch(desk.base / "hook")]}]}}
    servers = {"mcpServers": {"evil": {"command": "touch", "args": [str(desk.base / "mcp")]}}}
    settings = desk.user / ".claude" / "settings.json"
    before = settings.read_bytes()
    plant = (
        f"mkdir .claude; echo {json.dumps(json.dumps(hostile))} > .claude/settings.json;"
        f" echo {json.dumps(json.dumps(servers))} > .mcp.json; ls -a .claude"
    )
    turns = (
        first_step("It is made."),
        CLAUDE.write(made),
        shell("git add made.txt && git commit -qm made && git log --format=%an%s -1; env"),
        shell(plant),
        shell(f"sh -c 'cat {desk.user}/.claude.json; echo x > {desk.base}/out'; true"),
        shell("sh -c 'echo x > .git'"),  # git outside would do what it says
        CLAUDE.write(desk.base / "outside.txt"),
        {"tool": "Read", "input": {"file_path": str(desk.user / ".claude.json")}},
    )
    answer = {**hand_in("A file."), "extract": {"token": {"from": "all", "re": LAST_TOKEN}}}
    with Server(desk.home) as server:
        with unattended.client(*turns, answer, server=server) as client:
            client.say(client.headless.message_line(go_on(token)))
            end = client.finish()
        requests = client.requests()

    ready = next(event for event in client.events if isinstance(event, ClientReady))
    assert ready.is_connected
    assert (end.reason, end.text) == ("done", "All done.")
    assert len(client.turns()) == len(turns) + 2
    assert end.usage.input == sum(turn.usage.input for turn in client.turns()) > 0
    assert end.usage.cost_micros == end.spent_micros > 0
    (run,) = desk.with_runs()
    assert (run["workflow"], run["status"]) == ("two-steps", "complete")

    _, _, shown, planted, refused, _, *files, last = client.results()
    assert made.exists()
    assert shown.startswith("Interlockmade\n")
    assert "INTERLOCK_SANDBOX=workspace" in shown
    assert "secret" not in shown
    assert "settings.json" in planted
    assert refused.lower().count("permission denied") == 2
    assert all("--restricted confines" in text for text in files)
    assert '"isComplete":true' in last
    assert not [x for x in ("hook", "mcp", "out", "outside.txt") if (desk.base / x).exists()]
    assert (unattended.worktree / ".git").read_text().startswith("gitdir: "), "it was put back"
    assert unattended.git("log", "--format=%s", unattended.branch) == "made\nbegin\n"
    assert settings.read_bytes() == before
    assert "THE-RULES" in requests[0]
    assert requests[0].count("Mode: coding") == 1, "the hooks of the user's settings are not run"
    assert "forge" not in "".join(requests)


LAST_TOKEN = "(?s).*continueToken[^c]{1,12}(ct1[a-z0-9]{45})"


def _touch(path: Path) -> dict[str, str]:
    return {"type": "command", "command": f"touch {path}"}


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_is_steered_interrupted_and_limited(unattended: Unattended) -> None:
    hold = shell(f"touch begun; until [ -e {unattended.worktree}/go ]; do sleep 0.1; done")
    with unattended.client(hold, shell("true && sleep 300"), index="count") as client:
        client.say(client.headless.message_line("Work."))
        _wait_until((unattended.worktree / "begun").exists)
        client.say(client.headless.message_line("THE-STEER"))
        (unattended.worktree / "go").touch()
        client.read_until(lambda event: isinstance(event, ClientTurn) and len(client.turns()) == 2)
        client.say(client.headless.interrupt_line())
        first = client.finish()
        requests = client.requests()
    with unattended.client(
        *[shell("true")] * 5,
        is_resumed=True,
        turns_max=2,
        spent_micros=first.spent_micros,
        index="count",
    ) as client:
        client.say(client.headless.message_line("Work."))
        second = client.finish()

    assert ["THE-STEER" in request for request in requests] == [False, True], "before its next turn"
    assert first.reason == "interrupted"
    assert (second.reason, len(client.turns())) == ("turns", 2)
    assert first.usage.cost_micros == second.usage.cost_micros == first.spent_micros > 0
    assert second.spent_micros == 2 * first.spent_micros
