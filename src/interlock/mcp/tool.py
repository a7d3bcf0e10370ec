"""The contract of a tool: the one object that its listing, checks and corrections come from."""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from interlock.app.callers.caller import Caller
from interlock.app.context import App
from interlock.core.canonical import Json
from interlock.mcp import schema
from interlock.mcp.results import SuggestedCall, ToolResult

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


NAME_CHARS_MAX = 64


def normalise_name(name: str) -> str:
    """`workflow_id`, `WorkflowId` and `workflow-id` are the same name."""
    # The same few names come with every call; text too long to be a name is not worth caching.
    return _cached_normalise_name(name) if len(name) <= NAME_CHARS_MAX else _normalise_name(name)


def _normalise_name(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())


_cached_normalise_name = lru_cache(maxsize=1024)(_normalise_name)


class Tool(msgspec.Struct, Generic[Arguments], frozen=True, dict=True):
    name: str
    purpose: str
    """The description for the model: what the tool does, and when to call it."""
    arguments: type[Arguments]
    """The struct of the arguments; each field has a description and an example (`msgspec.Meta`)."""
    cue: str
    """Its main arguments, and when to call it: all that some clients show of a tool at first."""
    call: Callable[[App, Caller, Arguments], ToolResult]
    is_read_only: bool = False
    is_idempotent: bool = False
    """Whether the same call again, whenever it comes, changes nothing more."""
    is_destructive: bool = False
    """Whether something that a person wrote may be gone afterwards."""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Other names that agents use, and the path (`output.notesMarkdown`) that each stands for."""
    former_names: Mapping[str, Mapping[str, Json]] = msgspec.field(
        default_factory=dict[str, Mapping[str, Json]]
    )
    """The names of the tools that this one replaced, each with its equivalent arguments."""
    suggest_call: Callable[[Mapping[str, Json]], SuggestedCall | None] | None = None
    """Suggests a call for the arguments sent, where filling them into the example will not do."""

    @cached_property
    def input_schema(self) -> schema.Schema:
        return schema.arguments_schema(self.arguments)

    @cached_property
    def argument_paths(self) -> dict[str, str]:
        """The path of each argument, by every name that it may come under."""
        paths = {normalise_name(alias): path for alias, path in self.aliases.items()}
        return paths | {normalise_name(name): name for name in self.input_schema["properties"]}

    @cached_property
    def listing(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it."""
        hints: dict[str, bool] = {"readOnlyHint": True} if self.is_read_only else {}
        if not self.is_read_only and not self.is_destructive:
            hints["destructiveHint"] = False
        if not self.is_read_only and self.is_idempotent:
            hints["idempotentHint"] = True
        return {
            "name": self.name,
            "description": self.purpose,
            "inputSchema": schema.listed_schema(self.input_schema),
            # No schema of the answer: no model sees one, and some clients check refusals against it
            # and hand the model an error of their own instead of the refusal.
            # Codex asks the user before every call of a tool, unless the tool is read-only or
            # declares that it destroys nothing and stays on this machine. No tool of ours removes
            # anything that was recorded, and none talks to another machine.
            # Hints are left out that say what the protocol takes for granted.
            "annotations": {**hints, "openWorldHint": False},
        }

    def example_call(self) -> SuggestedCall:
        """A call with every required argument, to be filled in."""
        return SuggestedCall(self.name, schema.example_arguments(self.input_schema))

    def corrected_call(self, sent_arguments: Mapping[str, Json]) -> SuggestedCall:
        """The example call with the arguments sent filled in, or the call that must come first."""
        if self.suggest_call and (call := self.suggest_call(sent_arguments)):
            return call
        arguments = schema.example_arguments(self.input_schema)
        for name, value in sent_arguments.items():
            # A required text that is blank would be refused.
            if name not in arguments or not isinstance(value, str) or value.strip():
                arguments[name] = value
        return SuggestedCall(self.name, arguments)
