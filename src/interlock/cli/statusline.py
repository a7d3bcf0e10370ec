"""`interlock statusline`: the line that Claude Code shows below its prompt."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.hook_payload import decode_payload
from interlock.app.context import has_store, open_app
from interlock.app.data_home import data_home
from interlock.app.failures import StoreFailure
from interlock.app.gate import bound_conversations, overrides
from interlock.app.gate.integrity import governed_root
from interlock.cli.terminal import print_lines
from interlock.core.views.counting import progress_text


@click.command()
def statusline() -> None:
    """Print mode and step of a conversation, for Claude Code (it sends JSON on stdin)"""
    home = data_home()
    try:
        payload = decode_payload(claude_code.HOST, sys.stdin.buffer.read())
    except ValueError:
        return
    host, conversation = claude_code.HOST.name, payload.session_id
    state = bound_conversations.state_of(home, host, conversation)
    if state is None:
        if governed_root(home, Path(payload.cwd or ".")) is not None:
            print_lines(_without_session(home, host, conversation))
        return
    parts = [(overrides.active_override(home) and "gate off") or state.mode, state.task]
    print_lines(" · ".join(filter(None, (*parts, _step(home, host, conversation)))))


def _without_session(home: Path, host: str, conversation: str) -> str:
    """Return why the gate has no session for a conversation in an opted-in project."""
    with suppress(StoreFailure):  # then the line shows no session
        if has_store(home, os.environ):
            app = open_app(home)
            try:
                if app.reader.session_of_conversation(host, conversation):
                    return "interlock: the session has ended, so only reading is allowed"
            finally:
                app.close()
    return "interlock: no hook was heard of, so nothing is enforced"


def _step(home: Path, host: str, conversation: str) -> str:
    """The pending step of the newest open run; nothing if there is none, or the store is away."""
    try:
        if not has_store(home, os.environ):
            return ""
        app = open_app(home)
        try:
            session = app.reader.session_of_conversation(host, conversation)
            rows = app.reader.rows([session]) if session else []
        finally:
            app.close()
    except StoreFailure:
        return ""
    open_rows = [row for row in rows if row.is_open and row.step]
    row = open_rows[-1] if open_rows else None
    if row is None:
        return ""
    progress = progress_text(row.steps_done, row.steps_skipped, row.step_count)
    state = "" if row.status.word == "running" else f", {row.status.word}"
    return f"{row.workflow}, {progress}: {row.step}{state}"
