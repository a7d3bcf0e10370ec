"""The shell of an agent: runs the text of a command as the mode of its session allows.

Claude Code starts it through the launcher in the data home, for each command of the model. The mode
is looked up at that moment. In coding, or where no gate is, the shell takes the place of this
process. In every other mode the text runs in the sandbox, and what cannot be told counts as such a
mode. A command that surely reads a remote or a daemon, and one simple `interlock` command, are run
outside of it; whether a command is one of those is told by the reader of shell text, which is asked
only where a word in the text makes it likely, because it takes long to start.
"""

import os
import sys

from interlock.agents.hosts import claude_code_shell
from interlock.hooks import gate_state

HOST = "claude-code"
OUTSIDE_WORDS = (
    *("interlock", "ls-remote", "git remote", "gh ", "kubectl", "docker", "npm ", "pip ", "pip3 "),
    *("curl", "wget", "dig ", "host ", "getent", "ping ", "systemctl", "journalctl", "psql"),
    *("pg_isready", "redis-cli", "aws ", "cargo search", "go list"),
)
"""Parts of which one is in every command that may run outside."""
EXIT_NOT_RUN = 126


def main(home: str, flags: str, *words: str) -> int:
    """Run a shell with a text. `flags` are those with which this interpreter finds Interlock."""
    text = words[-1]
    mode = _mode_to_confine(home)
    if not mode or _runs_outside(text, flags.split()):
        os.execvp(words[0], words)
    return _run_confined(list(words), home, mode, text)


def _mode_to_confine(home: str) -> str:
    """The mode for which the command is confined; empty if it is not."""
    if gate_state.is_overridden(home):
        return ""
    conversation = os.environ.get(claude_code_shell.SESSION_VARIABLE, "")
    try:
        state = gate_state.read_state(HOST, home, conversation)
        if state is None:
            return "unknown" if gate_state.config_above(os.getcwd()) else ""
    except Exception:  # noqa: BLE001 (what cannot be read allows nothing)
        return "unknown"
    return "" if state.mode in ("coding", "disabled") else state.mode


def _runs_outside(text: str, flags: list[str]) -> bool:
    if not any(word in text for word in OUTSIDE_WORDS):
        return False
    file = os.memfd_create("text")
    os.write(file, text.encode(errors="surrogateescape"))
    os.lseek(file, 0, 0)
    words = [sys.executable, *flags, "-m", "interlock", "sandbox", "reads-outside"]
    actions = [
        (os.POSIX_SPAWN_DUP2, file, 0),
        *((os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_WRONLY, 0) for number in (1, 2)),
    ]
    reader = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
    return os.waitpid(reader, 0)[1] == 0


def _run_confined(words: list[str], home: str, mode: str, text: str) -> int:
    from interlock.sandbox import command, confinement, scratch  # noqa: PLC0415 (5 ms)

    abi = confinement.landlock_abi()
    if abi < confinement.ABI_MIN:
        _say(
            f"this was not run: the mode is {mode}, and this machine cannot confine commands."
            " The user can run `interlock install claude-code` again, which looks what it can."
        )
        return EXIT_NOT_RUN
    conversation = os.environ.get(claude_code_shell.SESSION_VARIABLE, "")
    directory_file = claude_code_shell.directory_file(text, os.environ.get("TMPDIR") or "/tmp")
    is_made = bool(directory_file) and _make_file(directory_file)
    code = command.run_command(
        command.SandboxedCommand(
            words,
            level="read-only",
            scratch=scratch.scratch_directory(conversation),
            hidden=os.path.realpath(home),
            files=(directory_file,) if is_made else (),
            closing_line=_closing_line(mode),
        ),
        abi,
    )
    if is_made and os.stat(directory_file).st_size == 0:
        os.unlink(directory_file)  # as if the text had not come so far
    command.exit_as(code)
    return code


def _closing_line(mode: str) -> str:
    reason = f"the mode is {mode}" if mode != "unknown" else "what the session may do is not known"
    return (
        f"interlock: this ran read-only, because {reason}: only $TMPDIR could be written, and there"
        " was no network. If it failed for that, ask the user for coding (`/mode coding`)."
    )


def _make_file(path: str) -> bool:
    """Make a file that was not there, so that it can be written without its directory."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True


def _say(text: str) -> None:
    os.write(2, f"interlock: {text}\n".encode())
