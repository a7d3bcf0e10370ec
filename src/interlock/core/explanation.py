"""The explanation of a refusal: a code for programs, what is true, and what to do next.

Imports nothing that costs, because every command may have to say no.
"""

from typing import Literal, NamedTuple

Code = Literal[
    "invalid_arguments",
    "unknown_tool",
    "unknown_workflow",
    "unknown_session",
    "several_sessions",
    "unknown_run",
    "unknown_gap",
    "unknown_delegation",
    "unknown_job",
    "unknown_project",
    "unknown_work",
    "work_held",
    "unknown_identity",
    "unknown_message",
    "paths_held",
    "lease_lost",
    "not_stale",
    "conflict",
    "needs_answer",
    "mail_down",
    "unknown_decision",
    "feature_not_done",
    "unknown_node",
    "unknown_step",
    "not_opted_in",
    "not_allowed",
    "not_unattended",
    "unknown_trigger",
    "unattended_over",
    "not_possible_now",
    "protocol_open",
    "unknown_approval",
    "approval_answered",
    "approval_changed",
    "approval_pending",
    "token_mangled",
    "token_other_store",
    "token_revoked",
    "token_unknown_version",
    "token_forged",
    "node_gone",
    "session_unhealthy",
    "nothing_pending",
    "run_waits",
    "nothing_to_unblock",
    "run_abandoned",
    "nothing_to_abandon",
    "notes_missing",
    "notes_not_written",
    "notes_too_long",
    "context_unset",
    "workflow_unusable",
    "request_reused",
    "no_project",
    "unknown_note",
    "several_notes",
    "note_exists",
    "note_changed",
    "note_refused",
    "note_not_written",
    "settings_broken",
    "bundle_broken",
    "source_exists",
    "source_name",
    "source_location",
    "source_ref",
    "source_path",
    "source_failed",
    "unknown_source",
    "not_bypassed",
    "same_store",
    "target_not_empty",
    "copy_unlike",
    "store_busy",
    "store_failed",
    "internal_error",
]


class Explanation(NamedTuple):
    code: Code
    error: str
    """What is true."""
    hint: str
    """What to do next."""
    did_you_mean: tuple[str, ...] = ()
