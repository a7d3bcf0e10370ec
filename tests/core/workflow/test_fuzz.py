"""Hostile files: each has an answer, and what is taken can be started and looked at.

Exponential work would take minutes; the timeout of pytest ends it.
"""

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.preferences import Preferences
from interlock.core.session import context as contexts
from interlock.core.workflow import interpret, outline
from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled_workflow import decode_workflow
from interlock.core.workflow.compiler import EMPTY_LIBRARY, Compilation, compile_content
from interlock.core.workflow.interpret import Destination, Impasse
from interlock.core.workflow.problems import InvalidWorkflow
from tests.core.call_counts import count_calls
from tests.core.workflow.workflow_samples import (
    KNOWN,
    OWN,
    Doc,
    call,
    encoded,
    exists,
    library,
    loop,
    routine,
    step,
    workflow,
)
from tests.effort import scale

FOREIGN = Path(__file__).parents[2] / "foreign"
FILES: list[Any] = [
    *OWN.values(),
    *map(json.loads, (p.read_bytes() for p in FOREIGN.glob("*.json"))),
]
CONTEXT: Doc = {"goal": "g"}


def survived(content: bytes, known: Library = EMPTY_LIBRARY) -> Compilation | InvalidWorkflow:
    """The answer to a file, of which everything holds that must hold of every answer."""
    found = compile_content(content, known)
    if isinstance(found, InvalidWorkflow):
        errors = [one for one in found.problems if one.severity == "error"]
        assert errors, "it was refused for no reason"
        assert all(one.message for one in errors)
        _assert_placed(content, [one.pointer for one in errors])
    else:
        _assert_usable(found)
    return found


def _assert_placed(content: bytes, pointers: list[str]) -> None:
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        assert pointers == [""]
        return
    assert any(
        exists(document, pointer) or exists(document, pointer.rpartition("/")[0])
        for pointer in pointers
    ), pointers


def _assert_usable(found: Compilation) -> None:
    pinned = found.pinned
    assert decode_workflow(pinned.content) == pinned.workflow
    assert isinstance(interpret.begin(pinned.workflow, CONTEXT), Destination | Impasse)
    shown = list(outline.preview(pinned.workflow, CONTEXT, Preferences()))
    outline.draw(pinned.workflow)
    assert len(shown) == pinned.workflow.step_count


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where anything stands in a document."""
    yield at
    if isinstance(value, dict | list):
        pairs: Any = value.items() if isinstance(value, dict) else enumerate(value)  # pyright: ignore
        for key, item in pairs:
            yield from places(item, (*at, key))


PLACES = [list(places(document))[1:] for document in FILES]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e300,
    2**53,
    "",
    "\0",
    "ﷺ" * 300,
    "{{x}} {{bindings.y}} {z} {{",
    "x" * 100_000,
    "(a+)+$",
    [],
    [None],
    ["x"] * 50,
    {},
    {"a/b~c": {"": []}},
    {"var": "x", "matches": "(((((((((a{50}){50}){50}){50}"},
    {"$ref": "#"},
    {"type": "loop"},
    {"kind": "human_approval"},
    {"and": [{"or": [{"not": {"var": "a.b.c.d"}}]}]},
]
leaf: st.SearchStrategy[Any] = st.sampled_from(ODD) | st.text(max_size=8) | st.integers(-3, 1_001)


@st.composite
def mutated(draw: st.DrawFn, count: int = len(FILES)) -> Any:
    """Change one of the first `count` files: drop, double, replace, rename or move a few parts."""
    which = draw(st.integers(0, count - 1))
    document = copy.deepcopy(FILES[which])
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(PLACES[which]))
        try:
            around = document
            for key in way:
                around = around[key]
            _change(draw, document, around, last)
        except (LookupError, TypeError, AttributeError):
            continue  # it went with an earlier change
    return document


def _change(draw: st.DrawFn, document: Any, around: Any, last: str | int) -> None:
    how = draw(st.sampled_from(("drop", "double", "replace", "replace", "rename", "graft")))
    if how == "drop":
        del around[last]
    elif how == "double" and isinstance(last, int):
        around.insert(0, copy.deepcopy(around[last]))
    elif how == "rename" and isinstance(last, str):
        around[f"{last}s"] = around.pop(last)
    elif how == "graft":
        found = document
        for key in draw(st.sampled_from(PLACES[draw(st.integers(0, 2))])):
            found = found[key]
        around[last] = copy.deepcopy(found)
    else:
        around[last] = copy.deepcopy(draw(leaf))


@settings(max_examples=scale(1_000))
@given(mutated())
def test_a_mutilated_file_is_refused_or_works(document: Any) -> None:
    survived(encoded(document), KNOWN)


@settings(max_examples=scale(300))
@given(st.data())
def test_a_file_with_changed_bytes_is_refused_or_works(data: st.DataObject) -> None:
    content = bytearray(encoded(data.draw(st.sampled_from(FILES))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))

    survived(bytes(content), KNOWN)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b" " * 10_000_000,
        b'{"id": "' + b"x" * 10_000_000 + b'"}',
        b"[" * 500_000,
        b'{"a":' * 150_000,
        b'{"steps": ' + b"[" * 70 + b"]" * 70 + b"}",
        b'{"id": "\\ud800"}',
        b'{"\\udc00": 1}',
        b'{"id": "\xed\xa0\x80"}',
        b'{"id": "a\x00b"}',
        b'{"id": 1e999}',
        b'{"id": -1e-999}',
        b'{"id": ' + b"9" * 100_000 + b"}",
        b'{"id": 9007199254740992}',
        b'{"id": NaN}',
        b"\xff\xfe{\x00}\x00",
    ],
    ids=range(17),
)
def test_what_is_hardly_json_is_refused(content: bytes) -> None:
    assert isinstance(survived(content), InvalidWorkflow)


def many(count: int, make: Callable[[int], Doc]) -> Doc:
    return workflow(*map(make, range(count)))


def close(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        many(2_000, lambda n: step(f"a{n}", prompt="x" * 300, guidance=["a", "b"])),
        many(2_001, lambda n: step(f"a{n}")),
        many(2_000, lambda _: step("a")),
        many(2_000, lambda n: loop(f"l{n}", {"type": "for", "count": 1})),
        many(500, lambda n: step(f"a{n}", runCondition={"var": "v", "matches": f"(a|b){{50}}{n}"})),
        many(2_000, lambda n: step(f"a{n}", outputContract={"contractRef": "nobody"})),
        workflow({"id": "x" * 900_000, "title": "A", "prompt": "Do it."}),
        workflow({**step(), "x" * 900_000: 1}),
        workflow(call("c", "x" * 900_000)),
        workflow(step(), features=["x" * 900_000]),
        workflow(step(), **{f"x{n}": 1 for n in range(60_000)}),
    ],
    ids=range(11),
)
def test_a_huge_file_has_an_answer(document: Doc) -> None:
    survived(close(document), KNOWN)


EQUALS = {"and": [{"var": f"v{n}", "equals": n} for n in range(9)]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        workflow(step(), *[1] * 40_000),
        workflow({**step(), **{f"x{n}": 1 for n in range(30_000)}}),
        workflow(step(), features=[f"q{n}" for n in range(80_000)]),
        workflow(
            step(functionReferences=[f"q{n}" for n in range(80_000)]),
            functionDefinitions=[{"name": f"f{n}", "definition": "F."} for n in range(9)],
        ),
        many(1_800, lambda n: step(f"a{n}", runCondition=EQUALS)),
        many(15, lambda n: step(f"a{n}", prompt="{" * 65_000)),
    ],
    ids=range(6),
)
def test_a_hostile_file_is_no_more_work_than_an_ordinary_one(document: Doc) -> None:
    """A naive implementation does more than ten times the work."""
    content = close(document)

    assert _work(content) < 4 * _ordinary_work()
    survived(content, KNOWN)


@cache
def _ordinary_work() -> int:
    return _work(close(many(1_800, lambda n: step(f"a{n}", prompt="x" * 300, guidance=["a", "b"]))))


def _work(content: bytes) -> int:
    return count_calls(lambda: compile_content(content, KNOWN))


def test_no_more_warnings_are_told_than_one_can_read() -> None:
    said = "".join(f"{{{{{n}}}}}" for n in range(8_000))
    found = compile_content(close(workflow(step(prompt=said))))

    assert isinstance(found, Compilation)
    assert 0 < len(found.warnings) <= 50


def fan(width: int, depth: int, *leaves: Doc) -> Library:
    calls = [
        routine(f"r{n}", *(call(f"c{k}", f"r{n + 1}") for k in range(width))) for n in range(depth)
    ]
    return library(*calls, routine(f"r{depth}", *leaves))


BIG = routine("big", *(step(f"a{n}", prompt="{q} " * 15_000) for n in range(10)))


@pytest.mark.parametrize(
    ("document", "known"),
    [
        (workflow(call("c", "r0")), fan(1, 6, step())),
        (many(40, lambda n: call(f"c{n}", "r0")), fan(40, 4, step())),
        (
            many(30, lambda n: call(f"c{n}", "r0")),
            fan(30, 3, loop("l", {"type": "for", "count": 1})),
        ),
        (many(1_000, lambda n: call(f"c{n}", "r0")), fan(1_000, 4, step())),
        (
            workflow(call("c", "a")),
            library(routine("a", call("c", "b")), routine("b", call("c", "a"))),
        ),
        (
            many(100, lambda n: call(f"c{n}", "big")),
            library(BIG),
        ),
    ],
    ids=range(6),
)
def test_routines_that_multiply_are_refused(document: Doc, known: Library) -> None:
    assert isinstance(survived(encoded(document), known), InvalidWorkflow)


def test_at_the_most_a_routine_may_fill_four_megabytes_and_five_levels() -> None:
    assert isinstance(survived(encoded(workflow(call("c", "r0"))), fan(1, 4, step())), Compilation)


PATTERNS = [
    "(",
    "(a+)+$",
    "a{1000}{1000}",
    "(?=a)",
    "\\1",
    "(a|b){1000}" * 20,
    "[" * 999,
    "\\p{Greek}",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_refused_or_searched_in_linear_time(pattern: str) -> None:
    text = "a" * 50_000 + "!"
    for one in (
        step(runCondition={"var": "goal", "matches": pattern}),
        step(validationCriteria={"type": "regex", "pattern": pattern}),
        step(validationCriteria={"type": "schema", "schema": {"pattern": pattern}}),
    ):
        found = survived(encoded(workflow(one)))
        if isinstance(found, Compilation):
            interpret.begin(found.pinned.workflow, {"goal": text})


def multiplied(depth: int) -> Doc:
    defs = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 10} for n in range(depth)}
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{depth}": {"type": "object"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"goal": {"pattern": "(a+)+$"}}},
        {"$ref": "https://example.org/schema"},
        {"$dynamicRef": "#x"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        multiplied(9),
        {"properties": 5},
    ],
    ids=range(6),
)
def test_a_context_schema_is_refused_or_gives_an_answer(schema: Doc) -> None:
    content = encoded(workflow(step(runCondition={"var": "x"}), contextSchema=schema))
    found = survived(content)
    is_endless = "$defs" in schema
    assert isinstance(found, InvalidWorkflow) or not is_endless
    if isinstance(found, Compilation):
        contexts.schema_violation({"goal": "a" * 2_000}, found.pinned.workflow.context_schema)
