"""The guide to writing workflows: every snippet of it is a workflow, or a part of one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.parsing import ParsedWorkflow, parse_workflow
from interlock.workspace.projects.catalogue import BUNDLED_DIRECTORY
from tests.core.workflow.workflow_samples import compiled, workflow

GUIDE = (Path(__file__).parents[3] / "docs" / "guide" / "workflows.md").read_text()
SNIPPETS: list[Any] = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", GUIDE, re.S)]
BUNDLED = [parse_workflow(path.read_bytes()) for path in BUNDLED_DIRECTORY.glob("*.json")]
KNOWN = Library(
    {one.workflow.id: one.workflow for one in BUNDLED if isinstance(one, ParsedWorkflow)}
)
SHOWN = (
    "assessmentRefs",
    "assessmentConsequences",
    "validationCriteria",
    "contextMapping",
    "resultAs",
    "keep",
    "sets",
    "while",
    "forEach",
    "for",
    "until",
    "parallelDelegations",
    "verification",
    "human_approval",
    "contracts",
    "config",
    "templateCall",
)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_is_valid(snippet: Any) -> None:
    document = workflow() | snippet if "steps" in snippet else workflow(snippet)

    found = compiled(document, KNOWN)

    assert [str(one) for one in found.warnings if one.rule not in ("style", "template")] == []


def test_each_construct_is_shown() -> None:
    snippets = json.dumps(SNIPPETS)

    assert [word for word in SHOWN if f'"{word}"' not in snippets] == []
    assert "{{notes." in snippets
