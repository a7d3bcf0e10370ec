"""The fast hook: what the gate would surely allow it allows at once; the rest it hands over.

A client waits for it before every tool call, so it imports only what Python brings compiled, and
nothing of Interlock. It never denies and never asks: what it does not know for sure, whatever is
odd and whatever fails goes to the full hook (`run.py`) with the same payload. What is allowed here
must be allowed there; `tests/hooks/test_fast.py` holds the two against each other.
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
OWN_PREFIXES = (
    "mcp__interlock__",
    "mcp__plugin_interlock_interlock__",
    "mcp_interlock_",
    "interlock_",
)
MCP_PREFIXES = ("mcp__", "mcp_", "MCP:")
EVENTS = ("pre-tool", "post-tool", "pre-compact", "post-compact", "session-end")
MARKERS = ".interlock .git .claude .mcp .codex .gemini .cursor .copilot .opencode"
"""How a part of every protected path begins."""
SECRETS = ("secret", "agent-secret", "keyring")  # as in `core/gate/secret_files.py`
EXPANSION_CHARACTERS = frozenset("$`\\{}*?[")
"""With these a shell makes words that do not stand in the command."""
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024
SPOOL_BYTES_MAX = 5 * 1024 * 1024
NUMBER_MAX = 18  # characters: no two readers differ about so short a number
BUSY_SECONDS = 0.05  # the writers are done in a millisecond

_TEXTS = ("cwd", "session_id", "tool_name", "hook_event_name", "tool_use_id", "source", "prompt")
_PATHS = ("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file")
_PATCHES = ("input", "patch", "command")


class FullHookNeeded(Exception):
    """For the full hook to say."""


def main(host: str, event: str, home: str, *flags: str) -> int:
    """The exit code. `flags` are those with which this interpreter finds Interlock."""
    content = b"".join(iter(lambda: posix.read(0, 1 << 16), b""))
    try:
        is_done = run(host, event, home, content)
    except Exception:  # noqa: BLE001 (what goes wrong here is for the full hook to say)
        is_done = False
    if is_done:
        return 0
    words = ["-m", "interlock", "hook", "--host", host, "--event", event, "--home", home]
    return _hand_over([sys.executable, *flags, *words], content)


def run(host: str, event: str, home: str, content: bytes) -> bool:
    """Whether all is said and done; if not, the full hook has to be asked."""
    if host not in TOOLS or event not in EVENTS or not _is_normal(home):
        return False
    cwd, session, tool, given = _payload(content)
    config = _config(cwd)
    if not config:
        return True  # nobody asked for a gate here
    if event != "pre-tool":
        return _append_to_spool(host, event, home, session, tool)
    kind = class_of(host, tool)
    if kind in ("own", "read", "search"):
        return kind == "own" or is_free_read(given, cwd, home)
    mode = _mode(host, home, session, config) if tool else ""
    if mode == "disabled" or (mode and kind in ("web", "ask", "agent")):
        return True
    if kind == "edit":
        return mode == "coding" and is_free_edit(given, home)
    if kind == "shell":
        return mode == "coding" and is_free_command(given.get("command"), cwd, home)
    return mode == "coding" and is_free_read(given, cwd, home)


def class_of(host: str, tool: str) -> str:
    for kind, names in TOOLS[host].items():
        if tool in names.split():
            return kind
    if tool.startswith((*OWN_PREFIXES, "MCP:interlock ")):
        return "own"
    return "mcp" if tool.startswith(MCP_PREFIXES) else "other"


def is_free_read(given: object, cwd: str, home: str) -> bool:
    """Whether no part of a path in it is called like a secret of ours or like our directory."""
    text = repr((cwd, given, home)).casefold()
    for mark in "\\'\"":
        text = text.replace(mark, "/")
    *parts, ours, _ = text.split("/")
    return not {ours, *SECRETS} & set(parts)


def is_free_edit(given: dict[str, object], home: str) -> bool:
    named = [given[key] for key in _PATHS if key in given]
    is_patch = any(key in given for key in _PATCHES)
    is_free = all(isinstance(path, str) and _is_free(path, home) for path in named)
    return bool(named) and is_free and not is_patch


def is_free_command(command: object, cwd: str, home: str) -> bool:
    """Whether it can name neither Interlock nor what is protected, however it is read."""
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
    found, end = _json.make_scanner(_StrictJson)(text, 0)  # pyright: ignore[reportArgumentType]
    is_odd = text[end:].strip(" \t\r\n") or type(found.get("stop_hook_active", False)) is not bool
    if is_odd or not all(isinstance(found.get(key, ""), str) for key in _TEXTS):
        raise FullHookNeeded
    cwd, session, tool = (found.get(key, "") for key in _TEXTS[:3])
    return cwd, session, tool, found.get("tool_input")  # an object, or the full hook is asked


def _number(text: str) -> int:
    """No number is looked at, so all are one; `NaN` is odd, and so is what may be too large."""
    if len(text) > NUMBER_MAX or text.strip("-.0123456789"):
        raise FullHookNeeded
    return 0


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FullHookNeeded  # a key comes twice
    return found


class _StrictJson:
    """How `_json` is to read."""

    strict = True
    object_hook = None
    object_pairs_hook = _object
    parse_float = parse_int = parse_constant = _number


def _config(cwd: str) -> str:
    """What the config of the project around is known by; nothing where none has opted in."""
    if not cwd.startswith("/"):
        raise FullHookNeeded
    place = cwd
    while not _is_there(path := f"{place}/.interlock/config.toml"):
        if posix.stat(place)[1:3] == posix.stat("/")[1:3]:
            return ""
        place += "/.."  # which the system takes after it has followed links
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
    """The mode, where it and the class of a tool decide; nothing where more must be looked at."""
    sys.modules.setdefault("functools", _Functools)  # pyright: ignore[reportArgumentType]
    import _sqlite3  # noqa: PLC0415 (most calls read, and need no state)

    place = home.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = _sqlite3.connect(f"file:{place}/gate.db?mode=ro", timeout=BUSY_SECONDS, uri=True)
    sql = "SELECT mode, is_started, is_simple, config FROM gate WHERE (host, host_session) = (?, ?)"
    try:
        row = db.execute(sql, (host, session)).fetchone()
    finally:
        db.close()
    is_known = row and row[0] in ("analysis", "planning", "coding", "disabled")
    return row[0] if is_known and row[1:] == (1, 1, config) else ""


def _append_to_spool(host: str, event: str, home: str, session: str, tool: str) -> bool:
    """Leave a line as `workspace.machine.spool` does; the full hook makes and moves its files."""
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
    """Ask the full hook. It is waited for: one that cannot start must not let the call pass."""
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
