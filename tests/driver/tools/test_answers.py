"""What the model is answered: each refusal and each branch of the tools, where they are decided."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.driver.tools import catalogue, files, worktree_commit
from interlock.driver.tools.catalogue import TOOLS, BashCall, run_bash
from interlock.driver.tools.files import ReadCall, WriteCall
from interlock.driver.tools.tool import Level, ToolOutcome, Workplace
from interlock.driver.tools.worktree_commit import BranchEnd, CommitFailed, commit_changes
from tests.driver.tools.file_calls import perform


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    return Workplace(worktree, "workspace", tmp_path / "home", tmp_path / "scratch" / "spill")


def answer_with(
    monkeypatch: pytest.MonkeyPatch, module: Any, code: int | None, output: bytes
) -> list[dict[str, Any]]:
    """Let every process of the module write this and end so; what each was started with."""
    started: list[dict[str, Any]] = []

    async def run_process(
        _: Workplace, words: tuple[str, ...], *, on_output: Callable[[bytes], None], **named: Any
    ) -> int | None:
        started.append({"words": words, **named})
        on_output(output)
        return code

    monkeypatch.setattr(module, "run_process", run_process)
    return started


def run_tool(place: Workplace, name: str, arguments: msgspec.Struct) -> ToolOutcome:
    async def run() -> ToolOutcome:
        return await TOOLS[name].run(place, arguments)

    return asyncio.run(run())


GLOBS: dict[str, str] = {
    "*": "a.py b,c é",
    "**": "a.py b,c é d/[x d/a.py d/e/a.py",
    "**/a.py": "a.py d/a.py d/e/a.py",
    "d/**": "d/[x d/a.py d/e/a.py",
    "d/*": "d/[x d/a.py",
    "?/?.py": "d/a.py",
    "{a,{d/e,z}/a}.py": "a.py d/e/a.py",
    "b,c": "b,c",
    "d/[x": "d/[x",
    "[!b]*": "a.py é",
    "[ab]*": "a.py b,c",
    "[a]*": "a.py",
    "é": "é",
    "a?py": "a.py",
    "{root}/d/a*": "d/a.py",
}


@pytest.mark.parametrize("pattern", GLOBS)
def test_a_pattern_for_paths_lists_what_it_matches(tmp_path: Path, pattern: str) -> None:
    for name in ("a.py", "b,c", "é", "d/a.py", "d/[x", "d/e/a.py", ".git/a.py", "d/e/.git"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    found = perform(tmp_path, "Glob", pattern=pattern.replace("{root}", str(tmp_path)))

    assert found.split("\n") == GLOBS[pattern].split()
    for outside in ("/d/*", "d/../*", ".."):
        refused = perform(tmp_path, "Glob", pattern=outside)
        assert refused == f"`{outside}` leads outside: patterns are for paths below `{tmp_path}`."
    for nothing in ("a.p", "a..py", "a/"):
        assert perform(tmp_path, "Glob", pattern=nothing) == "[No files match.]"


def test_a_search_is_narrowed_by_name_path_and_case_and_follows_no_link(tmp_path: Path) -> None:
    for name in ("a.py", "d/a.py", "d/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\nOne\r\none\n")
    (tmp_path / "link.py").symlink_to("a.py")
    os.mkfifo(tmp_path / "pipe.py")

    def grep(pattern: str, path: str = ".", **fields: Any) -> list[str]:
        return perform(tmp_path, "Grep", path, pattern=pattern, **fields).split("\n")

    assert grep("one") == ["a.py:3:one", "d/a.py:3:one", "d/b.txt:3:one"]
    assert grep("^one", glob="*.py", ignore_case=True) == [
        *("a.py:2:One", "a.py:3:one", "d/a.py:2:One", "d/a.py:3:one"),
    ]
    assert grep("one", glob="d/*") == ["d/a.py:3:one", "d/b.txt:3:one"]
    assert grep("one", "d", glob="*.py") == ["a.py:3:one"]
    assert grep("one", "d/a.py") == ["a.py:3:one"]
    assert grep("o", "a.py", files_only=True, ignore_case=True) == ["a.py"]
    assert grep("two", files_only=True) == ["[No files match.]"]


def test_an_edit_replaces_one_text_in_the_line_in_which_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"

    def edit(content: bytes, old: str, new: str, **fields: Any) -> tuple[str, bytes]:
        file.write_bytes(content)
        said = perform(tmp_path, "Edit", "file", old_string=old, new_string=new, **fields)
        return said, file.read_bytes()

    assert edit(b"a\nb\nc", "b", "x\ny") == (
        f"Edited `{file}`: replaced in line 2.",
        b"a\nx\ny\nc",
    )
    assert edit(b"b b\nb", "b", "", replace_all=True) == (
        f"Edited `{file}`: replaced 3 times.",
        b" \n",
    )
    assert edit(b"aaa", "aa", "b")[1] == b"ba", "what overlaps is one"
    assert edit(b"a\r\nb\n", "a\nb", "c\nd")[1] == b"c\r\nd\n"
    assert edit(b"a\r\nb\nc", "b\nc", "d\ne")[1] == b"a\r\nd\ne", "it is there as given"
    assert "occurs 2 times in `file` (lines 1, 1). " in edit(b"b b", "b", "x")[0]
    refused, content = edit(b"b\n" * 12, "b", "x")
    assert "occurs 12 times in `file` (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10). " in refused
    assert content == b"b\n" * 12
    unread, content = edit(b"b", "b", "x", opened_files=[])
    assert (unread, content) == (
        "Read `file` first: only what was read can be edited.",
        b"b",
    )


def test_what_no_file_can_hold_or_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/inside")
    os.mkfifo(tmp_path / "pipe")

    half = perform(tmp_path, "Write", "file", content="\ud800")
    assert half == "The text has characters that are none (single surrogates)."
    assert not (tmp_path / "file").exists()
    for name in ("folder", "pipe"):
        refused = perform(tmp_path, "Write", name, content="x")
        assert refused == f"`{name}` is not a plain file."
    assert perform(tmp_path, "Read", "pipe") == "`pipe` is not a plain file."
    assert perform(tmp_path, "Read", "a\0b") == "No path has a zero byte in it."
    assert perform(tmp_path, "Read", "../x") == (
        f"`../x` is outside (it leads to `{tmp_path.parent}/x`): this tool works in the worktree,"
        f" `{tmp_path}`."
    )
    for beside in ("/etc/x", f"{tmp_path}-2/x"):
        assert perform(tmp_path, "Read", beside) == (
            f"`{beside}` is outside: this tool works in the worktree, `{tmp_path}`."
        )
    assert perform(tmp_path, "Write", "link", content="ü") == (
        f"Created `{tmp_path}/folder/inside`: 2 bytes."
    )
    assert perform(tmp_path, "Write", "link", content="x" * 1_000) == (
        f"Wrote `{tmp_path}/folder/inside`: 1,000 bytes."
    )


@pytest.mark.parametrize("path", [".git", ".GIT/config", "sub/.git/x", "a/../.git/x"])
def test_gits_own_files_are_not_written(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    started = answer_with(monkeypatch, files, 0, b"0\0/real\0Wrote it.")

    refused = run_tool(place, "Write", WriteCall(path, "x"))
    beside = run_tool(place, "Write", WriteCall(".gitignore", "x"))

    git = f"`{path}` is git's own: it is changed by git commands, with Bash."
    assert refused == ToolOutcome(git, is_error=True)
    assert (beside, len(started)) == (ToolOutcome("Wrote it."), 1)


@pytest.mark.parametrize(
    ("code", "output", "outcome"),
    [
        (0, b"0\0/real\0text", ToolOutcome("text")),
        (0, b"1\0\0why", ToolOutcome("why", is_error=True)),
        (None, b"", ToolOutcome("It took longer than 60 s, and was ended.", is_error=True)),
        (1, b"0\0/real\0text", ToolOutcome("Read failed: 0\0/real\0text", is_error=True)),
        (0, b"Traceback", ToolOutcome("Read failed: Traceback", is_error=True)),
    ],
)
def test_a_tool_for_files_answers_however_its_process_ends(
    place: Workplace,
    monkeypatch: pytest.MonkeyPatch,
    code: int | None,
    output: bytes,
    outcome: ToolOutcome,
) -> None:
    started = answer_with(monkeypatch, files, code, output)

    assert run_tool(place, "Read", ReadCall("x")) == outcome

    assert [one["seconds"] for one in started] == [60]
    assert place.opened_files == ({"/real"} if outcome == ToolOutcome("text") else set())


WRITES = "only the worktree and $TMPDIR are written, git moves only this work's branch"
HOME = "nothing of the user's home"


@pytest.mark.parametrize(
    ("level", "has_network", "reach"),
    [
        ("workspace", False, f"{WRITES}, and {HOME} or of a network is reached"),
        ("workspace", True, f"{WRITES}, and {HOME} is reached"),
        ("read-only", False, f"only $TMPDIR is written, and {HOME} or of a network is reached"),
        ("off", False, ""),
    ],
)
def test_the_sandbox_is_named_where_it_may_have_refused_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Level, *, has_network: bool, reach: str
) -> None:
    place = Workplace(tmp_path, level, tmp_path, tmp_path / "spill", has_network=has_network)
    why = f"\n[The sandbox may be why: {reach}.]" if reach else ""

    for code, text, more in (
        (1, "x: PERMISSION denied", why),
        (1, "Could not resolve host: x", why),
        (1, "no such file", ""),
        (0, "permission denied", ""),
    ):
        started = answer_with(monkeypatch, catalogue, code, text.encode())
        outcome = asyncio.run(run_bash(place, BashCall("x")))
        assert outcome.text == f"{text}\n[exit code {code}]{more}"
        assert (outcome.is_error, outcome.exit_code) == (code != 0, code)
        assert [one["seconds"] for one in started] == [120]


def test_a_commit_has_so_much_of_its_message_and_says_why_there_is_none(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = answer_with(monkeypatch, worktree_commit, 0, b"warning: x\nabc 2 1\n")
    message = "x" * 20_001

    assert asyncio.run(commit_changes(place, message)) == BranchEnd("abc", 2, 1)

    ((*_, sent, base),) = [one["words"] for one in started]
    assert (sent, base, started[0]["seconds"]) == ("x" * 20_000, "HEAD", 120)
    for code, output, why in (
        (1, b"\x1b[31mfatal: no", "fatal: no"),
        (None, b"", "git took longer than 120 s"),
    ):
        answer_with(monkeypatch, worktree_commit, code, output)
        with pytest.raises(CommitFailed, match=f"^{why}$"):
            asyncio.run(commit_changes(place, message))
