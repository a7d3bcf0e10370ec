"""Two Claude Codes in one worktree, headless and without network: what one holds, the other sees.

The first one works until a file is there, so that nothing depends on how long anything takes.
"""

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.desk import Desk
from tests.e2e.real_clients import OFFLINE, ClaudeCode

CLAUDE = ClaudeCode()
LIGHT = '[project]\nprofile = "light"\n[coordination]\n'
ENFORCED = f"{LIGHT}enforce = true\n"
SECONDS_MAX = 120

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CLAUDE.is_here(),
        reason="NOT TESTED: Claude Code, which `make e2e-clients` fetches from npm, is not here",
    ),
]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": f"mcp__interlock__{tool}", "input": arguments}


class FirstClient:
    """A client that has played its first turns and works on."""

    def __init__(self, desk: Desk, process: "subprocess.Popen[str]", log: Path) -> None:
        self.desk, self.process, self.log = desk, process, log

    def has_come_to_work(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        return (self.desk.base / "working").exists()

    def finish(self) -> list[dict[str, Any]]:
        """Let it play its last turns; what it asked the model, request by request."""
        (self.desk.base / "go").touch()
        out, err = self.process.communicate(timeout=SECONDS_MAX)
        assert self.process.returncode == 0, out + err
        return self.desk.requests(self.log)


@contextmanager
def first_client(desk: Desk, before: list[object], after: list[object]) -> Generator[FirstClient]:
    """A client that plays `before`, works, and plays `after`."""
    work = f"touch {desk.base}/working; until [ -e {desk.base}/go ]; do sleep 0.1; done"
    with desk.model(*before, CLAUDE.shell(work), *after) as (address, log):
        process = subprocess.Popen(
            [*CLAUDE.command("go", goes_on=False), *CLAUDE.options],
            cwd=desk.project,
            env=desk.environment(**OFFLINE, **CLAUDE.configure(desk, address)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        first = FirstClient(desk, process, log)
        try:
            while not first.has_come_to_work():
                pass
            yield first
        finally:
            process.kill()
            process.wait()


def trust(desk: Desk, config: str) -> None:
    (desk.project / ".interlock" / "config.toml").write_text(config)
    desk.interlock("trust")


def bodies(requests: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(request["body"], ensure_ascii=False) for request in requests]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path)
    found.interlock("init")
    found.interlock("install", "claude-code")
    trust(found, LIGHT)
    (found.project / "src" / "api").mkdir(parents=True)
    return found


def test_the_second_sees_who_is_here_and_keeps_out_of_its_way(desk: Desk) -> None:
    item = json.loads(desk.interlock("work", "add", "Make the API", "--json"))["id"]
    path, other = desk.project / "src" / "api" / "a.py", desk.project / "src" / "api" / "b.py"
    before: list[object] = [
        call("preflight", track="api"),
        call("work_items", action="claim", item=item),
        call("reserve_paths", paths=["src/api/**"], reason="the new API"),
    ]
    with first_client(desk, before, [call("inbox")]) as first:
        desk.interlock("mail", "send", "all", "the release is on Friday")
        (holder,) = json.loads(desk.interlock("who", "--json"))["active_sessions"]
        name = holder["id"]
        second = bodies(
            CLAUDE.play(
                desk,
                {"blocks": [CLAUDE.write(path), CLAUDE.write(path.with_name("c.py"))]},
                CLAUDE.shell(f"ls {path} || echo STILL ABSENT | tr A-Z a-z"),
                CLAUDE.write(path),
                call("work_items", action="claim", item=item),
                call("send_message", to=[name], subject="may I have a.py?"),
                call("inbox"),
            )
        )
        trust(desk, ENFORCED)
        third = bodies(CLAUDE.play(desk, CLAUDE.write(other)))
        told = bodies(first.finish())

    assert f"{name}, active, track api, holds src/api/**, works on {item}." in second[0], "at once"
    warning = "has reserved `src/api/**` for “the new API” "
    counts = [body.count(warning) for body in second[:4]]
    assert counts == [0, 1, 1, 1], "once for parallel calls, and before the edit"
    assert "still absent" in second[2]
    assert path.exists(), "the second time it passed"
    assert f"claimed by {holder['display']}" in second[4], "refused by name"
    friday = "(a person): the release is on Friday"
    assert [friday in body for body in second] == [*[False] * 5, True, True], "its news"
    assert warning in third[1]
    assert "(path.reserved, gate_" in third[1]
    assert not other.exists()
    for subject in ("may I have a.py?", "the release is on Friday"):
        counts = [body.count(subject) for body in told]
        assert counts == [0, 0, 0, 0, 1, 2], "after its command; then it reads its inbox"
