"""The tools that the driver sends: no provider rejects them, and a model can call them freely."""

import json
from typing import Any

import pytest

from interlock.core.unattended.conversation import ModelRequest, ToolSpec
from interlock.core.unattended.journal import COMPLETE_STEP
from interlock.driver.step_tools import ARGUMENTS, CompleteStep, own_tool_specs, parse_own_call
from interlock.driver.tools.catalogue import TOOLS, repository_tools, tool_specs
from tests.agents.models.fake_provider import FakeProvider, Reply
from tests.agents.models.wires import ASKED, Wire, opened

REPOSITORIES = ((), ("main",), ("main", *(f"repository-{number}" for number in range(20))))


def sent_tools() -> list[tuple[ToolSpec, ...]]:
    """Return the tools of a request, for each way in which they can differ."""
    own = own_tool_specs(tuple(ARGUMENTS))
    return [tool_specs(TOOLS, repository_tools(names)) + own for names in REPOSITORIES]


@pytest.mark.anyio
async def test_no_provider_rejects_a_tool_of_the_driver(wire: Wire, provider: FakeProvider) -> None:
    async with opened(wire, provider) as port:
        for tools in sent_tools():
            provider.replies = [Reply(wire.stream(texts=["So."]))]
            await port.answer(ModelRequest("m", "", tools, ASKED, 1_000), lambda _: None)

    # The library could rewrite schemas, so look at the bytes that it sent.
    for tools, request in zip(sent_tools(), provider.requests, strict=True):
        sent = [tool.get("function", tool) for tool in request.json["tools"]]
        assert [tool["name"] for tool in sent] == [*TOOLS, *ARGUMENTS]
        schemas = [tool.get("parameters", tool.get("input_schema")) for tool in sent]
        assert schemas == [json.loads(json.dumps(spec.schema)) for spec in tools]


def test_a_model_can_submit_any_json_as_an_artifact() -> None:
    artifacts: Any = [{"kind": "proof", "runs": [{"exitCode": 0}, None]}, {}, "text", 1, [[1]]]
    context: Any = {"a": None, "b": [{"c": 1}]}

    text = json.dumps({"artifacts": artifacts, "context": context})
    call = parse_own_call(COMPLETE_STEP, text)

    assert isinstance(call, CompleteStep), call
    assert (list(call.artifacts), call.context) == (artifacts, context)
