"""Rules about the code itself, one test for each. A rule worth writing down is worth a test."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "interlock"
VAGUE_NAMES = {
    "utils",
    "util",
    "helpers",
    "common",
    "misc",
    "manager",
    "handler",
    "service",
    "base",
}
FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 400
REGISTRY = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|debian\.org")
TEXT_SUFFIXES = {".md", ".py", ".toml", ".txt", ".json", ".cfg", ""}
NOT_OURS = {".git", ".venv", "node_modules", "__pycache__", ".hypothesis"}

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package, the tests and the benchmarks, by its path."""
    paths = [
        path
        for folder in ("src", "tests", "bench")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not NOT_OURS & set(path.parts)
    ]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in paths}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """The modules of the package alone."""
    return ((path, tree) for path, tree in trees().items() if path.startswith("src/"))


def test_a_module_says_what_it_is() -> None:
    assert [path for path, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_a_module_is_named_after_what_it_holds() -> None:
    assert [path for path in trees() if Path(path).stem in VAGUE_NAMES] == []


def test_a_module_has_one_subject() -> None:
    lengths = {path: len((ROOT / path).read_text("utf-8").splitlines()) for path in trees()}

    assert {path: lines for path, lines in lengths.items() if lines > MODULE_LINES_MAX} == {}


def test_functions_fit_on_a_screen() -> None:
    too_long = {
        f"{path}: {node.name}": lines
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    }

    assert too_long == {}


def test_nothing_is_left_to_be_finished() -> None:
    marker = "FIX" + "ME"

    assert [path for path in trees() if marker in (ROOT / path).read_text("utf-8")] == []


def test_broad_excepts_are_at_the_edges_only() -> None:
    broad = {
        path
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        and not any(isinstance(inner, ast.Raise) for inner in node.body)
    }

    assert broad == {
        "src/interlock/cli/commands.py",
        "src/interlock/hooks/fast.py",
        "src/interlock/hooks/full_hook.py",
        "src/interlock/hooks/start_fast.py",
        "src/interlock/mcp/protocol.py",
        "src/interlock/server/worker.py",
    }


def test_no_package_registry_is_named() -> None:
    texts = [
        path
        for path in ROOT.rglob("*")
        if not NOT_OURS & set(path.parts)
        and not any(part.startswith(".") and part.endswith("_cache") for part in path.parts)
        and path.suffix in TEXT_SUFFIXES
        and path != Path(__file__)
        and path.is_file()
    ]

    assert [path for path in texts if REGISTRY.search(path.read_text("utf-8"))] == []


def test_every_change_log_entry_is_under_a_heading_of_keep_a_changelog() -> None:
    headings = re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings
    assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
