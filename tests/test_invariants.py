"""Every promise has a test and a fault; every test and fault names a promise that exists."""

import ast
from pathlib import Path

import pytest

from tests.invariants import INVARIANTS
from tests.prove import FAULTS, Fault, load

TESTS = Path(__file__).parent
IDS = [invariant.id for invariant in INVARIANTS]


def named_in_tests() -> set[str]:
    return {
        node.args[0].value
        for path in TESTS.rglob("test_*.py")
        if "mark.invariant" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "pytest.mark.invariant"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_each_invariant_has_its_own_id() -> None:
    assert len(set(IDS)) == len(IDS)


def test_invariants_and_tests_name_each_other() -> None:
    assert named_in_tests() == set(IDS)


def test_each_invariant_has_a_fault() -> None:
    assert {path.stem for path in FAULTS} == set(IDS)


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_fault_can_still_be_put_in(path: Path) -> None:
    fault = load(path)

    assert isinstance(fault, Fault)
    assert fault.source.read_text(encoding="utf-8").count(fault.old) == 1
    assert fault.new != fault.old
