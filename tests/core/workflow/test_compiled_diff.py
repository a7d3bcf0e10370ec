"""The difference between two workflows: what they mean, not how they are written."""

from interlock.core.workflow.compiled_diff import differences
from tests.core.workflow.workflow_samples import Doc, compiled, loop, step, workflow

FOR: Doc = {"type": "for", "count": 2}


def found(old: Doc, new: Doc) -> list[tuple[str, str, str]]:
    pair = (compiled(document).pinned.workflow for document in (old, new))
    return [(one.kind, one.part, one.field) for one in differences(*pair)]


def test_steps_are_added_removed_moved_and_changed() -> None:
    old = workflow(step("a"), step("b"), step("c"), loop("l", FOR, step("d")), version="1.0.0")
    new = workflow(
        step("x"),
        step("b", prompt="Other.", keep=True),
        step("a"),
        loop("l", FOR),
        step("d"),
        version="1.1.0",
    )
    new["steps"][3]["body"] = [step("e")]

    assert found(old, new) == [
        ("changed", "", "version"),
        ("removed", "c", ""),
        ("added", "x", ""),
        ("added", "e", ""),
        ("moved", "b", ""),
        ("moved", "d", ""),
        ("changed", "b", "prompt"),
        ("changed", "b", "keep"),
    ]


def test_another_way_to_write_the_same_is_no_difference() -> None:
    old = workflow(step("a", runCondition={"var": "x", "equals": 1}), step("b"))
    new = dict(reversed(list(old.items())))
    new["steps"] = [{**old["steps"][0], "type": "standard", "guidance": []}, old["steps"][1]]

    assert found(old, new) == []
