"""The tools for files: what they do, and what they tell a model that got it wrong."""

import os
from typing import Any

import pytest

from tests.driver.tools.scene import LEVELS, Scene

FILES = {
    "src/one.py": "def one():\n    return 1\n\n\ndef other():\n    return 1\n",
    "src/deep/er/two.ts": "const two = 2;\n",
    "windows.txt": "a\r\nb\r\n",
    "empty": "",
}


@pytest.fixture
def work(scene: Scene) -> Scene:
    for name, content in FILES.items():
        (scene.worktree / name).parent.mkdir(parents=True, exist_ok=True)
        (scene.worktree / name).write_bytes(content.encode())
    (scene.worktree / "binary").write_bytes(b"return\0")
    (scene.worktree / "latin").write_bytes(b"caf\xe9 return\n")
    (scene.worktree / "long").write_text("x" * 300_000 + "\n" + "y\n" * 10)
    (scene.worktree / "many").write_text("".join(f"line {n}\n" for n in range(1, 3001)))
    os.chmod(scene.worktree / "src/one.py", 0o750)
    return scene


ANSWERS: dict[str, tuple[str, dict[str, Any], bool, str]] = {
    "a file": ("Read", {"file_path": "windows.txt"}, False, "     1\ta\n     2\tb"),
    "by its whole path": ("Read", {"file_path": "{worktree}/windows.txt"}, False, "     1\ta\n"),
    "many lines": ("Read", {"file_path": "many"}, False, "Go on with offset 2001.]"),
    "an empty file": ("Read", {"file_path": "empty"}, False, "[The file is empty.]"),
    "not UTF-8": ("Read", {"file_path": "latin"}, False, "caf� return"),
    "no text": ("Read", {"file_path": "binary"}, True, "`binary` is not text: a binary file of 7"),
    "no file": ("Read", {"file_path": "no"}, True, "`no`: No such file or directory"),
    "a directory": ("Read", {"file_path": "src"}, True, "`src` is a directory: list it with Glob."),
    "below a file": ("Write", {"file_path": "empty/x", "content": ""}, True, "`empty/x`: "),
    "not there": (
        "Edit",
        {"file_path": "src/one.py", "old_string": "return  1", "new_string": "x"},
        True,
        "The text to replace is not in `src/one.py`. It must be there exactly",
    ),
    "a placeholder": (
        "Write",
        {"file_path": "key.txt", "content": "[secret removed: jwt]"},
        True,
        "which stands for a secret that is not shown to you",
    ),
    "a new placeholder": (
        "Edit",
        {"file_path": "windows.txt", "old_string": "a", "new_string": "[secret removed: jwt]"},
        True,
        "which stands for a secret that is not shown to you",
    ),
    "a pattern": ("Glob", {"pattern": "src/**/*.py"}, False, "src/one.py"),
    "from a directory": ("Glob", {"pattern": "*", "path": "src/deep/er"}, False, "two.ts"),
    "a broken glob": ("Glob", {"pattern": "{a"}, True, "is not a pattern that can be searched for"),
    "lines": (
        "Grep",
        {"pattern": r"^\s+return \d$", "path": "src"},
        False,
        "one.py:2:    return 1\none.py:6:    return 1",
    ),
    "look-around": ("Grep", {"pattern": "(?<=a)b"}, True, "syntax is that of RE2"),
    "no end": ("Grep", {"pattern": "(x+x+)+y", "path": "long"}, False, "[No lines match.]"),
}
"""One call for each way through the process of a tool. test_limits and test_answers have more."""


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_the_tools_for_files_answer(work: Scene, level: Any) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("Read", {"file_path": "src/one.py"})]
    for tool, arguments, _, _ in ANSWERS.values():
        texts = {
            key: value.replace("{worktree}", str(work.worktree))
            if isinstance(value, str)
            else value
            for key, value in arguments.items()
        }
        calls.append((tool, texts))

    outcomes = work.drive(calls, level)[1:]

    for (name, (_, _, is_error, text)), outcome in zip(ANSWERS.items(), outcomes, strict=True):
        assert outcome.is_error == is_error, (name, outcome.text)
        assert text in outcome.text, name
        assert len(outcome.text) < 300 * 1024, name


@pytest.mark.parametrize("level", LEVELS)
def test_a_file_is_written_and_edited_as_a_whole(work: Scene, level: Any) -> None:
    place = work.workplace(level)

    def call(tool: str, path: str, **arguments: object) -> str:
        return work.call(tool, workplace=place, file_path=path, **arguments).text

    def content(path: str) -> bytes:
        return (work.worktree / path).read_bytes()

    assert call("Write", "new/er/file", content="ä\n").startswith("Created `")
    assert content("new/er/file") == b"\xc3\xa4\n"
    call("Edit", "new/er/file", old_string="ä", new_string="ö")  # what was written may be edited
    assert content("new/er/file") == "ö\n".encode()
    assert "Wrote" in call("Write", "new/er/file", content="")
    assert content("new/er/file") == b""

    call("Read", "src/one.py")
    edited = call(
        "Edit", "src/one.py", old_string="return 1", new_string="return 2", replace_all=True
    )
    assert edited.endswith("replaced 2 times.")
    assert content("src/one.py") == FILES["src/one.py"].replace("1", "2").encode()
    assert (work.worktree / "src/one.py").stat().st_mode & 0o777 == 0o750

    call("Read", "windows.txt")
    call("Edit", "windows.txt", old_string="a\nb", new_string="c\nd")
    assert content("windows.txt") == b"c\r\nd\r\n"
    call("Read", "latin")
    call("Edit", "latin", old_string="return", new_string="x")
    assert content("latin") == b"caf\xe9 x\n", "the rest stays as it was, byte for byte"
    assert not list(work.worktree.rglob(".interlock-*")), "no draft is left"
