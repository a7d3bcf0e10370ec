"""The shell of an agent: run each command as the mode of its session allows.

Claude Code starts this shell through the launcher in the data home, once for each command of the
model, and the shell looks up the mode at that moment. In mode coding, or without a gate, this
process becomes the user's shell. In every other mode, including an unknown one, the command runs in
the sandbox without a network, with three exceptions. After the user agrees, a remote reader reaches
public hosts through a proxy, and a client of a daemon has a network for that call. A single simple
`interlock` command runs outside the sandbox. The shell parser detects these cases. It is slow to
start, so it runs only if a word in the command makes one of them likely.

In an unattended client, a command is confined in every mode: it can write only to the worktree of
its session, reads little of the user's home, and gets no network and no variable with a secret.
"""

import os
import sys

from interlock.agents.hosts import claude_code_shell
from interlock.core.gate.command.network_programs import may_reach_out
from interlock.hooks import gate_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.sandbox.confinement import Boundary
    from interlock.sandbox.network_proxy import NetworkProxy

HOST = "claude-code"
OUTSIDE, REMOTE, DAEMON = "outside", "remote", "daemon"
"""The answers of the shell parser. Every other command is confined, without a network."""
EXIT_NOT_RUN = 126
_JOINING = ";|&\n"
_WRITERS = frozenset(
    (
        *("touch", "mkdir", "rm", "rmdir", "mv", "cp", "ln", "tee", "dd", "truncate", "patch"),
        *("chmod", "install", "add", "commit", "checkout", "switch", "stash", "merge", "rebase"),
        *("pull", "-i"),
    )
)
_FREE_TARGETS = ("&", "/dev/", "$TMPDIR", "${TMPDIR", '"$TMPDIR', '"${TMPDIR')


def main(home: str, flags: str, *words: str) -> int:
    """Run a shell with a text. `flags` are those with which this interpreter finds Interlock."""
    text = words[-1]
    mode = _mode_to_confine(home)
    if worktree := os.environ.get(claude_code_shell.WORKTREE_VARIABLE):
        return _run_unattended(list(words), home, mode, text, worktree)
    if not mode:
        os.execvp(words[0], words)
    if not may_reach_out(text) and "interlock" not in text:
        return _run_confined(list(words), home, mode, text)
    return _run_by_reach(list(words), home, mode, text, flags.split())


def _mode_to_confine(home: str) -> str:
    """The mode for which the command is confined; empty if it is not."""
    if gate_state.is_overridden(home):
        return ""
    try:
        state = gate_state.read_state(HOST, home, _conversation())
        if state is None:
            return "unknown" if gate_state.config_above(os.getcwd()) else ""
    except Exception:  # noqa: BLE001 (an unreadable state allows nothing)
        return "unknown"
    return "" if state.mode in ("coding", "disabled") else state.mode


def _run_by_reach(words: list[str], home: str, mode: str, text: str, flags: list[str]) -> int:
    from interlock.sandbox.network_proxy import NetworkProxy  # noqa: PLC0415 (20 ms)

    proxy = NetworkProxy()
    reach, *answer = _ask_reach(text, home, proxy.port, flags)
    if reach == OUTSIDE:
        _exec_own(words[0], home, text, [*flags, "-m", "interlock", *answer])
    if reach == REMOTE:
        return _run_remote_reader(words, home, text, proxy, answer)
    return _run_confined(words, home, mode, text, has_daemons=reach == DAEMON)


def _exec_own(shell: str, home: str, text: str, words: list[str]) -> None:
    """Run this Interlock: PATH, an alias or a function could name a program of the project."""
    os.environ["INTERLOCK_HOME"] = home
    file = claude_code_shell.directory_file(text, os.environ.get("TMPDIR") or "/tmp")
    script = '"$@" < /dev/null && pwd -P >| "$0"'
    os.execvp(shell, [shell, "-c", script, file or "/dev/null", sys.executable, *words])


def _ask_reach(text: str, home: str, port: int, flags: list[str]) -> list[str]:
    given, answer = os.memfd_create("text"), os.memfd_create("answer")
    os.write(given, text.encode(errors="surrogateescape"))
    os.lseek(given, 0, 0)
    words = [sys.executable, *flags, "-m", "interlock", "sandbox", "reach", "--"]
    words += [home, HOST, _conversation(), str(port)]
    actions = [
        (os.POSIX_SPAWN_DUP2, given, 0),
        (os.POSIX_SPAWN_DUP2, answer, 1),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
    ]
    os.waitpid(os.posix_spawn(words[0], words, os.environ, file_actions=actions), 0)
    from json import loads  # noqa: PLC0415 (rarely needed)

    with os.fdopen(answer, "rb") as file:
        file.seek(0)
        return loads(file.read() or b'[""]')


def _run_confined(
    words: list[str], home: str, mode: str, text: str, *, has_daemons: bool = False
) -> int:
    from interlock.sandbox import call_filter, confinement, scratch  # noqa: PLC0415 (5 ms)

    if not _can_confine(f"the mode is {mode}"):
        return EXIT_NOT_RUN
    boundary = confinement.Boundary(
        scratch.scratch_directory(home, _conversation()),
        (os.path.realpath(home),),
        socket_families=call_filter.EVERY_FAMILY if has_daemons else (),
    )
    reason = f"the mode is {mode}" if mode != "unknown" else "the mode of the session is unknown"
    network = "" if has_daemons else ", and there was no network"
    if network and may_reach_out(text):
        network += (
            " (a command gets a network only if it reads public hosts or runs clients of daemons,"
            " does nothing else but filter text, and the user agrees)"
        )
    closing_line = (
        f"interlock: this command ran read-only because {reason}: it could write only to"
        f" $TMPDIR{network}. If it failed for that reason, ask the user for mode coding"
        " (`/mode coding`)."
    )
    code = _run(words, boundary, "read-only", text, closing_line)
    if code == 0 and may_hide_failure(claude_code_shell.command_in(text)):
        os.write(2, f"{closing_line}\n".encode())
    return _exit_as(code)


def may_hide_failure(command: str) -> bool:
    """Whether a command that exits with 0 may contain a failed write or connection.

    This only looks at words: parsing the text would take longer than most commands.
    """
    plain = command.replace("2>&1", "").replace("&>", ">").replace("&&", "")
    if not any(mark in plain for mark in _JOINING):
        return False  # the exit code tells
    targets = [part.lstrip("| ") for part in plain.split(">")[1:]]
    writes = any(target and not target.startswith(_FREE_TARGETS) for target in targets)
    words = "".join(" " if mark in ";|&()'\"\n" else mark for mark in plain).split()
    return writes or not _WRITERS.isdisjoint(words) or may_reach_out(command)


def _run_remote_reader(
    words: list[str], home: str, text: str, proxy: "NetworkProxy", answer: list[str]
) -> int:
    """Run a command in an empty directory, hiding the files that other commands wrote.

    Settings in those files (of git, for example) could make a reading command run any program.
    """
    from interlock.sandbox import call_filter, confinement, scratch  # noqa: PLC0415 (5 ms)

    if not _can_confine("it reads from the network"):
        return EXIT_NOT_RUN
    directory, *variables = answer
    own = scratch.scratch_directory(home, f"{_conversation()}-network")
    boundary = confinement.Boundary(
        own,
        (os.path.realpath(home), own.rpartition("/")[0], "/dev/shm"),
        writable=(),
        socket_families=call_filter.PROXIED,
        proxy=proxy,
    )
    for variable in variables:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    start = os.getcwd()
    os.chdir(directory)
    closing_line = (
        "interlock: this command ran in an empty directory. It could reach only public hosts, by"
        " http, https and git over ssh (with keys from files, not from an ssh agent). If it failed"
        " for that reason, ask the user for mode coding (`/mode coding`)."
    )
    code = _run(words, boundary, "read-only", text, closing_line, directory=start)
    scratch.remove(directory.rpartition("/")[0])
    for host in dict.fromkeys(proxy.refused):
        name = ascii(host)[1:-1]
        _say(f"the connection to `{name}` was refused: it is on this machine or a private network")
    return _exit_as(code)


def _run_unattended(words: list[str], home: str, mode: str, text: str, place: str) -> int:
    from pathlib import Path  # noqa: PLC0415 (only unattended sessions pay for this import)

    from interlock.sandbox import scratch, worktree  # noqa: PLC0415 (as above)

    if not _can_confine("this session is unattended"):
        return EXIT_NOT_RUN
    try:
        boundary = worktree.worktree_boundary(
            Path(place),
            scratch=scratch.scratch_directory(home, _conversation()),
            hidden=os.path.realpath(home),
            is_written=not mode,
            branch=os.environ.get(claude_code_shell.BRANCH_VARIABLE),
        )
    except worktree.WorktreeUnsafe as unsafe:
        _say(f"this command was not run: {unsafe}")
        return EXIT_NOT_RUN
    kept = {*claude_code_shell.PLAIN_VARIABLES, *claude_code_shell.CALL_VARIABLES}
    for name in set(os.environ) - kept:
        if not name.startswith("GIT_"):
            del os.environ[name]
    os.environ["HOME"] = f"{boundary.scratch}/tmp"  # where tools keep what they insist on keeping
    written = "only $TMPDIR" if mode else "only the worktree and $TMPDIR"
    closing_line = f"interlock: this command could write to {written}, and had no network."
    return _exit_as(_run(words, boundary, "workspace", text, closing_line))


def _can_confine(reason: str) -> bool:
    from interlock.sandbox import confinement  # noqa: PLC0415 (5 ms)

    if confinement.landlock_abi() >= confinement.ABI_MIN:
        return True
    _say(
        f"this command was not run: {reason}, and this machine cannot confine commands."
        " The user can run `interlock install claude-code` again; it checks what the machine can"
        " confine."
    )
    return False


def _run(
    words: list[str],
    boundary: "Boundary",
    level: str,
    text: str,
    closing_line: str,
    *,
    directory: str = "",
) -> int:
    """Run a command that may write the file from which the client reads its last directory.

    With `directory`, the client reads that directory instead.
    """
    from interlock.sandbox import command, confinement  # noqa: PLC0415 (as above)

    directory_file = claude_code_shell.directory_file(text, os.environ.get("TMPDIR") or "/tmp")
    is_made = bool(directory_file) and _make_file(directory_file)
    if is_made:
        boundary.files = (*boundary.files, directory_file)
    abi = confinement.landlock_abi()
    code = command.run_command(words, boundary, level, abi, closing_line=closing_line)
    if is_made and os.stat(directory_file).st_size == 0:
        os.unlink(directory_file)  # as if the text had not come so far
    elif is_made and directory:
        with open(directory_file, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{directory}\n")
    return code


def _exit_as(code: int) -> int:
    from interlock.sandbox import command  # noqa: PLC0415 (as above)

    command.exit_as(code)
    return code


def _conversation() -> str:
    return os.environ.get(claude_code_shell.SESSION_VARIABLE, "")


def _make_file(path: str) -> bool:
    """Make a file that was not there, so that it can be written without its directory."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True


def _say(text: str) -> None:
    os.write(2, f"interlock: {text}\n".encode())
