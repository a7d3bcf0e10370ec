"""Work that the driver has Claude Code itself do: to its end, stopped, limited and killed.

There is no network, and the model plays a script.
"""

import json
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.app.unattended import orders
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import (
    ClientReported,
    MessageAdded,
    ModelAnswered,
    StepBegun,
    ToolEnded,
)
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from tests.child_process import processes_of, unique_seconds
from tests.driver.stage import PLACE, Stage, git
from tests.e2e.desk import Desk, hand_in
from tests.e2e.real_clients import ClaudeCode
from tests.scenes import linear

CLAUDE = ClaudeCode()
TOKEN = {"from": "all", "re": "(?s).*continueToken[^c]{1,12}(ct1[a-z0-9]{45})"}
"""The last that was shown: in the prompt, or in the answer to what was submitted."""
CONFIG = '[project]\nprofile = "standard"\n'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        not CLAUDE.is_here(),
        reason="NOT TESTED: Claude Code, which `make e2e-clients` fetches from npm, is not here",
    ),
    pytest.mark.skipif(landlock_abi() < ABI_MIN, reason="NOT TESTED: this machine has no Landlock"),
]


class ClientStage(Stage):
    """A stage on which Claude Code does the work, in a project that has opted in."""

    def __init__(self, directory: Path) -> None:
        settings = f'runner = "claude-code"\nclient_program = "{CLAUDE.program}"'
        super().__init__(directory, settings=settings)
        (directory / "desk").mkdir()
        self.desk = Desk(directory / "desk")
        (self.repository / ".interlock").mkdir()
        (self.repository / ".interlock" / "config.toml").write_text(CONFIG)
        self.install(linear(2))

    @contextmanager
    def model(self, *turns: object, **more: object) -> Generator[dict[str, str]]:
        """A model that plays this; the variables by which the client finds it."""
        with self.desk.model(*turns, **more) as (address, self.log):
            yield {
                "HOME": str(self.desk.user),
                "ANTHROPIC_API_KEY": "sk-ant-api03-secret",
                "ANTHROPIC_BASE_URL": address,
                "GITHUB_TOKEN": "forge",
            }

    def requests(self) -> list[str]:
        """What the client asked the model that was played last."""
        return [json.dumps(one["body"]) for one in self.desk.requests(self.log)]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ClientStage]:
    with ClientStage(tmp_path) as stage:
        yield stage


def hooks(command: str) -> dict[str, Any]:
    handler = {"type": "command", "command": command}
    return {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [handler]}]}}


def step(notes: str) -> dict[str, Any]:
    return {**hand_in(notes), "extract": {"token": TOKEN}}


def test_a_workflow_comes_to_its_end_and_its_change_is_committed(stage: ClientStage) -> None:
    make = CLAUDE.shell("echo made > made.txt; cat made.txt; env; ls ~/.claude.json")
    with stage.model(make, step("It is made."), step("A file, `made.txt`.")) as variables:
        session = stage.order()
        stage.start_driver(**variables)
        state = stage.wait_for(session, "done", "parked")

    assert (state.outcome, state.detail, state.level) == ("success", "", "workspace")
    assert stage.notes(session) == ["It is made.", "A file, `made.txt`."]
    assert git(stage.repository, "show", f"{state.branch}:made.txt") == "made"
    assert "A file" in git(stage.repository, "log", "-1", "--format=%b", state.branch)
    entries = stage.entries(session)
    assert [e.number for e in entries if isinstance(e, StepBegun)] == [1, 2]
    answers = [e for e in entries if isinstance(e, ModelAnswered)]
    costs = [e.cost_micros for e in entries if isinstance(e, ClientReported)]
    assert costs[0] is None
    assert state.spent.turns == len(answers) == 4
    assert state.spent.usage.cost_micros == costs[-1]
    assert costs[-1]
    assert not state.spent.usage.is_estimated
    (shell, *_) = [e.result for e in entries if isinstance(e, ToolEnded)]
    assert "INTERLOCK_SANDBOX=workspace" in shell.text
    assert "secret" not in shell.text
    assert not (stage.desk.user / ".claude" / "settings.json").exists(), "nothing was installed"
    rows = stage.app.reader.attended_sessions_in(str(stage.worktree(session)))
    assert not rows, "it is no attended session"


def test_nothing_outside_of_the_worktree_changes_whatever_repository_and_model_want(
    stage: ClientStage,
) -> None:
    """The repository and the user have what would run outside of the sandbox, if it were read."""
    base, user = stage.desk.base, stage.desk.user
    servers = {"mcpServers": {"evil": {"command": "touch", "args": [f"{base}/mcp"]}}}
    (stage.repository / ".mcp.json").write_text(json.dumps(servers))
    for folder in (stage.repository, user):
        settings = folder / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps(hooks(f"touch {base}/hook")))
    before = settings.read_bytes()
    stage.install(linear(2))
    turns = (
        CLAUDE.shell(
            "echo x > made && git add made && git commit -qm made && git log --format=%an -1"
        ),
        CLAUDE.shell(f"sh -c 'cat {user}/.claude/settings.json; echo x > {base}/out'; true"),
        CLAUDE.shell("sh -c 'echo x > .git'; env"),  # git outside would do what it says
        CLAUDE.write(base / "outside.txt"),
        {"tool": "Read", "input": {"file_path": str(settings)}},
        CLAUDE.shell("echo '{}' > .claude/settings.json"),
    )
    with stage.model(*turns, step("It is made."), step("A file.")) as variables:
        session = stage.order()
        stage.start_driver(**variables)
        state = stage.wait_for(session, "done", "parked")
        requests = stage.requests()

    assert (state.outcome, state.detail) == ("success", "")
    made, refused, env, *files, planted, _, _ = (one.result.text for one in stage.results(session))
    assert made == "Interlock"
    assert refused.lower().count("permission denied") == 2
    assert "INTERLOCK_SANDBOX=workspace" in env
    assert "secret" not in env
    assert all("--restricted confines" in text for text in files)
    assert "(path.protected, " in planted
    assert [path.name for path in base.iterdir() if path.name in ("hook", "mcp", "out")] == []
    assert not (base / "outside.txt").exists()
    assert settings.read_bytes() == before
    git_file = stage.worktree(session) / ".git"
    assert git_file.read_text().startswith("gitdir: "), "it was put back"
    assert "forge" not in "".join(requests)


def test_cancelling_ends_it_with_all_that_its_commands_started(stage: ClientStage) -> None:
    mark = unique_seconds()
    sleeps = CLAUDE.shell(f"trap '' TERM; setsid sleep {mark} & sleep {mark}; true")
    with stage.model(sleeps) as variables:
        session = stage.order()
        stage.start_driver(**variables)
        stage.wait_until(lambda: len(processes_of(mark)) >= 2, "it sleeps", session)
        assert processes_of(str(CLAUDE.program))

        orders.control_work(stage.app, session, "cancel", place=PLACE)
        state = stage.wait_for(session, "done", "parked")

    assert state.outcome == "cancelled"
    assert processes_of(mark) == []
    assert processes_of(str(stage.worktree(session))) == []


def test_a_driver_that_is_killed_takes_it_along_and_the_next_one_finishes(
    stage: ClientStage,
) -> None:
    mark = unique_seconds()
    with stage.model(step("It is made."), CLAUDE.shell(f"sleep {mark}")) as variables:
        session = stage.order()
        driver = stage.start_driver(**variables)
        stage.wait_until(lambda: bool(processes_of(mark)), "it sleeps", session)
        driver.end(signal.SIGKILL)
        stage.wait_until(lambda: not processes_of(str(stage.worktree(session))), "all has ended")
    with stage.model(step("All is said."), index="count") as variables:
        stage.start_driver(**variables)
        state = stage.wait_for(session, "done", "parked")

    assert (state.outcome, state.detail) == ("success", "")
    assert stage.notes(session) == ["It is made.", "All is said."], "nothing was submitted twice"
    reports = [e for e in stage.entries(session) if isinstance(e, ClientReported)]
    assert len({report.conversation for report in reports}) == 1
    assert state.spent.usage.is_estimated, "nobody has told what the killed one has cost"


def was_steered(stage: ClientStage, session: SessionId) -> bool:
    return any(isinstance(e, MessageAdded) and e.steer for e in stage.entries(session))


def test_it_is_steered_paused_and_limited(stage: ClientStage) -> None:
    holds = [
        CLAUDE.shell(f"touch begun-{turn}; until [ -e go-{turn} ]; do sleep 0.1; done")
        for turn in (1, 2)
    ]
    with stage.model(*holds, index="count") as variables:
        session = stage.order(limits={"turns": 4})
        driver = stage.start_driver(**variables)
        stage.wait_until(lambda: bool(stage.state(session).worktree), "it works", session)
        worktree = stage.worktree(session)
        stage.wait_until((worktree / "begun-1").exists, "its first turn", session)
        orders.steer_work(stage.app, session, "THE-STEER", place=PLACE)
        stage.wait_until(lambda: was_steered(stage, session), "it is passed on", session)
        (worktree / "go-1").touch()
        stage.wait_until((worktree / "begun-2").exists, "its second turn", session)
        orders.control_work(stage.app, session, "pause", place=PLACE)
        paused = stage.wait_for(session, "paused").spent
        requests = stage.requests()
        driver.end()
    with stage.model(*[CLAUDE.shell("true")] * 5, index="count") as variables:
        stage.start_driver(**variables)
        orders.control_work(stage.app, session, "resume", place=PLACE)
        state = stage.wait_for(session, "parked", "done")

    assert ["THE-STEER" in request for request in requests] == [False, True], "before its next turn"
    assert (paused.turns, paused.usage.is_estimated) == (2, False)
    assert (state.reason, state.detail) == ("limit", "the limit of 4 turns is reached")
    reports = [e for e in stage.entries(session) if isinstance(e, ClientReported)]
    assert len({report.conversation for report in reports}) == 1
    assert paused.usage.cost_micros
    assert state.spent.turns == 4
    assert state.spent.usage.cost_micros == reports[-1].total_micros == 2 * paused.usage.cost_micros
