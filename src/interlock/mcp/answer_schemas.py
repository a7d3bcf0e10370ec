"""The structure of each tool's answer, for the reference. It is not in the listing of the tools."""

from typing import cast

import msgspec

from interlock.app.notes.results import (
    NoteChangeResult,
    NoteContext,
    NoteSearchResult,
    NoteText,
)
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.session.answer import Answer
from interlock.mcp.approval_tool import RequestAnswer
from interlock.mcp.catalogue_tools import Inspection, WorkflowList
from interlock.mcp.delegation_tools import DecisionAnswer, DelegationAnswer
from interlock.mcp.message_tools import MessagesAnswer
from interlock.mcp.reservation_tools import HoldingsAnswer
from interlock.mcp.resume_tool import ResumeAnswer
from interlock.mcp.schema import Schema, plain_schema
from interlock.mcp.session_tool import SessionAnswer
from interlock.mcp.work_tools import WorkAnswer

ANSWERS: dict[str, type[msgspec.Struct]] = {
    "list_workflows": WorkflowList,
    "inspect_workflow": Inspection,
    "start_workflow": Answer,
    "continue_workflow": Answer,
    "checkpoint_workflow": Answer,
    "resume_session": ResumeAnswer,
    "session": SessionAnswer,
    "request_approval": RequestAnswer,
    "delegate": DelegationAnswer,
    "complete_delegation": DelegationAnswer,
    "record_decision": DecisionAnswer,
    "search_notes": NoteSearchResult,
    "read_note": NoteText,
    "write_note": NoteChangeResult,
    "edit_note": NoteChangeResult,
    "build_context": NoteContext,
    "delete_note": NoteChangeResult,
    "preflight": PreflightReport,
    "reserve_paths": HoldingsAnswer,
    "release_paths": HoldingsAnswer,
    "work_items": WorkAnswer,
    "send_message": MessagesAnswer,
    "inbox": MessagesAnswer,
}


def answer_schema(tool: str) -> Schema:
    """The JSON Schema of the structure that a tool answers with, unless it refuses."""
    return cast("Schema", plain_schema(ANSWERS[tool]))
