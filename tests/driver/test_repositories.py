"""Work across repositories: one order changes both, each on its own branch."""

import signal
from pathlib import Path
from typing import Any

import pytest

from interlock.app.callers.command_records import commands_of
from interlock.app.unattended.orders import head_of
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import ModelAnswered, StepBegun
from interlock.core.unattended.order import DeliveryWish, OtherRepository
from tests.child_process import processes_of, unique_seconds
from tests.delivery_scene import handoff
from tests.driver.stage import COMMIT, Stage, call, git, hand_in, line_script, one_step
from tests.scenes import linear


class WideStage(Stage):
    """A stage with another repository, `web`."""

    def __init__(self, directory: Path, **options: Any) -> None:
        super().__init__(directory, **options)
        self.web = directory / "web"
        git(directory, "init", "-q", "-b", "main", str(self.web))
        (self.web / "page.html").write_text("<p>as it was</p>\n")
        (self.web / "AGENTS.md").write_text("Write HTML.\n")
        git(self.web, "add", ".")
        git(self.web, *COMMIT, "-m", "begin")

    def order_both(self, goal: str = "Change both", steps: int = 1, **options: Any) -> SessionId:
        self.install(linear(steps))
        web = OtherRepository("web", str(self.web))
        return self.order(goal, repositories=(web,), **options)


def test_both_repositories_are_changed_and_committed_and_the_checkouts_stay(
    tmp_path: Path,
) -> None:
    with WideStage(tmp_path) as stage:
        turns = [
            call("Write", file_path="api.txt", content="api\n"),
            call("Bash", command="test -f page.html && echo more >> page.html", repo="web"),
            call("Write", file_path="x", content="x", repo="wep"),
            call("Bash", command=f"echo x > {stage.web}/page.html", repo="web"),
        ]
        session = stage.order_both(script=one_step(*turns))
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert (state.outcome, state.detail) == ("success", ""), stage.entries(session)
        (web,) = state.others
        assert (web.name, web.worktree) == ("web", f"{state.worktree}.web")
        assert web.branch == state.branch
        assert web.commit == git(stage.web, "rev-parse", state.branch)
        for root, name in ((stage.repository, "api.txt"), (stage.web, "page.html")):
            shown = git(root, "show", "--format=%s", "--name-only", state.branch)
            assert shown.split("\n\n") == ["Change both", name]
            assert git(root, "status", "--porcelain") == ""
            assert git(root, "symbolic-ref", "HEAD") == "refs/heads/main"
        assert (stage.web / "page.html").read_text() == "<p>as it was</p>\n"
        _, changed, unknown, outside = stage.results(session)
        assert changed.exit_code == 0
        assert (unknown.is_malformed, "one of main, web" in unknown.result.text) == (True, True)
        assert outside.exit_code != 0
        (begun,) = (entry for entry in stage.entries(session) if isinstance(entry, StepBegun))
        assert f"`web`: {web.worktree}" in begun.system
        assert begun.system.endswith("The project's rules (web: AGENTS.md):\n\nWrite HTML.")
        head = head_of(stage.app, session)
        assert head is not None
        assert {line.cwd for line in commands_of(stage.home, head)} == {web.worktree}


def test_a_branch_that_was_left_is_told_by_its_repository_and_the_others_are_committed(
    tmp_path: Path,
) -> None:
    with WideStage(tmp_path) as stage:
        turns = [
            call("Bash", command="git checkout -q --detach; touch new", repo="web"),
            call("Write", file_path="api.txt", content="api\n"),
        ]
        session = stage.order_both(script=one_step(*turns))
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert state.detail.startswith("what was changed in web is not committed: HEAD is not the")
        assert [one.commit for one in state.others] == [""]
        assert git(stage.repository, "show", f"{state.branch}:api.txt") == "api"
        assert git(stage.web, "log", "--format=%s", "main") == "begin"


def test_a_driver_that_is_killed_between_the_two_goes_on(tmp_path: Path) -> None:
    mark = unique_seconds()
    with WideStage(tmp_path) as stage:

        def work(number: int) -> list[dict[str, Any]]:
            if number == 1:
                return [call("Write", file_path="api.txt", content="api\n")]
            slow = call("Bash", command=f"echo 1 >> page.html; sleep {mark}", repo="web")
            return [slow, call("Bash", command="echo 2 >> page.html", repo="web")]

        session = stage.order_both(steps=2, script=line_script(2, work=work))
        driver = stage.start_driver()
        stage.wait_until(lambda: bool(processes_of(mark)), "its work in web", session)
        before = stage.state(session).others
        driver.end(signal.SIGKILL)
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert state.outcome == "success", stage.entries(session)
        assert [(one.name, one.worktree) for one in state.others] == [
            (one.name, one.worktree) for one in before
        ]
        assert git(stage.repository, "show", f"{state.branch}:api.txt") == "api"
        page = git(stage.web, "show", f"{state.branch}:page.html")
        assert page == "<p>as it was</p>\n1\n2"


def test_a_spawned_agent_works_in_all_repositories_and_costs_its_parent(
    tmp_path: Path,
) -> None:
    script = {
        "steps": [
            {
                "when": ["# Step 1 of 1", "Goal: Look"],
                "turns": [
                    call("Write", file_path="found.txt", content="found\n", repo="web"),
                    hand_in("I have found it."),
                ],
            },
            {
                "when": "# Step 1 of 1",
                "turns": [
                    call("spawn_agent", workflow="line", goal="Look around"),
                    call("Read", file_path="found.txt", repo="web"),
                    hand_in("My agent has found it."),
                ],
            },
        ]
    }
    with WideStage(tmp_path) as stage:
        session = stage.order_both("Have it found", script=script)
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert state.outcome == "success"
        spawned, read = stage.results(session)
        assert "I have found it." in spawned.result.text
        assert read.result.text.endswith("found")
        assert state.spent.turns == 5, "three of its own, two of the child"
        own = [one for one in stage.entries(session) if isinstance(one, ModelAnswered)]
        assert state.spent.usage.tokens > sum(one.usage.tokens for one in own)


@pytest.mark.parametrize("opted_in", ["main", "web"])
def test_the_gate_of_each_project_holds_whatever_repository_a_call_names(
    tmp_path: Path, opted_in: str
) -> None:
    with WideStage(tmp_path) as stage:
        root = stage.repository if opted_in == "main" else stage.web
        config = root / ".interlock" / "config.toml"
        config.parent.mkdir(exist_ok=True)
        config.write_text('[project]\nprofile = "standard"\n[gate]\nprotected = ["vault"]\n')
        git(root, "add", ".")
        git(root, *COMMIT, "-m", "opt in")
        turns = [
            call("Bash", command="mkdir vault; echo x > vault/x", repo=repository)
            for repository in ("main", "web")
        ]
        turns += [
            call("Bash", command="interlock mode disabled"),
            call("Write", file_path="fine.txt", content="fine", repo="web"),
        ]
        session = stage.order_both(script=one_step(*turns))
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert state.outcome == "success", state
        *denied, mode, fine = (one.result for one in stage.results(session))
        assert "Not allowed (user.only)" in mode.text
        for result in denied:
            assert "Not allowed (path.protected)" in result.text
        assert not fine.is_error, fine.text


def test_the_result_in_each_repository_is_delivered_to_its_own_remote(tmp_path: Path) -> None:
    with WideStage(tmp_path) as stage:
        remotes = {name: tmp_path / f"{name}.git" for name in ("main", "web")}
        for root, remote in ((stage.repository, remotes["main"]), (stage.web, remotes["web"])):
            git(tmp_path, "init", "-q", "--bare", str(remote))
            git(root, "remote", "add", "origin", str(remote))
        stage.install(linear(1))
        turns = [
            call("Write", file_path="api.txt", content="api\n"),
            call("Bash", command="echo more >> page.html; echo mine > notes.txt", repo="web"),
            hand_in("Both are changed.", artifacts=[handoff("api.txt", "web:page.html")]),
        ]
        push = DeliveryWish(("push",))
        session = stage.order(
            "Change both",
            repositories=(OtherRepository("web", str(stage.web), delivery=push),),
            delivery=push,
            script={"steps": [{"turns": turns}]},
        )
        stage.start_driver()

        def is_settled() -> bool:
            delivery = stage.state(session).delivery
            return delivery is not None and delivery.outcome is not None

        stage.wait_until(is_settled, "delivered", session)

        state = stage.state(session)
        assert state.delivery is not None
        assert state.delivery.outcome == "delivered", state
        assert state.detail.endswith("not in the commit: the hand-off does not name it")
        assert (Path(state.others[0].worktree) / "notes.txt").exists(), "it is left as it was"
        assert [one.repository for one in state.delivery.records if one.part == "push"] == [
            "",
            "web",
        ]
        for name, file in (("main", "api.txt"), ("web", "page.html")):
            shown = git(remotes[name], "show", "--format=", "--name-only", state.branch)
            assert shown == file, "what nobody has named stays here"
