"""A host: an agent client, with all that Interlock needs to know of it.

Each host has a module of its own, and nothing else names one: where the client's files are, how its
hooks read and answer, what its tools are called. This one has what most of them share. All stand
alone: the fast hook imports them before every tool call.
"""

from interlock.agents.hosts.progress_reports import ProgressReports, key_of
from interlock.core.strict_json import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    Scope = Literal["user", "project"]
    Outcome = Literal["success", "failure", "unknown"]

LAUNCHER = "launch"
"""The name of the launcher, in the data home and in a project's `.interlock`."""
SERVER = "interlock"
"""The name of the server; the names of our tools are made of it."""
FIELDS = (
    *("session_id", "cwd", "tool_name", "tool_use_id", "permission_mode", "source", "reason"),
    *("prompt", "agent_id", "agent_type", "transcript_path"),
)
"""The texts of a payload that are read, by the names that most hosts give them."""
_SETTING_COMMAND = """\
The user typed a command about Interlock's {0}. Interlock's prompt hook has read it; the context
that it added says which {0} holds now, or why it was not changed. Nothing is left to be done about
the {0} itself: tell the user that in one sentence, and go on with the work, if there is some.
"""
MODE_COMMAND = _SETTING_COMMAND.format("mode")
_ANSWER_COMMAND = """\
The user typed a command that answers an approval of Interlock. Interlock's prompt hook has read it;
the context that it added says what was answered, or why nothing was. Do what it says: go on with
exactly what was approved, or leave what was denied and tell the user what you do instead.
"""
COMMANDS = {
    "mode": (
        "Show or set what the agent may do here",
        "[analysis|planning|coding|disabled] [--task TEXT]",
        MODE_COMMAND,
    ),
    "autonomy": (
        "Show or set how far the agent goes without you",
        "[guided|full_auto_stop_on_user_deps|full_auto_never_stop]",
        _SETTING_COMMAND.format("autonomy"),
    ),
    "approve": ("Approve what waits", "[ID] [REASON]", _ANSWER_COMMAND),
    "deny": ("Deny what waits, saying why", "[ID] [REASON]", _ANSWER_COMMAND),
}
"""What the user can type: a description, the arguments, and the text that the model gets."""


class Event:
    """A hook: the client's event, and the name by which our hook knows it."""

    def __init__(
        self, native: str, name: str, seconds: int = 5, matcher: str = "", **more: "Any"
    ) -> None:
        self.native, self.name, self.seconds = native, name, seconds
        self.matcher, self.more = matcher, more


class JsonPart:
    """Entries of ours in a JSON file that others write to as well."""

    def __init__(
        self,
        path: str,
        what: str,
        addition: "dict[str, Any]",
        servers: str = "",
        *,
        is_optional: bool = False,
    ) -> None:
        self.path, self.what, self.addition = path, what, addition
        self.servers = servers
        """The key under which the file lists servers; empty if it has none of ours."""
        self.is_optional = is_optional
        """Whether it is left out where the directory is not there: its program is not either."""


class TomlPart:
    """A table of ours, with its text, in a TOML file that others write to as well."""

    def __init__(self, path: str, what: str, table: str, text: str) -> None:
        self.path, self.what, self.table, self.text = path, what, table, text


class OwnFile:
    """A file that is ours as a whole."""

    def __init__(
        self,
        path: str,
        what: str,
        content: "str | dict[str, Any]",
        *,
        is_watched: bool = False,
        is_executable: bool = False,
    ) -> None:
        self.path, self.what, self.content = path, what, content
        """The content is a text, or an object that is written as JSON."""
        self.is_watched = is_watched
        """Whether it holds our hooks, so that the gate depends on it."""
        self.is_executable = is_executable


class Host(ProgressReports):
    name = ""
    title = ""
    program = ""  # the name of the client's program
    skill_folders: "tuple[str, ...]" = ()
    """The folders of a project in which it looks for skills."""
    packages: "tuple[str, ...]" = ()
    """The packages whose scripts are the client."""
    is_tried = True
    """Whether it was tried with the real client, and is not from documentation alone."""
    tools: "Mapping[str, str]" = {}
    """The names of its tools, by class."""
    events: "tuple[Event, ...]" = ()
    variables: "tuple[str, ...]" = ()
    """Variables that it sets for the commands of an agent."""
    reads_comments = False
    """Whether its JSON files may hold comments, which we cannot read."""
    holds_one = True
    """Whether a process of it holds one conversation at a time."""
    call_session_key = ""
    """The key of a tool call's metadata under which it names the conversation to a server."""
    fixed_listing_name = ""
    """Its name in MCP, if it lists the tools only once per conversation."""
    attended_variable = ""
    """The variable in which it tells its hooks whether a person is there."""
    session_variable = ""
    """The variable in which it names the conversation to what it starts."""
    unattended_words: "tuple[str, ...]" = ("-p", "--print", "--prompt")
    """Words of its command line with which nobody attends it."""
    attended_words: "tuple[str, ...]" = ()
    """Words with which somebody does, though it has no terminal."""
    asks = False
    """Whether a hook can have it put a question to the user."""
    elicits = False
    """Whether our server can ask the user through it (elicitation)."""
    tells_at_prompt = False
    """Whether context is told with a prompt, because what is told at the start does not last."""
    heard_events: "tuple[str, ...]" = (
        *("session-start", "prompt-submit", "pre-tool", "post-tool", "tool-failed"),
        "subagent-start",
    )
    """The events at which the model reads what a hook tells."""
    cut_mark = ""
    """A text that its transcript holds once for each time that the conversation was cut."""
    fail_closed_since: "tuple[int, ...] | None" = None
    """The version from which a hook that fails or is too slow blocks the call; None: no version."""
    enforcement = ""
    """A sentence for the user on what the hooks of the client can and cannot enforce."""
    mode_command = "/mode"
    """The beginning of what the user types to change the mode."""
    after_install: "tuple[str, ...]" = ()
    """Sentences on what the user has to do after an install, in sentences."""

    def other_client(self, payload: "dict[str, Any]", environment: "Mapping[str, str]") -> str:
        """The host whose client has run a hook of this one; empty if it is the right client.

        Some clients run what they find in the settings of others.
        """
        return ""

    def class_of(self, tool: str) -> str:
        """The class of a tool of the client; empty if it is not listed."""
        return key_of(self.tools, tool)

    def read_payload(self, payload: "dict[str, Any]") -> "dict[str, Any]":
        """The payload of a hook under the usual names (`FIELDS`, `tool_input`, …)."""
        return payload

    def outcome(self, event: str, payload: "dict[str, Any]") -> "Outcome":
        """How a tool call ended, of which this is the payload afterwards."""
        return "failure" if event == "tool-failed" else "unknown"

    def is_plan_approval(self, event: str, payload: "dict[str, Any]") -> bool:
        """Whether the user has just approved a plan, and so that the agent goes on to coding."""
        return False

    def own_directories(
        self, environment: "Mapping[str, str]", root: str, user: int
    ) -> "tuple[str, ...]":
        """The client's own directories, for plans and scratch: to write there edits nothing."""
        return ()

    def encode_decision(self, answer: str, reason: str) -> "dict[str, Any]":
        """The answer to a tool call that is denied or asked about."""
        raise NotImplementedError

    def encode_context(self, event: str, text: str, remark: str = "") -> "dict[str, Any]":
        """A text for the model, and a remark for the user's eyes."""
        raise NotImplementedError

    def encode_stop(self, reason: str) -> "dict[str, Any]":
        """The answer that keeps the agent from stopping."""
        return {"decision": "block", "reason": reason}

    def is_denial(self, answer: "dict[str, Any]") -> bool:
        """Whether an answer of a hook denies the call, as this client reads it."""
        return any(answer == self.encode_decision("deny", reason) for reason in texts_in(answer))

    def native_event(self, name: str) -> str:
        """The client's name of an event of ours."""
        return next((event.native for event in self.events if event.name == name), "")

    def example_call(self, session: str, cwd: str, kind: str) -> "dict[str, Any]":
        """The payload before a call that edits or reads a file, as the client would send it."""
        tool = self.tools[kind].split()[0]
        path = f"{cwd}/{session}.txt"
        return {
            "session_id": session,
            "cwd": cwd,
            "hook_event_name": self.native_event("pre-tool"),
            "tool_name": tool,
            "tool_input": {"file_path": path} | ({"content": "x"} if kind == "edit" else {}),
            "tool_use_id": f"call-{session}",
        }

    def settings_files(self, home: str, root: str, environment: "Mapping[str, str]") -> "list[str]":
        """The client's settings, of the user and of a project; those that win come last."""
        return []

    def obstacle(self, settings: "Mapping[str, Any]") -> "tuple[str, str]":
        """The setting that keeps our hooks from running, in words after its file, and a hint."""
        return "", ""

    def trust_question(self, cwd: str) -> "tuple[list[str], list[dict[str, Any]]] | None":
        """How the client is asked about its hooks: arguments, and lines of JSON; None if not."""
        return None

    def missing_trust(
        self, root: str, environment: "Mapping[str, str]", told: bytes
    ) -> "list[tuple[str, str]]":
        """Why the client would not run our hooks, with hints. `told`: what it says itself."""
        return []

    def parts(
        self, scope: "Scope", root: str, home: str, environment: "Mapping[str, str]"
    ) -> "list[JsonPart | TomlPart | OwnFile]":
        """The parts of an install. `root` is the project, or the user's home directory.

        The environment is the user's; if it names a shell that stands in for theirs, it is ours.
        """
        raise NotImplementedError

    def skill_home(self, scope: "Scope", root: str, environment: "Mapping[str, str]") -> str:
        """The folder in which it looks for skills, of the user or of a project."""
        return f"{root}/{self.skill_folders[0]}"

    def command_part(
        self, folder: str, name: str, description: str, arguments: str, text: str
    ) -> OwnFile:
        """A command that the user can type, beside the skills in `folder`.

        Where the client has no files for commands, it is a skill of that name.
        """
        content = skill_text(name, f"{description}. Only the user invokes it.", text)
        return OwnFile(f"{folder}/{name}/SKILL.md", f"the skill `{name}`", content)

    def manual_commands(self, server: "list[str]", variables: "Mapping[str, str]") -> "list[str]":
        """Commands that tell the client of a server, and a remark before them, if it has some."""
        return []

    def manual_http_command(self, address: str, secret: str) -> str:
        """A command that tells the client of a server at an address; empty if it has none.

        `secret` is text for a shell that gives the secret.
        """
        return ""

    def manual_entries(
        self, server: "list[str]", variables: "Mapping[str, str]"
    ) -> "list[tuple[str, str | dict[str, Any]]]":
        """The entries for files, put in by hand, with which the client starts a server."""
        raise NotImplementedError

    def manual_http_entry(
        self, address: str, variable: str, secret: str
    ) -> "tuple[str, str | dict[str, Any]]":
        """The same for a server at an address. The secret is in a variable, and in a file."""
        raise NotImplementedError

    def command(self, event: Event, home: str, scope: "Scope") -> str:
        """The command line of a hook, for a shell: plain enough to work where we are gone."""
        call = f"hook {self.name} {event.name}"
        if scope == "project":
            return f'{FIND_SHARED} && exec /bin/sh "$d/.interlock/{LAUNCHER}" {call}; exit 0'
        start = f'L={quote(f"{home}/{LAUNCHER}")}; [ -r "$L" ] && exec /bin/sh "$L" {call}; '
        if event.name != "pre-tool":
            return f"{start}exit 0"
        return f"{start}{IS_OPTED_IN}; echo {quote(cannot_start(self.name))} >&2; exit 2"

    def is_own_command(self, text: str) -> bool:
        """Whether a command line is a hook of ours."""
        text = text.replace('"$L"', f'/{LAUNCHER}"')
        return f'/{LAUNCHER}"' in text and f" hook {self.name} " in text


def skill_text(name: str, description: str, text: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{text}"


def commands_beside(skills: str, folder: str) -> str:
    """The folder of this name that lies beside a folder of skills."""
    return f"{skills.rpartition('/')[0]}/{folder}"


def texts_in(value: "Any") -> "list[str]":
    """Every text at any depth of a JSON value."""
    if type(value) is dict:
        return [text for item in as_object(value).values() for text in texts_in(item)]
    if type(value) is list:
        return [text for item in value for text in texts_in(item)]  # pyright: ignore[reportUnknownVariableType]
    return [value] if type(value) is str else []


class NestedAnswers:
    """The answers of Claude Code, which others have taken over."""

    events: "tuple[Event, ...]" = ()

    def encode_decision(self, answer: str, reason: str) -> "dict[str, Any]":
        fields = {"permissionDecision": answer, "permissionDecisionReason": reason}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}

    def encode_context(self, event: str, text: str, remark: str = "") -> "dict[str, Any]":
        native = next((each.native for each in self.events if each.name == event), "")
        told = {"hookSpecificOutput": {"hookEventName": native, "additionalContext": text}}
        return {**(told if text else {}), **({"systemMessage": remark} if remark else {})}


def matcher_groups(host: Host, home: str, scope: "Scope", unit: int = 1) -> "dict[str, Any]":
    """The hooks in the form of Claude Code: for each event a list of groups with a matcher."""
    groups: dict[str, Any] = {}
    for event in host.events:
        handler = {
            "type": "command",
            "command": host.command(event, home, scope),
            "timeout": event.seconds * unit,
            **(event.more if scope == "user" else {}),
        }
        matcher = {"matcher": event.matcher} if event.matcher else {}
        groups.setdefault(event.native, []).append({**matcher, "hooks": [handler]})
    return groups


def server_command(home: str, scope: "Scope") -> "list[str]":
    """The command that starts the server."""
    if scope == "user":
        return ["/bin/sh", f"{home}/{LAUNCHER}", "mcp"]
    # Without braces: some clients would take them for variables of theirs.
    launcher = f'"$d/.interlock/{LAUNCHER}"'
    end = '[ "$d" = / ] || [ "$d" = . ]'  # `.`: the directory is gone
    find = f'd=$PWD; until [ -r {launcher} ] || {end}; do d=$(dirname "$d"); done'
    return ["/bin/sh", "-c", f"{find}; exec /bin/sh {launcher} mcp"]


def server_variables(home: str, scope: "Scope") -> "dict[str, str]":
    return {"INTERLOCK_HOME": home} if scope == "user" else {}


IS_OPTED_IN = (
    'd=$PWD; while ! [ -e "$d/.interlock/config.toml" ]; do'
    ' [ "$d" ] && ! [ -d "$d/.git" ] || exit 0; d=${d%/*}; done'
)
"""Shell text that exits where no project has opted in, and goes on where one has."""
FIND_SHARED = (
    f'd=${{CLAUDE_PROJECT_DIR:-$PWD}}; until [ -r "$d/.interlock/{LAUNCHER}" ] || [ -z "$d" ]; do'
    ' case $d in /*) d=${d%/*} ;; *) d= ;; esac; done; [ "$d" ]'
)
"""Shell text that finds the project around with a launcher of its own, and fails if none has."""


def cannot_start(host: str) -> str:
    return (
        "Interlock guards this project and cannot be started, so this was not allowed. The user can"
        f" reinstall it and run `interlock install {host}`, or remove `.interlock/config.toml`."
    )


def quote(word: str) -> str:
    """The word for a shell, in single quotes."""
    return "'" + word.replace("'", "'\\''") + "'"


def toml_text(value: "str | Sequence[str]") -> str:
    """A text or a list of texts in TOML."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return f"[{', '.join(toml_text(item) for item in value)}]"
