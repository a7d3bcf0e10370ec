"""The hash of a workflow: one for each meaning, everywhere, on every machine, for good."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.app.context import App
from interlock.app.sessions import bundle
from interlock.app.sessions.bundle import SessionExport
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import (
    COMPILER_VERSION,
    CompiledStep,
    decode_workflow,
)
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.core.workflow.problems import InvalidWorkflow
from interlock.core.workflow.prompt import RenderedPrompt
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.core.workflow.workflow_samples import (
    EVERYTHING,
    KNOWN,
    OWN,
    ROUTINE,
    Doc,
    compiled,
    encoded,
    library,
    rendered,
    step,
    workflow,
    workflows,
)
from tests.effort import scale
from tests.mcp.agent import Agent

TESTS = Path(__file__).parents[2]
FOREIGN = sorted((TESTS / "foreign").glob("*.json"))
GOLDEN = TESTS / "golden" / "workflows.json"
CHANGED = """\
`{name}` compiles to something else than before.

If that was not meant, it is a mistake: mend it. If it was, runs that have begun keep what they
began with, and new ones must be told apart from them: raise COMPILER_VERSION in
src/interlock/core/workflow/compiled_workflow.py and write the new hashes with
`python -m tests.core.workflow.test_hash`, in the commit that changes the compiler.
"""


def hashes() -> dict[str, str]:
    """Of everything that is pinned; nothing for a file that is refused."""
    found = {
        f"own/{name}": compile_content(encoded(document), KNOWN) for name, document in OWN.items()
    }
    found |= {f"foreign/{path.name}": compile_content(path.read_bytes(), KNOWN) for path in FOREIGN}
    return {
        name: "" if isinstance(one, InvalidWorkflow) else one.pinned.hash
        for name, one in found.items()
    }


def golden() -> Doc:
    return json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", sorted(hashes()))
def test_golden_hashes_never_change(name: str) -> None:
    pinned = golden()["hashes"]

    assert name in pinned, f"pin `{name}`: python -m tests.core.workflow.test_hash"
    assert hashes()[name] == pinned[name], CHANGED.format(name=name)


def test_the_golden_hashes_are_those_of_this_compiler() -> None:
    assert golden()["compilerVersion"] == COMPILER_VERSION, CHANGED.format(name="The whole")
    assert golden()["hashes"].keys() == hashes().keys()


def elsewhere(cwd: Path, **environment: str) -> Any:
    """The hashes as another process finds them."""
    program = "import json, sys; from tests.core.workflow.test_hash import hashes;"
    command = [sys.executable, "-c", f"{program} print(json.dumps(hashes()))"]
    paths = os.pathsep.join((str(TESTS.parent), str(TESTS.parent / "src")))
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "INTERLOCK_HOME")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, "PYTHONPATH": paths, **environment},
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "4294967295", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
        {"PYTHONHASHSEED": "7", "LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Pacific/Apia"},
    ],
    ids=lambda found: found["PYTHONHASHSEED"],
)
def test_another_process_finds_the_same(environment: dict[str, str], tmp_path: Path) -> None:
    assert elsewhere(tmp_path, **environment) == hashes()


def hash_of(content: bytes) -> str:
    found = compile_content(content, KNOWN)
    assert isinstance(found, Compilation)
    return found.pinned.hash


@st.composite
def shuffled(draw: st.DrawFn, document: Any) -> Any:
    """The same JSON with the keys of every object in another order."""
    if isinstance(document, list):
        return [draw(shuffled(item)) for item in document]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(document, dict):
        names: list[str] = draw(st.permutations(sorted(document)))  # pyright: ignore
        return {name: draw(shuffled(document[name])) for name in names}  # pyright: ignore
    return document


@settings(max_examples=scale(30))
@given(workflows().flatmap(lambda document: st.tuples(st.just(document), shuffled(document))))
def test_the_order_of_keys_does_not_matter(documents: tuple[Doc, Doc]) -> None:
    one, other = documents

    assert hash_of(encoded(one)) == hash_of(encoded(other))


@pytest.mark.invariant("one-hash")
def test_the_order_of_required_outputs_does_not_matter() -> None:
    def outputs(*names: str) -> bytes:
        required = dict.fromkeys(names, "It.")
        return encoded(workflow(step(promptBlocks={"goal": "G.", "outputRequired": required})))

    assert hash_of(outputs("a", "b")) == hash_of(outputs("b", "a"))


def test_spaces_line_breaks_escapes_and_a_byte_order_mark_do_not_matter() -> None:
    plain = json.dumps(EVERYTHING, ensure_ascii=False, separators=(",", ":"))
    forms = [
        plain.encode(),
        json.dumps(EVERYTHING).encode(),
        json.dumps(EVERYTHING, indent="\t").replace("\n", "\r\n").encode(),
        plain.encode("utf-8-sig"),
        b" \n" + plain.encode() + b"\n\n",
    ]

    assert len({hash_of(form) for form in forms}) == 1


NOT_RUN = {"about", "examples", "description", "tags", "$schema"}
"""What people read when they choose; a run is the same whatever it says."""


@pytest.mark.parametrize("field", sorted(EVERYTHING.keys() - NOT_RUN))
def test_what_a_run_is_made_of_is_in_the_hash(field: str) -> None:
    rest = {name: value for name, value in EVERYTHING.items() if name != field}
    others: Doc = {"id": "other", "name": "Other", "version": "2.0.0", "kind": "routine"}
    others["steps"] = [*EVERYTHING["steps"], step("more")]
    # Without these the file makes no sense.
    [risk], report = EVERYTHING["assessments"], EVERYTHING["contracts"]["report"]
    others["assessments"] = [{**risk, "purpose": "How bold"}]
    others["contracts"] = {"report": {**report, "example": {"text": "<its text>"}}}
    others["extensionPoints"] = [{**one, "default": "x"} for one in EVERYTHING["extensionPoints"]]
    changed = {**rest, field: others[field]} if field in others else rest

    assert hash_of(encoded(changed)) != hash_of(encoded(EVERYTHING))


def test_a_routine_and_a_binding_are_in_the_hash_of_what_uses_them() -> None:
    before = compiled(EVERYTHING, KNOWN).pinned.hash
    renamed = {**ROUTINE, "version": "1.0.1"}

    assert compiled(EVERYTHING, library(renamed, tool="make")).pinned.hash != before
    assert compiled(EVERYTHING, library(ROUTINE, tool="ninja")).pinned.hash != before
    assert compiled(EVERYTHING, library(ROUTINE, tool="make", unused="x")).pinned.hash == before


def installed(workspace: Path, document: Doc) -> None:
    directory = workspace / ".interlock" / "workflows"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{document['id']}.json").write_bytes(encoded(document))


def test_it_is_the_same_whoever_tells_it(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "a" / "b c" / "ü"
    for document in (EVERYTHING, ROUTINE):
        installed(workspace, document)
    monkeypatch.chdir(tmp_path)
    agent, where = Agent(McpProtocol(app, TOOLS)), {"workspacePath": str(workspace)}
    name = EVERYTHING["id"]

    begun = agent.ok(
        "start_workflow", workflowId=name, goal="Try it", context={"depth": "full"}, **where
    )
    exported = bundle.export(app, begun["introduction"]["session"])
    assert isinstance(exported, SessionExport)
    content = json.loads(exported.document)["content"]
    shown = agent.ok("inspect_workflow", workflowId=name, mode="compiled", **where)
    [listed] = agent.ok("list_workflows", query=name, **where)["workflows"]

    pinned = compiled(EVERYTHING, library(ROUTINE)).pinned
    assert (
        listed["hash"] == shown["hash"] == begun["introduction"]["workflow"]["hash"] == pinned.hash
    )
    assert shown["content"] == content["blobs"][pinned.hash] == pinned.content.decode()
    [started] = [one["body"] for one in content["events"] if "workflowHash" in str(one["body"])]
    assert pinned.hash in json.dumps(started)
    assert str(tmp_path) not in pinned.content.decode()


def test_the_prompt_is_the_same_from_the_file_and_from_the_pinned_bytes() -> None:
    wanted = {"web_browsing": "required", "delegation": "preferred"}
    pinned = compiled(workflow(step(), capabilities=wanted)).pinned

    prompts: list[object] = []
    for found in (pinned.workflow, decode_workflow(pinned.content)):
        [one] = found.steps
        assert isinstance(one, CompiledStep)
        prompts.append(rendered(found, one, (positions.Frame(0),), opening=()))

    assert isinstance(prompts[0], RenderedPrompt)
    assert prompts[0] == prompts[1]


if __name__ == "__main__":
    pinned_now = {"compilerVersion": COMPILER_VERSION, "hashes": dict(sorted(hashes().items()))}
    GOLDEN.write_text(json.dumps(pinned_now, indent=2) + "\n")
