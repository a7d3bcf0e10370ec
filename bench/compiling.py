"""What it costs to compile workflows and to look through a catalogue of them."""

import json
from pathlib import Path
from typing import Any

from bench.measure import Row
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.workspace.projects.catalogue import BUNDLED_DIRECTORY, Catalogue

STEPS = 100
FILES = 100
ROUNDS = 10
PROMPT = "Look at {{area}}, change what the goal asks for, and run its tests. "


def rich(number: int, *, steps: int) -> bytes:
    """A workflow with a little of everything: conditions, loops, contracts, criteria."""
    written: list[dict[str, Any]] = []
    for n in range(steps):
        step: dict[str, Any] = {"id": f"step-{n}", "title": f"Step {n}", "prompt": PROMPT * 5}
        if n % 4 == 1:
            step["runCondition"] = {
                "or": [{"var": "depth", "equals": "full"}, {"var": "n", "gt": n}]
            }
        if n % 4 == 2:
            step["outputContract"] = {"contractRef": "review_verdict"}
        if n % 4 == 3:
            step["validationCriteria"] = [{"type": "regex", "pattern": r"\btests?\b"}]
        if n % 10 == 0:
            rule = {"type": "while", "maxIterations": 3}
            step = {"id": f"loop-{n}", "type": "loop", "title": "L", "loop": rule, "body": [step]}
        written.append(step)
    document = {
        "id": f"rich-{number}",
        "name": "Rich",
        "description": "For measuring",
        "version": "1.0.0",
        "steps": written,
    }
    return json.dumps(document, indent=2).encode()


def compiling(base: Path) -> list[Row]:
    content = rich(0, steps=STEPS)
    parsed = Row(f"json.loads of a workflow with {STEPS} steps ({len(content) // 1024} KB)")
    cold = Row(f"compile {STEPS} steps, cold", against=parsed)
    catalogue_cold = Row(f"catalogue of {FILES} files with 10 steps and the bundled, cold")
    catalogue_warm = Row("the same again, nothing changed", against=catalogue_cold)
    bundled = Row("the bundled catalogue alone, cold")
    workspace = base / "compiling"
    directory = workspace / ".interlock" / "workflows"
    directory.mkdir(parents=True)
    for number in range(FILES):
        (directory / f"rich-{number}.json").write_bytes(rich(number, steps=10))
    _checked(content)  # the engines for patterns and schemas are imported once
    for _ in range(ROUNDS):
        parsed.time(lambda: json.loads(content))
        cold.time(lambda: _checked(content))
        bundled.time(lambda: Catalogue(base / "nobody").entries(BUNDLED_DIRECTORY))
        catalogue = Catalogue(base / "nobody")
        catalogue_cold.time(lambda catalogue=catalogue: _listed(catalogue, workspace))
        catalogue_warm.time(lambda catalogue=catalogue: _listed(catalogue, workspace))
    return [parsed, cold, bundled, catalogue_cold, catalogue_warm]


def _checked(content: bytes) -> None:
    assert isinstance(compile_content(content), Compilation), "it is valid"


def _listed(catalogue: Catalogue, workspace: Path) -> None:
    entries, broken = catalogue.entries(workspace)
    assert len(entries) > FILES, "the bundled ones are there, too"
    assert not broken, f"all are valid: {broken}"
