"""The fast hook: allows at once what the gate would surely allow, and hands the rest over.

A client waits for it before every tool call, so it imports only what Python brings compiled, and of
Interlock only what does likewise. It never denies and never asks: whatever is not certain, is odd
or fails goes to the full hook (`full_hook.py`) with the same payload. What is allowed here must be
allowed there; `tests/hooks/test_fast.py` compares the two.
"""

import posix
import sys

from interlock.agents.hosts import claude_code_shell, registry
from interlock.agents.hosts.host import texts_in
from interlock.core.gate.command.network_programs import may_reach_out
from interlock.core.strict_json import as_object, decode
from interlock.hooks import gate_state
from interlock.sandbox.named_projects import named_projects, words_in
from interlock.sandbox.real_path import real_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from typing import Any

    from interlock.agents.hosts.host import Host
else:
    import _signal as signals  # without the names of `enum`, which take long to import

OWN_TOOLS = (
    "list_workflows inspect_workflow start_workflow continue_workflow checkpoint_workflow"
    " resume_session session request_approval delegate complete_delegation record_decision"
    " search_notes read_note write_note edit_note build_context recent_activity move_note"
    " delete_note preflight reserve_paths release_paths claim_work work_items send_message inbox"
)
OWN_PREFIXES = "mcp__interlock__ mcp__plugin_interlock_interlock__ mcp_interlock_ interlock_"
"""As in `core/gate/tools.py`, but for the names of hosts that are for the full hook alone."""
MCP_PREFIXES = ("mcp__", "mcp_", "MCP:")
EVENTS = ("pre-tool", "post-tool", "tool-failed", "session-end")
MARKERS = ".interlock .git .claude .mcp .codex .gemini .cursor .copilot .opencode .config"
"""The beginnings of path parts, one of which is in every protected path."""
SECRETS = ("secret", "agent-secret", "keyring")  # as in `core/gate/secret_files.py`
CONFIG = ".interlock/config.toml"
FOLDER_KEYS = {"workdir", "working_directory", "dir_path", "directory", "cwd"}
"""A command that runs in another directory is for the full hook (`core/gate/tool_call.py`)."""
WORD_BREAKS = frozenset(";&|<>()=,@:")
EXPANSION_CHARACTERS = frozenset("$`\\{}*?[")  # they make words that are not in the command
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024
SPOOL_BYTES_MAX = 5 * 1024 * 1024
COMMAND_CHARS_MAX, TEXTS_MAX = 4096, 256 * 1024
PATH_MAX, LOOKUPS_MAX = 4096, 2_000
FILE_TYPE, DIRECTORY = 0o170000, 0o040000
BUDGET_SECONDS = 8  # less than the client waits before it goes on without an answer

_TEXTS = (
    *("cwd", "session_id", "tool_name", "permission_mode", "reason", "hook_event_name"),
    *("tool_use_id", "source", "prompt", "agent_id", "agent_type"),
)
PLAN_MODE = "plan"
_PATHS = ("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file")
_EDITS = (
    *("content", "old_string", "new_string", "replace_all", "new_source", "cell_id", "cell_type"),
    *("edit_mode", "oldString", "newString", "replaceAll", "instruction"),
)
"""What else an edit is given, in which no path is looked for."""


class FullHookNeeded(Exception):
    """The full hook must decide."""


def main(host: str, event: str, home: str, *flags: str) -> int:
    """The exit code. `flags` are those with which this interpreter finds Interlock."""
    signals.alarm(BUDGET_SECONDS)  # the full hook goes on counting; then it or the launcher denies
    content = b"".join(iter(lambda: posix.read(0, 1 << 16), b""))
    try:
        is_done = run(host, event, home, content)
    except Exception:  # noqa: BLE001 (the full hook reports what is wrong)
        is_done = False
    if not is_done:
        words = ["-m", "interlock", "hook", "--host", host, "--event", event, "--home", home]
        _hand_over([sys.executable, *flags, *words], content)
    return 0


def run(host: str, event: str, home: str, content: bytes) -> bool:
    """Whether the call is settled; if not, the full hook must be asked."""
    if host not in registry.PLAIN_NAMES or event not in EVENTS or not _is_normal(home):
        return False
    client = registry.host_named(host)
    payload = _payload(content)
    if client.other_client(payload, {}):
        return False
    cwd, session, tool, permission_mode = (payload.get(key, "") for key in _TEXTS[:4])
    tool_input: Any = payload.get("tool_input")  # an object, or the full hook is asked
    kind = class_of(client, tool)
    if event == "pre-tool" and _needs_no_state(kind, tool, tool_input, cwd, home):
        return True
    # Who before where: a session that is bound keeps its gate wherever it goes.
    state = gate_state.read_state(host, home, session)
    if state is None and not gate_state.config_above(cwd):
        if event == "pre-tool" and may_change_project(kind, tool_input, cwd):
            return False
        return not gate_state.may_have_vanished(cwd, home)  # if not, nobody asked for a gate here
    if event != "pre-tool":
        if state and state.has_news and event != "session-end":
            return False
        is_watched = not state or state.mode not in ("coding", "disabled")
        if is_watched and kind == "shell" and may_reach_out("\n".join(texts_in(tool_input))):
            return False  # the user may have been asked about it
        return _note(client, event, home, session, payload)
    if client.reports(tool) == "subagent":
        return False  # its prompt is kept until the client names the subagent
    if not state or not tool or not state.is_settled or not gate_state.is_untouched(state.watched):
        return False
    if state.mode == "disabled" or kind in ("web", "ask", "agent"):
        return True
    if permission_mode == PLAN_MODE and state.mode == "coding":
        return False
    if state.mode != "coding":
        return kind == "shell" and is_confined(tool, tool_input.get("command"), home)
    if state.is_contested and kind in ("edit", "shell"):
        return False
    if kind == "edit":
        return is_free_edit(tool_input, home) and is_really_in(tool_input, state.root, home)
    if kind == "shell":
        is_here = not FOLDER_KEYS & set(tool_input)
        is_free = is_here and is_free_command(tool_input.get("command"), cwd, home)
    else:
        is_named = names_marker(repr(tool_input))
        is_free = not is_named and is_free_read(tool_input, cwd, home, may_write=True)
    return is_free and not may_change_project(kind, tool_input, cwd, state.root)


def _needs_no_state(kind: str, tool: str, tool_input: object, cwd: str, home: str) -> bool:
    if kind == "own":
        # Names are read as generously as the server reads them.
        names = {"".join(filter(str.isalnum, name.casefold())) for name in as_object(tool_input)}
        is_elsewhere = tool.endswith("_note") and any("workspace" in name for name in names)
        return not is_elsewhere and not (tool.endswith("session") and "mode" in names)
    return kind in ("read", "search") and is_free_read(tool_input, cwd, home)


def class_of(client: "Host", tool: str) -> str:
    if kind := client.class_of(tool):
        return kind
    for prefix in OWN_PREFIXES.split():
        if tool.startswith(prefix) and tool.removeprefix(prefix) in OWN_TOOLS.split():
            return "own"
    return "mcp" if tool.startswith(MCP_PREFIXES) else "other"


def is_free_read(tool_input: object, cwd: str, home: str, *, may_write: bool = False) -> bool:
    """Whether it neither names a secret of ours or our directory, nor leads there by a link."""
    text = repr((cwd, tool_input, home)).casefold()
    for mark in "\\'\"":
        text = text.replace(mark, "/")
    *parts, ours, _ = text.split("/")
    is_named = {ours, *SECRETS} & set(parts) or "file:" in text
    texts = [cwd, *texts_in(tool_input)]
    return not is_named and leads_to_free_files(texts, cwd, home, may_write=may_write)


def leads_to_free_files(texts: list[str], cwd: str, home: str, *, may_write: bool) -> bool:
    """Whether no text is a path that leads to a secret or, if it may write, to a protected file.

    It may be relative to a directory that another text names (`cd a`, `git -C a`, `cp x a`).
    """
    words = {word for text in texts if len(text) <= PATH_MAX for word in (text, text.strip())}
    folders = [cwd]
    try:
        ours = real_path(home).casefold()
        for folder in folders:
            if folder[:1] != "/" or len(folders) * len(words) > LOOKUPS_MAX:
                return False
            paths = [word if word.startswith("/") else f"{folder}/{word}" for word in words]
            paths += [real_path(path, follows=False) for path in paths if ".." in path]
            for real in set(map(real_path, paths)):
                before, _, after = f"{real.casefold()}/".partition(f"{ours}/")
                is_ours = not before and (may_write or after.strip("/") in ("", *SECRETS))
                mode, link_count = _mode_and_links(real)
                # A file with two names may be a protected one.
                is_linked = link_count > 1 and mode != DIRECTORY
                if is_ours or is_linked or (may_write and names_marker(real)):
                    return False
                folders += [real] if mode == DIRECTORY and real not in folders else []
    except (OSError, ValueError):
        return False
    return not any(word[:1] == "~" for word in words)


def _mode_and_links(path: str) -> tuple[int, int]:
    try:
        status = posix.stat(path)
    except OSError:
        return 0, 0
    return status.st_mode & FILE_TYPE, status.st_nlink


def is_free_edit(tool_input: dict[str, object], home: str) -> bool:
    edited_paths = [tool_input[key] for key in _PATHS if key in tool_input]
    is_free = all(isinstance(path, str) and _is_free(path, home) for path in edited_paths)
    return bool(edited_paths) and is_free and set(tool_input) <= {*_PATHS, *_EDITS}


def may_change_project(kind: str, tool_input: "Any", cwd: str, own: str = "") -> bool:
    """Whether a call may change something in a project other than its own."""
    if kind not in ("edit", "shell", "mcp", "other"):
        return False
    words = texts_in(tool_input)
    if kind == "edit":
        words = texts_in([tool_input[key] for key in _PATHS if key in tool_input])
        if not words or not set(tool_input) <= {*_PATHS, *_EDITS}:
            return True
    elif sum(map(len, words)) > TEXTS_MAX or "file:" in "".join(words).casefold():
        return True
    elif kind == "shell":
        if FOLDER_KEYS & set(tool_input):
            return True
        words += [".", *(word for text in words for word in words_in(text, cwd))]
    words += [word.strip() for word in words]
    return any(root != own for root in named_projects(words, cwd))


def is_really_in(tool_input: dict[str, object], root: str, home: str) -> bool:
    """Whether the edited files are in this very project, and no link leads out of it."""
    paths = [str(tool_input[key]) for key in _PATHS if key in tool_input]
    return leads_to_free_files(paths, root, home, may_write=True) and all(
        real_path(path) == path
        and real_path(gate_state.config_above(path.rpartition("/")[0])) == f"{root}/{CONFIG}"
        for path in paths
    )


def is_free_command(command: object, cwd: str, home: str) -> bool:
    """Whether it can name neither Interlock nor a protected path, however it is read."""
    if not isinstance(command, str) or not command.isascii() or EXPANSION_CHARACTERS & set(command):
        return False
    quoted = command.replace('"', "'").split("'")
    bare = "".join(quoted).casefold()
    names = ("interlock", home.casefold().rpartition("/")[2])
    if names_marker(bare) or any(name in bare for name in names) or not _is_free(cwd, home):
        return False
    words = "".join(" " if mark in WORD_BREAKS else mark for mark in "".join(quoted)).split()
    words += [word.rpartition("/")[2] for word in words] + [word[2:] for word in words]
    return leads_to_free_files([*words, *quoted], cwd, home, may_write=True)


def is_confined(tool: str, command: object, home: str) -> bool:
    """Whether the client will run it in our sandbox, without a question to the user."""
    is_text = isinstance(command, str)
    if not is_text or "interlock" in command.casefold() or may_reach_out(command):
        return False
    names = (
        claude_code_shell.SHELL_VARIABLE,
        claude_code_shell.CALLER_VARIABLE,
        claude_code_shell.CLIENT_VARIABLE,
    )
    environment = {name: posix.environ.get(name.encode(), b"").decode() for name in names}
    return claude_code_shell.is_confined(environment, tool, home)


def names_marker(text: str) -> bool:
    folded = text.casefold()
    return any(marker in folded for marker in MARKERS.split())


def _is_free(path: str, home: str) -> bool:
    """Whether nothing protects the path."""
    if not path.isascii() or "\\" in path or not _is_normal(path):
        return False
    is_ours = f"{path.casefold()}/".startswith(f"{home.casefold()}/")
    return not is_ours and not names_marker(path)


def _is_normal(path: str) -> bool:
    """Whether it is absolute, without `.`, `..` and empty parts."""
    first, *parts = path.split("/")
    return not first and bool(parts) and not {"", ".", ".."} & set(parts)


def _payload(content: bytes) -> "dict[str, Any]":
    """The payload, if no two readers of JSON differ on what is read of it."""
    if len(content) > PAYLOAD_BYTES_MAX:
        raise FullHookNeeded
    payload = decode(content)
    is_odd = type(payload.get("stop_hook_active", False)) is not bool
    if is_odd or not all(isinstance(payload.get(key, ""), str) for key in _TEXTS):
        raise FullHookNeeded
    if "\0" in payload.get("cwd", "") or not isinstance(payload.get("transcript_path") or "", str):
        raise FullHookNeeded
    return payload


def _note(client: "Host", event: str, home: str, session: str, payload: "Any") -> bool:
    """Note the event; the full hook records it in the session."""
    tool, tool_input = payload.get("tool_name", ""), payload.get("tool_input")
    if event != "session-end" and client.reports(tool):
        return False
    fields = {"hostSession": session, "tool": tool, "detail": payload.get("reason", "")}
    name = "departures" if event == "session-end" else "gate"
    command = as_object(tool_input).get("command")
    if event in ("post-tool", "tool-failed") and class_of(client, tool) == "shell":
        if type(command) is not str:
            return False
        name = "commands"
        fields["detail"] = command[:COMMAND_CHARS_MAX]
        fields["outcome"] = client.outcome(event, payload)
        fields["cwd"] = payload.get("cwd", "")
    return _append_to_spool(name, client.name, event, home, fields)


def _append_to_spool(name: str, host: str, event: str, home: str, fields: dict[str, str]) -> bool:
    """Write a line as `workspace.machine.spool` does; the full hook makes and moves its files."""
    from _json import encode_basestring_ascii as quoted  # noqa: PLC0415 (as above)

    at_ms = gate_state.now_ms()
    line = f'{{"id":"{event}-{at_ms}","atMs":{at_ms},"host":"{host}","event":"{event}"'
    line += "".join(f',"{key}":{quoted(value)}' for key, value in fields.items() if value)
    file = posix.open(f"{home}/spool/{name}.jsonl", posix.O_WRONLY | posix.O_APPEND)
    is_full = posix.fstat(file).st_size > SPOOL_BYTES_MAX
    if not is_full:
        posix.write(file, f"{line}}}\n".encode())
    posix.close(file)
    return not is_full


def _hand_over(words: list[str], content: bytes) -> None:
    """Become the full hook. There is no child that could outlive the client's patience."""
    try:
        file = posix.memfd_create("payload")
    except (AttributeError, OSError):  # not on macOS
        path = f"{posix.environ.get(b'TMPDIR', b'/tmp').decode()}/interlock-{posix.getpid()}"
        file = posix.open(path, posix.O_RDWR | posix.O_CREAT | posix.O_EXCL, 0o600)
        posix.unlink(path)
    while content:
        content = content[posix.write(file, content) :]
    posix.lseek(file, 0, 0)
    posix.dup2(file, 0)
    posix.execve(words[0], words, posix.environ)
