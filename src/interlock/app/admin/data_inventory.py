"""The data that Interlock stores on this machine: each kind, its files, its size, its deletion."""

import os
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from interlock.sandbox import scratch
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.machine import install_manifest


class DataKind(msgspec.Struct, frozen=True):
    name: str
    files: tuple[str, ...]
    """Patterns of names: entries of the data home that match one are of this kind."""
    holds: str
    goes: str
    """The time of its deletion, and the consequences."""
    command: str = ""
    """The command that deletes it. `{home}` stands for the data home."""


class StoredData(msgspec.Struct, frozen=True):
    kind: DataKind
    paths: tuple[str, ...]
    size: int
    command: str


class ClientInstall(msgspec.Struct, frozen=True):
    """Files of an agent client that have something of ours in them."""

    host: str
    paths: tuple[str, ...]
    command: str
    """The command that restores them."""


DATA_KINDS = (
    DataKind(
        "Sessions",
        ("interlock.db*",),
        "What agents did: goals, notes, the prompts they were given, artifacts, context, gaps,"
        " approvals, modes, the project's directory, its git branch and commit.",
        "Nothing of it goes by itself. Deleting a session overwrites all that only it held.",
        "interlock session delete SESSION",
    ),
    DataKind(
        "Keys",
        ("keyring", "keyring.lock", ".keyring.*"),
        "What signs the tokens that agents hold. Nothing about your work.",
        "A revoked key ends its tokens; agents get new ones when they resume.",
        "interlock keys rotate && interlock keys revoke ID",
    ),
    DataKind(
        "Secret of the server",
        ("secret", "agent-secret", "logins"),
        "What lets programs into this server, and agents to its tools alone; and, as hashes, the"
        " codes and cookies with which browsers sign in.",
        "A cookie lasts 30 days. Without them, and after a restart, everybody is signed out, and a"
        " new secret is made.",
        "rm -r {home}/secret {home}/logins && interlock stop",
    ),
    DataKind(
        "State of the gate",
        ("gate.db*",),
        "For each conversation that a gate watches over: its session, mode, task and directory; and"
        " the paths that others have reserved.",
        "It goes with the end or the deletion of the session.",
    ),
    DataKind(
        "Jobs",
        ("durable.db*", "executor.lock", "machine"),
        "What goes on by itself: which session it is about, each step with its result or its"
        " error; and the name under which this machine does it.",
        "Jobs that are over go after 30 days, when a server removes what is old. What is not done"
        " yet is not done without it.",
        "interlock stop && rm {home}/durable.db",
    ),
    DataKind(
        "Clients",
        ("clients", "tool-servers"),
        "Which process of an agent client holds which conversation, and which tools it is served.",
        "It means nothing once the client has ended.",
        "rm -r {home}/clients {home}/tool-servers",
    ),
    DataKind(
        "Index of notes",
        ("notes",),
        "What the notes of each project say, so that they are found at once, and where those"
        " projects lie. The notes themselves lie in the project.",
        "It is made again from the notes when it is needed.",
        "rm -r {home}/notes",
    ),
    DataKind(
        "Names of projects, and the clock",
        ("projects", "steady-clock"),
        "The name of each repository among those that share a store, as a hash; and when this"
        " machine was started, by which agents that were silent for long are told from others.",
        "They are made again when they are needed.",
        "rm -r {home}/projects {home}/steady-clock",
    ),
    DataKind(
        "What conversations know",
        ("told", "asked-subagents"),
        "Hashes of the lines that each conversation was shown, so that none is repeated; and the"
        " prompts of subagents that a client was asked to start.",
        "Hashes go after 30 days, prompts when the subagent starts or an hour later. Without them"
        " a line is repeated, and a subagent is recorded without its prompt.",
        "rm -r {home}/told {home}/asked-subagents",
    ),
    DataKind(
        "Gate switched off",
        ("gate-off",),
        "Who switched the gate off everywhere, and until when.",
        "It means nothing after an hour. Without the file the gate is on at once.",
        "rm {home}/gate-off",
    ),
    DataKind(
        "What you opened",
        ("trusted.json", "bypasses.json", "opened.lock"),
        "Projects whose config may loosen the gate, and rules that you bypass, with your reasons.",
        "It goes when you take it back.",
        "interlock trust --revoke; interlock gate bypass remove ID",
    ),
    DataKind(
        "Scratch directories",
        (scratch.DIRECTORY,),
        "What confined commands wrote to `$TMPDIR`, and their caches. The size is not counted.",
        "Those that were not used for a week go when another one is made.",
        "rm -r {home}/scratch",
    ),
    DataKind(
        "Journal of the gate",
        ("spool",),
        "What hooks saw: names of tools; of calls that were denied or asked about the path or the"
        " first 200 characters of the command; the commands that agents ran, and how they ended.",
        "At most 30 MB; the oldest lines go first, all within 60 days (`interlock retention`)."
        " Deleting a session does not reach it.",
        "rm -r {home}/spool",
    ),
    DataKind(
        "Your settings",
        ("config.toml",),
        "Preferences and bindings, as you wrote them. Interlock never writes this file.",
        "It is yours to change and to remove.",
        "rm {home}/config.toml",
    ),
    DataKind(
        "Your workflows",
        ("workflows",),
        "Workflow files that you put there. Interlock only reads them.",
        "They are yours to change and to remove. Runs keep the workflow they began with.",
        "rm {home}/workflows/NAME.json",
    ),
    DataKind(
        "Sources of workflows",
        ("sources.json", "sources", "sources.lock", ".sources.json.*"),
        "Directories and repositories that you added, and what was fetched from them.",
        "What was fetched goes when you remove the source.",
        "interlock sources remove NAME",
    ),
    DataKind(
        "What was installed",
        ("installed.json", "installed.lock", "launch*", "hosts", "claude-code-plugin"),
        "Which files of agent clients were changed, and how to put them back to the byte; the"
        " scripts that those files name.",
        "It goes when you take Interlock out of the client; see below.",
    ),
    DataKind(
        "The running server",
        ("server.json", "server.lock", "server.new"),
        "Its process and its address, so that commands find it.",
        "It goes when the server stops.",
        "interlock stop",
    ),
    DataKind(
        "Logs",
        ("logs",),
        "What a server in the background said, and tracebacks of crashes.",
        "Tracebacks go after 30 days (`interlock retention`); nothing needs any of it.",
        "rm -r {home}/logs",
    ),
)
POSTGRES_KINDS = (
    DataKind(
        "Sessions",
        ("interlock.db*",),
        DATA_KINDS[0].holds + " They are in a database that others may share.",
        "Nothing of it goes by itself. Deleting a session removes its rows; the files, the WAL and"
        " the backups of PostgreSQL forget them later.",
        DATA_KINDS[0].command,
    ),
    DataKind(
        "Keys",
        ("keyring", "keyring.lock", ".keyring.*"),
        DATA_KINDS[1].holds + " They are in the same database.",
        DATA_KINDS[1].goes,
        DATA_KINDS[1].command,
    ),
)
"""They replace the first two of `DATA_KINDS` if the store is not a file."""
OTHER_FILES = DataKind(
    "Other files",
    (),
    "Interlock did not put these there, or no longer knows them.",
    "Look at them before you remove them.",
)


class HomeEntry(msgspec.Struct, frozen=True):
    """A file or directory in the data home."""

    name: str
    size: int
    kind: str


def home_entries(home: Path) -> list[HomeEntry]:
    """All entries of the data home, by name; the size of a directory is that of all its files."""
    return [
        HomeEntry(_displayable_name(path.name), sum(_file_sizes(path)), _kind_of(path.name).name)
        for path in sorted(home.iterdir())
    ]


def list_stored_data(home: Path, store_label: str) -> list[StoredData]:
    """Every kind of data that Interlock may store, whether there is any or not.

    `store_label` tells where the store is: in the data home, or not.
    """
    all_entries = home_entries(home)
    shared = POSTGRES_KINDS if is_shared_store(store_label) else ()
    inventory: list[StoredData] = []
    for kind in (*shared, *DATA_KINDS[len(shared) :], OTHER_FILES):
        entries = [entry for entry in all_entries if entry.kind == kind.name]
        if not entries and kind is OTHER_FILES:
            continue
        paths = tuple(str(home / entry.name) for entry in entries)
        paths = (store_label, *paths) if kind in shared else paths
        size = sum(entry.size for entry in entries)
        inventory.append(
            StoredData(kind, paths, size, kind.command.format(home=shlex.quote(str(home))))
        )
    return inventory


def is_shared_store(store_label: str) -> bool:
    """Whether the store is a database, which others may use as well."""
    return "://" in store_label


def is_private(home: Path) -> bool:
    """Whether nobody but its owner can look into the data home."""
    return home.stat().st_mode & 0o077 == 0


def client_installs(home: Path) -> list[ClientInstall] | str:
    """The agent clients that Interlock was installed into; or the reason that it is not known."""
    try:
        installs = install_manifest.load(home).installs
    except SettingsBroken as broken:
        return str(broken)
    return [
        ClientInstall(
            install.host,
            tuple(entry.path for entry in install.files),
            f"cd {shlex.quote(install.root)}"
            f" && interlock uninstall {install.host} --scope {install.scope}"
            f"{f' --skill {install.skill}' if install.skill else ''}",
        )
        for install in installs
    ]


def forget_all_command(home: Path, installs: Sequence[ClientInstall]) -> str:
    """The command after which nothing of Interlock is left but its program."""
    uninstalls = [f"({install.command})" for install in installs]
    return "; ".join([*uninstalls, "interlock stop", f"rm -r {shlex.quote(str(home))}"])


def _displayable_name(name: str) -> str:
    """The name as text: bytes that are not UTF-8 are replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


def _kind_of(name: str) -> DataKind:
    for kind in DATA_KINDS:
        if any(fnmatchcase(name, pattern) for pattern in kind.files):
            return kind
    return OTHER_FILES


def _file_sizes(path: Path) -> Iterator[int]:
    """The size of the file, or of each file below; a link counts as itself. A file that vanishes
    meanwhile is left out, and so are those in scratch directories: a build makes thousands.
    """
    if path.name == scratch.DIRECTORY:
        return
    if path.is_dir() and not path.is_symlink():
        for directory, _, names in os.walk(path):
            for name in names:
                yield from _file_sizes(Path(directory, name))
        return
    try:
        yield path.lstat().st_size
    except OSError:
        return
