"""The fast hook: allows at once what the gate would surely allow, and hands the rest over.

A client waits for it before every tool call, so it imports only what Python brings compiled, and
nothing of Interlock. It never denies and never asks: whatever is not certain, is odd or fails goes
to the full hook (`full_hook.py`) with the same payload. What is allowed here must be allowed there;
`tests/hooks/test_fast.py` compares the two.
"""

import posix
import sys
import time

TOOLS = {
    "claude-code": {
        "read": "Read NotebookRead BashOutput TaskOutput TodoRead TodoWrite TaskCreate TaskGet"
        " TaskList TaskUpdate ToolSearch Skill SlashCommand ListMcpResourcesTool"
        " ReadMcpResourceTool",
        "search": "Glob Grep LS LSP",
        "web": "WebFetch WebSearch",
        "edit": "Edit Write MultiEdit NotebookEdit",
        "shell": "Bash PowerShell Monitor KillShell KillBash",
        "agent": "Agent Task",
        "ask": "AskUserQuestion ExitPlanMode EnterPlanMode",
    }
}
"""As in `core/gate/tools.py`. A host that is not here is for the full hook alone."""
OWN_PREFIXES = "mcp__interlock__ mcp__plugin_interlock_interlock__ mcp_interlock_ interlock_"
MCP_PREFIXES = ("mcp__", "mcp_", "MCP:")
EVENTS = ("pre-tool", "post-tool", "pre-compact", "post-compact", "session-end")
MARKERS = ".interlock .git .claude .mcp .codex .gemini .cursor .copilot .opencode"
"""The beginnings of path parts, one of which is in every protected path."""
SECRETS = ("secret", "agent-secret", "keyring")  # as in `core/gate/secret_files.py`
EXPANSION_CHARACTERS = frozenset("$`\\{}*?[")  # they make words that are not in the command
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024
SPOOL_BYTES_MAX = 5 * 1024 * 1024
NUMBER_MAX = 18  # characters: no two readers differ about so short a number
BUSY_SECONDS = 0.05  # the writers are done in a millisecond

_TEXTS = ("cwd", "session_id", "tool_name", "hook_event_name", "tool_use_id", "source", "prompt")
_PATHS = ("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file")
_PATCHES = ("input", "patch", "command")


class FullHookNeeded(Exception):
    """The full hook must decide."""


def main(host: str, event: str, home: str, *flags: str) -> int:
    """The exit code. `flags` are those with which this interpreter finds Interlock."""
    content = b"".join(iter(lambda: posix.read(0, 1 << 16), b""))
    try:
        is_done = run(host, event, home, content)
    except Exception:  # noqa: BLE001 (the full hook reports what is wrong)
        is_done = False
    if is_done:
        return 0
    words = ["-m", "interlock", "hook", "--host", host, "--event", event, "--home", home]
    return _hand_over([sys.executable, *flags, *words], content)


def run(host: str, event: str, home: str, content: bytes) -> bool:
    """Whether the call is settled; if not, the full hook must be asked."""
    if host not in TOOLS or event not in EVENTS or not _is_normal(home):
        return False
    cwd, session, tool, tool_input = _payload(content)
    config = _config(cwd)
    if not config:
        return True  # nobody asked for a gate here
    if event != "pre-tool":
        return _append_to_spool(host, event, home, session, tool)
    kind = class_of(host, tool)
    if kind in ("own", "read", "search"):
        return kind == "own" or is_free_read(tool_input, cwd, home)
    mode = _mode(host, home, session, config) if tool else ""
    if mode == "disabled" or (mode and kind in ("web", "ask", "agent")):
        return True
    if kind == "edit":
        return mode == "coding" and is_free_edit(tool_input, home)
    if kind == "shell":
        return mode == "coding" and is_free_command(tool_input.get("command"), cwd, home)
    return mode == "coding" and is_free_read(tool_input, cwd, home)


def class_of(host: str, tool: str) -> str:
    for kind, names in TOOLS[host].items():
        if tool in names.split():
            return kind
    if tool.startswith((*OWN_PREFIXES.split(), "MCP:interlock ")):
        return "own"
    return "mcp" if tool.startswith(MCP_PREFIXES) else "other"


def is_free_read(tool_input: object, cwd: str, home: str) -> bool:
    """Whether no part of a path in it has the name of a secret of ours or of our directory."""
    text = repr((cwd, tool_input, home)).casefold()
    for mark in "\\'\"":
        text = text.replace(mark, "/")
    *parts, ours, _ = text.split("/")
    return not {ours, *SECRETS} & set(parts)


def is_free_edit(tool_input: dict[str, object], home: str) -> bool:
    edited_paths = [tool_input[key] for key in _PATHS if key in tool_input]
    is_patch = any(key in tool_input for key in _PATCHES)
    is_free = all(isinstance(path, str) and _is_free(path, home) for path in edited_paths)
    return bool(edited_paths) and is_free and not is_patch


def is_free_command(command: object, cwd: str, home: str) -> bool:
    """Whether it can name neither Interlock nor a protected path, however it is read."""
    if not isinstance(command, str) or not command.isascii() or EXPANSION_CHARACTERS & set(command):
        return False
    bare = command.replace("'", "").replace('"', "").casefold()
    names = (*MARKERS.split(), "interlock", home.casefold().rpartition("/")[2])
    return not any(name in bare for name in names) and _is_free(cwd, home)


def _is_free(path: str, home: str) -> bool:
    """Whether nothing protects the path."""
    folded = path.casefold()
    if not path.isascii() or "\\" in path or not _is_normal(path):
        return False
    is_ours = f"{folded}/".startswith(f"{home.casefold()}/")
    return not is_ours and not any(marker in folded for marker in MARKERS.split())


def _is_normal(path: str) -> bool:
    """Whether it is absolute, without `.`, `..` and empty parts."""
    first, *parts = path.split("/")
    return not first and bool(parts) and not {"", ".", ".."} & set(parts)


def _payload(content: bytes) -> tuple[str, str, str, dict[str, object]]:
    """Directory, conversation, tool and its input, if no two readers of JSON differ on them."""
    import _json  # noqa: PLC0415 (where there is none, the full hook is asked)

    # Half a surrogate is an error to some and a character to others.
    if len(content) > PAYLOAD_BYTES_MAX or b"\\ud" in content.lower():
        raise FullHookNeeded
    text = content.decode()
    payload, end = _json.make_scanner(_StrictJson)(text, 0)  # pyright: ignore[reportArgumentType]
    is_odd = text[end:].strip(" \t\r\n") or type(payload.get("stop_hook_active", False)) is not bool
    if is_odd or not all(isinstance(payload.get(key, ""), str) for key in _TEXTS):
        raise FullHookNeeded
    cwd, session, tool = (payload.get(key, "") for key in _TEXTS[:3])
    return cwd, session, tool, payload.get("tool_input")  # an object, or the full hook is asked


def _number(text: str) -> int:
    """Any number as 0, because none is used; `NaN` and what may be too large are odd."""
    if len(text) > NUMBER_MAX or text.strip("-.0123456789"):
        raise FullHookNeeded
    return 0


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FullHookNeeded  # a key comes twice
    return result


class _StrictJson:
    """The settings of `_json`."""

    strict = True
    object_hook = None
    object_pairs_hook = _object
    parse_float = parse_int = parse_constant = _number


def _config(cwd: str) -> str:
    """The stamp of the config of the surrounding project; empty if none has opted in."""
    if not cwd.startswith("/"):
        raise FullHookNeeded
    directory = cwd
    while not _is_there(path := f"{directory}/.interlock/config.toml"):
        if posix.stat(directory)[1:3] == posix.stat("/")[1:3]:
            return ""
        directory += "/.."  # the system resolves links before it takes this
    at = posix.stat(path)
    return f"{at.st_dev} {at.st_ino} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}"


def _is_there(path: str) -> bool:
    try:
        posix.lstat(path)
    except (FileNotFoundError, NotADirectoryError):  # and not: too long, not allowed
        return False
    return True


class _Functools:
    """`_sqlite3` wants a cache of statements from `functools`, which costs more than all else."""

    @staticmethod
    def lru_cache(_: int) -> object:
        return lambda connection: connection  # pyright: ignore[reportUnknownLambdaType,reportUnknownVariableType]


def _mode(host: str, home: str, session: str, config: str) -> str:
    """The mode, if it and the class of a tool decide; empty if more must be considered."""
    sys.modules.setdefault("functools", _Functools)  # pyright: ignore[reportArgumentType]
    import _sqlite3  # noqa: PLC0415 (most calls read, and need no state)

    quoted_home = home.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = _sqlite3.connect(f"file:{quoted_home}/gate.db?mode=ro", timeout=BUSY_SECONDS, uri=True)
    sql = "SELECT mode, is_started, is_simple, config FROM gate WHERE (host, host_session) = (?, ?)"
    try:
        row = db.execute(sql, (host, session)).fetchone()
    finally:
        db.close()
    is_known = row and row[0] in ("analysis", "planning", "coding", "disabled")
    return row[0] if is_known and row[1:] == (1, 1, config) else ""


def _append_to_spool(host: str, event: str, home: str, session: str, tool: str) -> bool:
    """Write a line as `workspace.machine.spool` does; the full hook makes and moves its files."""
    from _json import encode_basestring_ascii as quoted  # noqa: PLC0415 (as above)

    at_ms = time.time_ns() // 1_000_000
    line = f'{{"id":"{event}-{at_ms}","atMs":{at_ms},"host":"{host}","event":"{event}"'
    line += f',"hostSession":{quoted(session)}' if session else ""
    line += f',"tool":{quoted(tool)}' if tool else ""
    file = posix.open(f"{home}/spool/gate.jsonl", posix.O_WRONLY | posix.O_APPEND)
    is_full = posix.fstat(file).st_size > SPOOL_BYTES_MAX
    if not is_full:
        posix.write(file, f"{line}}}\n".encode())
    posix.close(file)
    return not is_full


def _hand_over(words: list[str], content: bytes) -> int:
    """Run the full hook and wait for it: one that cannot start must not let the call pass."""
    try:
        file = posix.memfd_create("payload")
    except (AttributeError, OSError):  # not on macOS
        path = f"{posix.environ.get(b'TMPDIR', b'/tmp').decode()}/interlock-{posix.getpid()}"
        file = posix.open(path, posix.O_RDWR | posix.O_CREAT | posix.O_EXCL, 0o600)
        posix.unlink(path)
    while content:
        content = content[posix.write(file, content) :]
    posix.lseek(file, 0, 0)
    actions = [(posix.POSIX_SPAWN_DUP2, file, 0)]
    child = posix.posix_spawn(words[0], words, posix.environ, file_actions=actions)
    code = posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1])
    if code not in (0, 2):
        raise ChildProcessError(f"the full hook ended with code {code}")
    return code
