"""Packs: their schemas, their examples, and that both say what the engine reads."""

import copy
import subprocess
import sys
from typing import Any, cast

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import Json
from interlock.core.workflow import packs, schemas
from interlock.core.workflow.handoff_artifacts import PackArtifact
from interlock.core.workflow.packs import EXAMPLES, Pack, contract_name, kind_without_prefix
from tests.blanks import fill
from tests.core.workflow.test_contracts import paths

STRUCTS: dict[str, Any] = {
    str(one.__struct_config__.tag): one for one in PackArtifact.__subclasses__()
}


def taken(name: str) -> Pack:
    found = packs.pack(name)
    assert found is not None
    return found


def sample(name: str) -> dict[str, Json]:
    """The example with its blanks replaced."""
    return fill(taken(name).example)


def test_each_kind_of_artifact_has_a_pack() -> None:
    assert set(packs.names()) == set(STRUCTS)
    assert packs.pack("nonsense") is None


@pytest.mark.parametrize("name", packs.names())
def test_an_example_is_accepted_with_and_without_the_foreign_prefix(name: str) -> None:
    schema, example = taken(name).schema, sample(name)

    assert example["kind"] == name
    assert schemas.errors(schema, cast("Json", example)) == ()
    assert schemas.errors(schema, {**example, "kind": f"wr.{name}"}) == ()
    assert schemas.errors(schema, {**example, "kind": "other"})
    assert isinstance(msgspec.convert(example, STRUCTS[name]), STRUCTS[name])


@pytest.mark.parametrize("name", packs.names())
def test_a_schema_stands_alone_and_is_cheap(name: str) -> None:
    pack = taken(name)
    text = msgspec.json.encode(pack.schema)
    schemas.weigh(pack.schema, "", weighing := schemas.CostTally())

    cast("Any", jsonschema.Draft202012Validator).check_schema(pack.schema)
    assert not any(word in text for word in (b"$ref", b"$defs", b"discriminator", b'"title"'))
    assert weighing.flaws == []
    assert weighing.work <= 150


@pytest.mark.parametrize("name", packs.names())
def test_fields_beyond_those_of_a_kind_are_allowed(name: str) -> None:
    more: dict[str, Json] = {**sample(name), "more": {"a": 1}}

    assert schemas.errors(taken(name).schema, more) == ()
    assert schemas.undeclared_members(taken(name).schema, more) == ("/more",)


def test_a_finding_is_open() -> None:
    finding = {"severity": "nit", "summary": "a space", "remedy": "take it out", "tool": 3}
    verdict = cast("Json", {**sample("review_verdict"), "findings": [finding]})

    assert schemas.undeclared_members(taken("review_verdict").schema, verdict) == ()


NAMES = st.sampled_from(packs.names())
WORDS = st.sampled_from(["", "a few words", "x" * 150, "x" * 201, "x" * 1025, "low", "stop"])
ANYTHING: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    WORDS,
    st.lists(WORDS, max_size=13),
    st.dictionaries(WORDS, WORDS, max_size=2),
    st.just({"level": "low", "rationale": "a few words"}),
)


@given(NAMES, st.data())
def test_the_schema_and_the_struct_take_the_same(name: str, data: st.DataObject) -> None:
    value: Any = sample(name)
    properties = sorted({*taken(name).schema["properties"]} - {"kind"})
    for _ in range(data.draw(st.integers(1, 2))):
        more = [(key,) for key in properties if key not in value]
        places = [path for path in paths(value) if path != ("kind",)]
        *path, last = data.draw(st.sampled_from([*places, *more] or [("more",)]))
        here = value
        for step in path:
            here = here[step]
        if last in here and data.draw(st.booleans()) and isinstance(here, dict):
            del here[last]
        else:
            here[last] = copy.deepcopy(data.draw(ANYTHING))

    try:
        is_read = bool(msgspec.convert(value, STRUCTS[name]))
    except msgspec.ValidationError:
        is_read = False

    assert (schemas.errors(taken(name).schema, value) == ()) == is_read


@pytest.mark.parametrize(
    ("name", "changes", "pointer"),
    [
        ("verification", {"exitCode": "0"}, "/exitCode"),
        ("gate_verdict", {"rationale": "x" * 19}, "/rationale"),
        ("assessment", {"dimensions": {}}, "/dimensions"),
        ("assessment", {"dimensions": {"a": {"rationale": "x"}}}, "/dimensions/a"),
        ("discovery_handoff", {"version": 2}, "/version"),
        ("discovery_handoff", {"keyInvariants": ["x"] * 13}, "/keyInvariants"),
        ("loop_control", {"decision": "Stop"}, "/decision"),
        ("review_verdict", {"findings": [{"severity": "nit"}]}, "/findings/0/summary"),
    ],
)
def test_what_a_pack_demands_is_demanded(name: str, changes: dict[str, Json], pointer: str) -> None:
    [error] = schemas.errors(taken(name).schema, {**sample(name), **changes})

    assert error.pointer == pointer


@pytest.mark.parametrize("code", [0, 1, 127, -9])
def test_a_command_may_be_reported_however_it_ended(code: int) -> None:
    report: Json = {**sample("verification"), "exitCode": code}

    assert schemas.errors(taken("verification").schema, report) == ()


@pytest.mark.parametrize("prefix", ["", "wr.contracts.", "interlock.contracts."])
def test_a_contract_has_one_name_however_it_is_referred_to(prefix: str) -> None:
    assert contract_name(f"{prefix}loop_control") == "loop_control"


def test_a_kind_has_one_name_with_and_without_the_foreign_prefix() -> None:
    assert kind_without_prefix("wr.gap") == kind_without_prefix("gap") == "gap"
    assert kind_without_prefix("wrong") == "wrong"


def test_the_examples_of_what_the_engine_reads_are_those_of_the_packs() -> None:
    assert len(EXAMPLES) == 6
    assert all(taken(name).example == example for name, example in EXAMPLES.items())


def test_nothing_is_built_when_the_module_is_imported() -> None:
    code = (
        "import sys; from interlock.core.workflow import conditions, contracts, criteria, packs;"
        "print(*sys.modules);"
        "print(packs._pack.cache_info().currsize,"
        " contracts._contract_of_pack.cache_info().currsize)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, built = run.stdout.splitlines()

    assert built == "0 0"
    assert not {
        "re2",
        "jsonschema_rs",
        "rfc8785",
        "difflib",
        "interlock.core.workflow.definition",
    } & set(modules.split())
