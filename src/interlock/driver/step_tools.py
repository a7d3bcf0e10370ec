"""The tools that belong to the work itself: hand a step in, report an issue, spawn an agent.

They change nothing in the worktree; `session_work` carries them out.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.core.canonical import Json
from interlock.core.unattended.conversation import ToolSpec
from interlock.core.unattended.journal import COMPLETE_STEP
from interlock.driver.tools.catalogue import arguments_schema

REPORT_ISSUE, SPAWN_AGENT = "report_issue", "spawn_agent"
# msgspec writes no schema for `Json`, and OpenAI rejects an array without `items`. The schema
# asks for objects; other JSON is still decoded, so that the server's refusal explains the problem.
_OPEN_OBJECT: dict[str, Json] = {"type": "object", "properties": {}, "additionalProperties": True}
JsonObject = Annotated[Json, Meta(extra_json_schema=_OPEN_OBJECT)]


class CompleteStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    notes: Annotated[
        str,
        Meta(
            description="Markdown: what you did, found and decided, what proves it, what is open."
        ),
    ] = ""
    artifacts: Annotated[
        tuple[JsonObject, ...], Meta(description="The structured results that the step asks for.")
    ] = ()
    context: Annotated[
        dict[str, Json],
        Meta(
            description="Only the values that have changed, by their keys.",
            extra_json_schema=_OPEN_OBJECT,
        ),
    ] = {}


class ReportIssue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    severity: Literal["info", "warning", "error", "fatal"]
    summary: Annotated[str, Meta(description="What is wrong, in a sentence.", max_length=2_000)]


class SpawnAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workflow: Annotated[str, Meta(description="The id of the workflow it works through.")]
    goal: Annotated[str, Meta(description="What it is to find out or do.", max_length=2_000)]


ARGUMENTS: dict[str, type[msgspec.Struct]] = {
    COMPLETE_STEP: CompleteStep,
    REPORT_ISSUE: ReportIssue,
    SPAWN_AGENT: SpawnAgent,
}
_DESCRIPTIONS = {
    COMPLETE_STEP: "Hand in the step you were shown, once it is done. If something is missing, you"
    " are told what, and call it again. It ends this conversation.",
    REPORT_ISSUE: "Tell the people who read the record that something is wrong. It stops nothing.",
    SPAWN_AGENT: "Have another agent work through a workflow in your worktree, and get what it"
    " found. You wait until it is done.",
}


def own_tool_specs(names: tuple[str, ...]) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(name, _DESCRIPTIONS[name], arguments_schema(ARGUMENTS[name]))
        for name in names
        if name in ARGUMENTS
    )


def parse_own_call(name: str, text: str) -> msgspec.Struct | str:
    """The arguments of one of these tools, or what is wrong with them."""
    try:
        return msgspec.json.decode(text or "{}", type=ARGUMENTS[name])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"The arguments of {name} cannot be used: {error}. Nothing was done."


def advance_arguments(handed_in: CompleteStep) -> dict[str, Json]:
    """The same, as `continue_workflow` takes it; the token comes with it."""
    output: dict[str, Json] = {"notesMarkdown": handed_in.notes}
    if handed_in.artifacts:
        output["artifacts"] = list(handed_in.artifacts)
    arguments: dict[str, Json] = {"output": output}
    if handed_in.context:
        arguments["context"] = handed_in.context
    return arguments
