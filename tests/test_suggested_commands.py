"""Each command that a message of ours may show can be typed."""

import ast
import re
from pathlib import Path

import pytest

from tests import suggested_commands

_NO_SUGGESTION = re.compile("Written by `[^`]+`")
SOURCE = Path(__file__).parents[1] / "src" / "interlock"


def _texts(tree: ast.Module) -> list[str]:
    """Every text of a module but its docstrings, with `1` wherever a value is put in."""
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts.append(
                "".join(
                    str(part.value) if isinstance(part, ast.Constant) else " …"
                    for part in node.values
                )
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in parts | docstrings
        ):
            texts.append(node.value)
    return texts


@pytest.mark.parametrize(
    "part",
    sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"),
)
def test_every_command_that_a_message_shows_is_complete(part: str) -> None:
    problems = [
        f"{path.name}: {problem}"
        for path in (SOURCE / part).rglob("*.py")
        for text in _texts(ast.parse(path.read_text()))
        for problem in suggested_commands.misunderstood(_NO_SUGGESTION.sub("", text))
    ]
    assert not problems
