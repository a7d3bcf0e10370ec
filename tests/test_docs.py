"""The documents are true: the reference is current, links lead somewhere, targets exist."""

import re
import runpy
from pathlib import Path

import pytest

from interlock.cli.commands import interlock

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for path in ROOT.rglob("*.md")
    if not {".venv", "node_modules", ".git"} & set(path.relative_to(ROOT).parts)
]


def test_the_reference_is_what_the_code_says() -> None:
    generated = runpy.run_path(str(ROOT / "docs" / "reference" / "generate.py"))["pages"]()

    assert {path: path.read_text() for path in generated} == generated, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_one_title(page: Path) -> None:
    without_code = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)

    assert len(re.findall(r"^# ", without_code, re.MULTILINE)) == 1


def test_every_target_that_is_spoken_of_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    spoken = {
        target
        for page in PAGES
        for target in re.findall(r"`?make ([a-z-]+)`?", page.read_text(encoding="utf-8"))
        if f"`make {target}`" in page.read_text() or f"    make {target}" in page.read_text()
    }

    assert spoken
    assert [target for target in spoken if f"\n{target}:" not in makefile] == []


def test_every_command_can_print_json() -> None:
    """What the change log says; these print nothing else."""
    leaves = runpy.run_path(str(ROOT / "docs" / "reference" / "generate.py"))["_leaves"]
    without = {
        " ".join(path)
        for path, command in leaves(interlock, ("interlock",))
        if not any("--json" in parameter.opts for parameter in command.params)
    }

    assert without == {
        "interlock session events",
        "interlock statusline",
        "interlock session get-state",
        "interlock driver run",
        "interlock hook",
        "interlock sandbox run",
        "interlock sandbox reach",
    }
