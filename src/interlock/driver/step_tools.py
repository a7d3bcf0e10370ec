"""The tools that belong to the work itself: submit a step, report an issue, ask, spawn an agent.

They change nothing in the worktree; `session_work` carries them out.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.core.canonical import Json
from interlock.core.unattended.conversation import ToolSpec
from interlock.core.unattended.journal import COMPLETE_STEP
from interlock.driver.tools.catalogue import arguments_schema

REPORT_ISSUE, SPAWN_AGENT, ASK_USER = "report_issue", "spawn_agent", "ask_user"
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
    summary: Annotated[str, Meta(description="The problem in one sentence.", max_length=2_000)]


class AskUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: Annotated[
        str,
        Meta(
            description="The question, with the choices and what you would do.",
            min_length=1,
            max_length=2_000,
        ),
    ]


class SpawnAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workflow: Annotated[
        str,
        Meta(
            description="The id of the agent's workflow; an unknown one is answered with the list."
        ),
    ]
    goal: Annotated[str, Meta(description="What the agent must find out or do.", max_length=2_000)]


ARGUMENTS: dict[str, type[msgspec.Struct]] = {
    COMPLETE_STEP: CompleteStep,
    REPORT_ISSUE: ReportIssue,
    ASK_USER: AskUser,
    SPAWN_AGENT: SpawnAgent,
}
_DESCRIPTIONS = {
    COMPLETE_STEP: "Submit the current step when it is done. If something is missing, the result"
    " says what: add it and call this again. An accepted step ends this conversation.",
    REPORT_ISSUE: "Record a problem for the people who read the record. The work continues.",
    ASK_USER: "Ask the user a question that only a person can answer. The work stops until it is"
    " answered, which may take hours: first do all that does not depend on it.",
    SPAWN_AGENT: "Start another agent that works through a workflow in your worktree. Waits until"
    " it is done, and returns what it found.",
}


def own_tool_specs(names: tuple[str, ...]) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(name, _DESCRIPTIONS[name], arguments_schema(ARGUMENTS[name]))
        for name in names
        if name in ARGUMENTS
    )


def parse_own_call(name: str, text: str) -> msgspec.Struct | str:
    """Return the arguments of one of these tools, or why they cannot be used."""
    try:
        return msgspec.json.decode(text or "{}", type=ARGUMENTS[name])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"The arguments of {name} cannot be used: {error}. Nothing was done."


def advance_arguments(submission: CompleteStep) -> dict[str, Json]:
    """Return the arguments for `continue_workflow`, without the token."""
    output: dict[str, Json] = {"notesMarkdown": submission.notes}
    if submission.artifacts:
        output["artifacts"] = list(submission.artifacts)
    arguments: dict[str, Json] = {"output": output}
    if submission.context:
        arguments["context"] = submission.context
    return arguments
