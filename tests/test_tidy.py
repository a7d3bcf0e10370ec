"""Rules about the code itself, one test for each. A rule worth writing down is worth a test."""

import ast
import gc
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
MODULE_LINES_MAX = 600
REGISTRY = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|debian\.org")
TEXT_SUFFIXES = {".md", ".py", ".toml", ".txt", ".json", ".cfg", ""}
NOT_OURS = {".git", ".venv", "node_modules", "__pycache__", ".hypothesis"}

RIDDLES = {
    "about",
    "above",
    "after",
    "again",
    "alone",
    "anew",
    "apart",
    "around",
    "asked",
    "begun",
    "before",
    "behind",
    "below",
    "beside",
    "bound",
    "built",
    "chosen",
    "drawn",
    "elsewhere",
    "found",
    "given",
    "gone",
    "handed",
    "held",
    "how",
    "inside",
    "kept",
    "known",
    "laid",
    "later",
    "led",
    "left",
    "lost",
    "made",
    "meant",
    "met",
    "now",
    "once",
    "onward",
    "outside",
    "ran",
    "said",
    "seen",
    "sent",
    "shown",
    "spoken",
    "taken",
    "then",
    "there",
    "together",
    "told",
    "understood",
    "what",
    "when",
    "where",
    "which",
    "why",
    "within",
    "written",
}
"""Irregular participles, adverbs and the like; those that end in -ed are found by that."""
NOT_PARTICIPLES = {"seed", "speed", "need", "feed", "embed", "sed"}

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
    gc.disable()  # searching the trees for garbage takes three times as long as parsing
    parsed = {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in paths}
    gc.freeze()
    gc.enable()
    return parsed


def sources() -> Iterator[tuple[str, ast.Module]]:
    """The modules of the package alone."""
    return ((path, tree) for path, tree in trees().items() if path.startswith("src/"))


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Everything in the modules of the package that a rule asks about; walking costs a second."""
    asked = (*Definition.__args__, ast.ExceptHandler, ast.Attribute, ast.ImportFrom, ast.Name)
    return [
        (path, node) for path, tree in sources() for node in ast.walk(tree) if type(node) in asked
    ]


def definitions() -> Iterator[tuple[str, Definition]]:
    """The classes and functions of the package, methods too."""
    return ((path, node) for path, node in nodes() if isinstance(node, Definition))


def is_riddle(name: str) -> bool:
    """True for one word that says neither what a thing is nor what it does."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)
    if len(words) != 1 or name.startswith("__"):
        return False
    word = words[0].lower()
    return word in RIDDLES or (word.endswith("ed") and word not in NOT_PARTICIPLES)


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


def test_no_name_is_a_bare_participle_or_adverb() -> None:
    """Who took what? `Taken`, `told` and `after` tell it only to those who know the whole tree."""
    riddles = [
        *(f"{path}: {node.name}" for path, node in definitions() if is_riddle(node.name)),
        *(path for path, _ in sources() if is_riddle(Path(path).stem)),
    ]

    assert riddles == []


def test_a_class_name_exists_once() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path, node in definitions():
        if isinstance(node, ast.ClassDef):
            homes[node.name].append(path)

    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_module_imports_one_name_from_two_places() -> None:
    homes: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for path, node in nodes():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("interlock."):
            for alias in node.names:
                homes[path, alias.name].add(node.module or "")

    assert [name for name, places in homes.items() if len(places) > 1] == []


def test_a_docstring_says_what_a_thing_is_or_does() -> None:
    vague = [
        f"{path}:{node.lineno}"
        for path, node in definitions()
        if re.match(r"What\b", ast.get_docstring(node) or "")
    ]

    assert vague == []


def test_one_module_asks_for_the_time() -> None:
    asks = {
        path
        for path, node in nodes()
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow"}
    }

    assert asks == {
        "src/interlock/app/clock.py",
        "src/interlock/app/store_clock.py",
        "src/interlock/hooks/gate_state.py",
    }


def test_one_module_writes_to_the_terminal() -> None:
    """It escapes what others have written; a bare `print` would let them control the terminal."""
    forbidden = {"print", "sys.stdout", "sys.stderr", "click.echo", "click.secho", "click.confirm"}
    writes = {
        path
        for path, node in nodes()
        if isinstance(node, ast.Attribute | ast.Name)
        and path.startswith("src/interlock/cli/")
        and ast.unparse(node) in {*forbidden, "click.prompt", "click.pause"}
    }

    assert writes == {"src/interlock/cli/terminal.py"}


def test_broad_excepts_are_at_the_edges_only() -> None:
    broad = {
        path
        for path, node in nodes()
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        and not any(isinstance(inner, ast.Raise) for inner in node.body)
    }

    assert broad == {
        "src/interlock/cli/commands.py",
        "src/interlock/driver/process.py",
        "src/interlock/durable/executor.py",
        "src/interlock/hooks/agent_shell.py",
        "src/interlock/hooks/fast.py",
        "src/interlock/hooks/full_hook.py",
        "src/interlock/hooks/start.py",
        "src/interlock/mcp/instant.py",
        "src/interlock/mcp/protocol.py",
        "src/interlock/sandbox/command.py",
        "src/interlock/sandbox/call_broker.py",
        "src/interlock/app/triggers/watch.py",
        "src/interlock/server/worker.py",
    }


def test_no_package_registry_is_named() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    texts = [
        path
        for name in listed.stdout.decode().split("\0")
        if (path := ROOT / name).suffix in TEXT_SUFFIXES and path != Path(__file__)
    ]

    assert [path for path in texts if path.is_file() and REGISTRY.search(path.read_text())] == []


def test_every_change_log_entry_is_under_a_heading_of_keep_a_changelog() -> None:
    headings = re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings
    assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
