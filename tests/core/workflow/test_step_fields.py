"""Fields of a step and settings of a feature that are compiled in, or refused."""

from interlock.core.workflow.compiled_workflow import CompiledStep
from interlock.core.workflow.outline import draw
from tests.core.workflow.workflow_samples import OWN, Doc, compiled, problems, step, workflow


def steps(document: Doc) -> list[CompiledStep]:
    return [one for one, _ in compiled(document).pinned.workflow.steps_with_loops()]


def test_what_is_kept_and_set_is_compiled_in() -> None:
    contract = {"contractRef": "gap", "keep": True}
    document = workflow(
        step("a", keep=True, sets=["x", "x"], title="On {{x}}"), step("b", outputContract=contract)
    )

    a, b = steps(document)

    assert (a.keep, a.is_kept, a.title) == (True, True, "On {{x}}")
    assert [(key.name, key.is_always_asked) for key in a.sets] == [("x", True)]
    assert (b.keep, b.is_kept) == (False, True)
    assert problems(workflow(step(sets=["ok", "goal"]))) == [("context", "/steps/0/sets/1")]


def test_a_step_that_only_reads_is_marked_with_all_that_it_becomes() -> None:
    found = steps(OWN["reading"])

    assert [one.read_only for one in found] == [True] * 5 + [False]
    assert b"readOnly" not in compiled(workflow(step(readOnly=False))).pinned.content
    [_, first, *_] = draw(compiled(OWN["reading"]).pinned.workflow)
    assert first == "├─ 1. Step look [look] (only reads)"


def test_a_feature_takes_settings_of_its_own_type() -> None:
    def features(config: Doc, name: str = "wr.features.subagent_guidance") -> Doc:
        return workflow(step(), features=[{"id": name, "config": config}])

    [one] = steps(features({"agentsMax": 3}))

    assert "at most 3 sub-agents" in one.prompt
    assert problems(features({"agentsMax": 0})) == [("value", "/features/0/config/agentsMax")]
    assert problems(features({"agents": 1})) == [("field", "/features/0/config/agents")]
    assert problems(features({"n": 1}, "capabilities")) == [("feature", "/features/0/config")]
