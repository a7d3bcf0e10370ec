"""Tools where the work is about several repositories: each call says in which, none gets further.

The scene's own repository is the first, `web` is another one of the user's.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from interlock.driver import prompts
from interlock.driver.tools.catalogue import (
    TOOLS,
    MalformedCall,
    check_call,
    repository_of,
    repository_tools,
    tool_specs,
)
from interlock.driver.tools.tool import ToolOutcome, Workplace
from interlock.driver.tools.worktree_commit import commit_changes
from tests.driver.stage import COMMIT, git
from tests.driver.tools.scene import BRANCH, LEVELS, Scene, contents, needs_landlock, own_in

NAMES = ("main", "web")
CALLS: dict[str, dict[str, Any]] = {
    "Bash": {"command": "ls"},
    "Read": {"file_path": "x"},
    "Write": {"file_path": "x", "content": "x"},
    "Edit": {"file_path": "x", "old_string": "a", "new_string": "b"},
    "Glob": {"pattern": "*"},
    "Grep": {"pattern": "x"},
}


class WideScene:
    """A session with a worktree of each of two repositories."""

    def __init__(self, scene: Scene, level: Any) -> None:
        self.scene, self.main = scene, scene.worktree
        self.checkout = scene.person / "web"
        self.web = scene.home / "worktrees" / "one.web"
        git(scene.base, "init", "-q", "-b", "main", str(self.checkout))
        (self.checkout / "page").write_text("as it was\n")
        git(self.checkout, "add", ".")
        git(self.checkout, *COMMIT, "-m", "one")
        git(self.checkout, "worktree", "add", "-q", "-b", BRANCH, str(self.web))
        worktrees = {"main": self.main, "web": self.web}
        self.place = msgspec.structs.replace(scene.workplace(level), worktrees=worktrees)

    def call(self, name: str, **arguments: object) -> ToolOutcome:
        return asyncio.run(self._call(name, arguments))

    async def _call(self, name: str, arguments: dict[str, object]) -> ToolOutcome:
        checked = check_call(name, json.dumps(arguments), repository_tools(NAMES))
        assert not isinstance(checked, MalformedCall), checked.message
        tool, parsed = checked
        return await tool.run(self.place.in_repository(repository_of(parsed)), parsed)

    def look(self) -> dict[str, str]:
        """All that belongs to the user, and not to the session."""
        scene, web = self.scene, own_in(self.checkout, "one.web")
        own = (self.main, self.web, scene.scratch, *own_in(scene.repository, "one"), *web)
        return contents(scene.base, *own)


@pytest.fixture(params=LEVELS)
def wide(request: pytest.FixtureRequest, scene: Scene) -> WideScene:
    return WideScene(scene, request.param)


def test_of_one_repository_nothing_is_said() -> None:
    place = Workplace(Path("/w"), "workspace", Path("/h"), Path("/s/spill"))

    assert repository_tools(()) is TOOLS
    assert "repo`" not in prompts.system_prompt(place, 8_192, "")
    for name, arguments in CALLS.items():
        named = json.dumps({**arguments, "repo": "main"})
        assert isinstance(check_call(name, named), MalformedCall)


def test_of_several_the_model_is_told_which_there_are() -> None:
    tools = repository_tools(NAMES)

    for spec in tool_specs(tools, tools):
        schema: Any = msgspec.to_builtins(spec.schema)
        jsonschema.Draft202012Validator.check_schema(schema)
        told = schema["properties"]["repo"]
        assert (told["enum"], told["default"]) == (["main", "web"], "main")
        assert "repo" not in schema["required"]
        arguments = CALLS[spec.name]
        assert not isinstance(check_call(spec.name, json.dumps(arguments), tools), MalformedCall)
        unknown = check_call(spec.name, json.dumps({**arguments, "repo": "wep"}), tools)
        assert isinstance(unknown, MalformedCall)
        assert "'wep'" in unknown.message
        assert "`repo` (one of main, web)" in unknown.message
    assert tool_specs(TOOLS, tools) == tool_specs(TOOLS, repository_tools(NAMES))


def test_the_repositories_are_named_and_the_rules_of_each_are_quoted(wide: WideScene) -> None:
    (wide.main / "AGENTS.md").write_text("Use tabs.")
    (wide.web / "CLAUDE.md").write_text("Use spaces.")

    told = prompts.system_prompt(wide.place, 8_192, "")

    assert f"- `main`: {wide.main}\n" in told
    assert f"- `web`: {wide.web}\n" in told
    assert "(main: AGENTS.md):\n\nUse tabs." in told
    assert "(web: CLAUDE.md):\n\nUse spaces." in told


def test_each_call_works_in_the_repository_it_names(wide: WideScene) -> None:
    write = {"file_path": "new", "content": "of main"}
    assert not wide.call("Write", **write).is_error
    assert not wide.call("Write", **(write | {"content": "of web"}), repo="web").is_error
    assert "of web" in wide.call("Read", file_path="new", repo="web").text
    assert "of main" in wide.call("Read", file_path="new", repo="main").text
    assert wide.call("Glob", pattern="*", repo="web").text.splitlines() == ["new", "page"]
    assert "new:1:of web" in wide.call("Grep", pattern="of", repo="web").text
    edit = {"old_string": "of", "new_string": "from"}
    assert not wide.call("Edit", file_path="new", **edit, repo="web").is_error
    assert wide.call("Bash", command="cat new page", repo="web").text.startswith("from webas it")
    in_full = wide.call("Write", file_path=str(wide.web / "page"), content="new", repo="main")
    assert not in_full.is_error, in_full.text
    by_command = wide.call("Bash", command=f"echo x > {wide.web}/more && cat {wide.main}/new")
    assert by_command.exit_code == 0, by_command.text

    ends = [asyncio.run(commit_changes(wide.place.in_repository(name), name)) for name in NAMES]

    for end, root in zip(ends, (wide.scene.repository, wide.checkout), strict=True):
        assert end.commit == git(root, "rev-parse", BRANCH)
        assert git(root, "status", "--porcelain") == ""
    assert (wide.checkout / "page").read_text() == "as it was\n"


FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "the other checkout": ("Write", {"file_path": "{checkout}/new", "content": "x"}),
    "by a link": ("Write", {"file_path": "checkout/new", "content": "x"}),
    "by a link in full": ("Write", {"file_path": "{main}/checkout/new", "content": "x"}),
    "by a link to a file": ("Edit", {"file_path": "linked", "old_string": "a", "new_string": "b"}),
    "read by a link": ("Read", {"file_path": "checkout/page"}),
    "list by a link": ("Glob", {"pattern": "*", "path": "checkout"}),
    "up": ("Write", {"file_path": "../../../web/new", "content": "x"}),
    "up in full": ("Write", {"file_path": "{web}/../new", "content": "x"}),
    "beside, by its path from here": ("Write", {"file_path": "../one.web/up", "content": "x"}),
    "another session's": ("Write", {"file_path": "{other}/new", "content": "x"}),
    "what looks like one": ("Write", {"file_path": "{web}-2/new", "content": "x"}),
    "its rules": ("Write", {"file_path": "{web}/.interlock/config.toml", "content": "x"}),
    "what names git": ("Write", {"file_path": "{web}/.git", "content": "gitdir: /"}),
}
COMMANDS = {
    "the other checkout": "echo x > {checkout}/page",
    "by a link": "echo x > checkout/new",
    "by a link to a file": "echo x > linked",
    "up": "echo x > ../../../web/new",
    "another session's": "echo x > {other}/new",
    "a hook": "echo x > {checkout}/.git/hooks/post-checkout",
    "settings": "git -C {web} config core.hooksPath $PWD",
    "move main": "cd {web} && git commit -q --allow-empty -m x;"
    " git update-ref refs/heads/main HEAD",
    "make a branch": "git -C {web} branch mine",
    "another's index": "echo x > {checkout}/.git/index",
    "the data home": "echo x > {home}/x; ls {home}",
    "exchange the links": "cp .git {web}/.git; cp {checkout}/.git/worktrees/one.web/gitdir x;"
    " echo {web}/.git > {repository}/.git/worktrees/one/gitdir; false",
    "use the exchanged links": "echo x > {checkout}/.git/config",
    "forge git's directory": "mkdir -p {web}/f/worktrees/n; echo {web}/.git > {web}/f/worktrees/n/"
    "gitdir; rm {web}/.git; echo gitdir: f/worktrees/n > {web}/.git; ln -s {checkout} {web}/f/refs;"
    " ln -s {checkout} {web}/f/objects; false",
    "use the forged directory": "echo x > {checkout}/new",
}


def fill_in(text: str, wide: WideScene) -> str:
    for name in ("checkout", "main", "web"):
        text = text.replace(f"{{{name}}}", str(getattr(wide, name)))
    for name in ("other", "home", "repository"):
        text = text.replace(f"{{{name}}}", str(getattr(wide.scene, name)))
    return text


def link_out(wide: WideScene) -> None:
    for root in (wide.main, wide.web):
        (root / "checkout").symlink_to(wide.checkout)
        (root / "linked").symlink_to(wide.checkout / "page")


def test_no_tool_for_files_gets_out_of_the_worktrees(wide: WideScene) -> None:
    link_out(wide)
    before = wide.look()

    for name, (tool, arguments) in FILES.items():
        given = {key: fill_in(value, wide) for key, value in arguments.items()}
        outcome = wide.call(tool, **given, repo="main")
        assert outcome.is_error, (name, outcome.text)

    assert wide.look() == before
    assert git(wide.web, "status", "--porcelain") == "?? checkout\n?? linked"


@needs_landlock
@pytest.mark.parametrize("repository", NAMES)
def test_no_command_gets_out_of_the_worktrees(scene: Scene, repository: str) -> None:
    wide = WideScene(scene, "workspace")
    link_out(wide)
    before, links = wide.look(), [(root / ".git").read_text() for root in (wide.main, wide.web)]

    for name, command in COMMANDS.items():
        outcome = wide.call("Bash", command=fill_in(command, wide), repo=repository)
        assert outcome.exit_code != 0, (name, outcome.text)

    assert wide.look() == before
    assert [(root / ".git").read_text() for root in (wide.main, wide.web)] == links
    assert wide.call("Bash", command="git log --format=%s", repo="web").text.startswith("x\none")


@needs_landlock
def test_where_only_reading_is_allowed_no_repository_is_written(scene: Scene) -> None:
    wide = WideScene(scene, "read-only")
    before = [sorted(root.rglob("*")) for root in (wide.main, wide.web)]

    for repository in NAMES:
        assert wide.call("Bash", command="ls && echo x > new", repo=repository).exit_code != 0
        assert wide.call("Write", file_path="new", content="x", repo=repository).is_error
    assert "as it was" in wide.call("Read", file_path="page", repo="web").text

    assert [sorted(root.rglob("*")) for root in (wide.main, wide.web)] == before
