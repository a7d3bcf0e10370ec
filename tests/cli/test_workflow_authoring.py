"""Writing a workflow in the terminal: begin it, check it, compare it with another."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Terminal
from tests.core.workflow.workflow_samples import call, encoded, routine, step, workflow

GOOD = workflow(step("a"))
BAD = workflow(step("A b"))


@pytest.mark.parametrize(
    ("typed_title", "expected"),
    [("My Flow", "my-flow"), ("Über: Prüfung!", "uber-prufung"), ("my.flow_1", "my.flow_1")],
)
def test_a_title_becomes_an_id(typed: Terminal, typed_title: str, expected: str) -> None:
    assert typed("workflow", "new", typed_title).code == 0

    document = json.loads(Path(f".interlock/workflows/{expected}.json").read_bytes())
    assert document["id"] == expected
    assert typed_title == expected or document["name"] == typed_title


def test_a_title_without_letters_is_told_which_characters_an_id_has(typed: Terminal) -> None:
    said = typed("workflow", "new", "???")

    assert said.code == 1
    assert "lower-case letters, digits, `-` and `_`" in said.err


def test_workflows_are_checked_by_id_file_and_directory(typed: Terminal, tmp_path: Path) -> None:
    (tmp_path / "flows" / "inner").mkdir(parents=True)
    (tmp_path / "flows" / "good.json").write_bytes(encoded(GOOD))
    (tmp_path / "flows" / "inner" / "bad.json").write_bytes(encoded(BAD))

    assert typed("workflow", "validate", "hello").code == 0
    assert typed("workflow", "validate", "flows/good.json", "hello").code == 0
    said = typed("workflow", "validate", "flows")
    assert said.code == 1
    assert "ok: flows/good.json" in said.out
    assert "not valid: flows/inner/bad.json" in said.out
    assert "1 of 2 files are valid." in said.out
    assert typed("workflow", "validate", "helo").code == 1


def test_watching_prints_only_what_has_changed(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_bytes(encoded(GOOD))
    second.write_bytes(encoded(GOOD))
    moments = iter([lambda: second.write_bytes(encoded(BAD)), lambda: None])

    def sleep(_: float) -> Any:
        for happens in moments:
            return happens()
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    said = typed("workflow", "validate", "a.json", "b.json", "--watch")

    assert said.code == 0
    assert said.out.count("ok: a.json") == 1
    assert said.out.count("ok: b.json") == said.out.count("not valid: b.json") == 1


def test_two_workflows_are_compared_by_their_meaning(typed: Terminal, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(encoded(workflow(step("a"), step("b"))))
    (tmp_path / "b.json").write_bytes(encoded(workflow(step("a", prompt="Other."), step("c"))))
    (tmp_path / "c.json").write_bytes(json.dumps(workflow(step("a"), step("b"))).encode())

    said = typed("workflow", "diff", "a.json", "b.json")

    assert said.out.splitlines() == [
        "removed b",
        "added c",
        "changed a prompt",
        "  - Do a.",
        "  + Other.",
        "3 differences.",
    ]
    assert typed("workflow", "diff", "a.json", "c.json").out == "They mean the same.\n"


def test_a_file_anywhere_finds_the_routines_beside_it(typed: Terminal, tmp_path: Path) -> None:
    flows = tmp_path / "elsewhere"
    flows.mkdir()
    (flows / "inner.json").write_bytes(encoded(routine("inner", step("look"))))
    (flows / "outer.json").write_bytes(encoded(workflow(call("c", "inner"))))

    assert typed("workflow", "validate", "elsewhere/outer.json").code == 0
    assert "Step look" in typed("workflow", "preview", "elsewhere/outer.json").out


def test_a_file_with_errors_of_form_shows_its_warnings_as_well(
    typed: Terminal, tmp_path: Path
) -> None:
    repeated = {"name": "f", "definition": "Do it."}
    document = workflow(step("a", prompt=7), functionDefinitions=[repeated, repeated])
    (tmp_path / "bad.json").write_bytes(encoded(document))

    said = typed("workflow", "validate", "bad.json")

    assert "error (value)" in said.out
    assert "warning (function)" in said.out
    assert "0 of 1 file is valid." in said.out


def test_a_preview_shows_the_defaults_of_inputs(typed: Terminal, tmp_path: Path) -> None:
    inputs = {
        "place": {"description": "Where to look", "default": "the attic"},
        "thing": {"description": "What to look for"},
    }
    document = routine("seek", step("a", prompt="Look for {thing} in {place}."), inputs=inputs)
    (tmp_path / "seek.json").write_bytes(encoded(document))

    assert (
        "Look for <What to look for> in the attic." in typed("workflow", "preview", "seek.json").out
    )
