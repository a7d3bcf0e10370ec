"""How far a command of an agent may reach, although the mode confines it.

A hook has the client ask the user before a command uses a network or a daemon, and records that.
When the command then runs, the user has agreed. For a remote reader that holds for the rest of the
conversation; a client of a daemon is asked about each time.
"""

import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from interlock.app.clock import SystemClock
from interlock.core.gate.command.network_programs import may_reach_out
from interlock.core.gate.network_use import NetworkUse, network_use
from interlock.core.gate.own_calls import needs_no_sandbox
from interlock.core.gate.shell import analyse, first_literal_word
from interlock.sandbox import network_proxy, scratch, ssh_tunnel
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.git.runner import run_git, setting_variables
from interlock.workspace.machine import user_questions
from interlock.workspace.machine.user_questions import AGREED
from interlock.workspace.projects import settings

Reach = Literal["outside", "remote", "daemon", "inside"]
_EVALUATED = re.compile(r"(?<!\S)eval ")
# The settings by which git and gh find out which repository is meant. They name no program.
_REMOTES = r"^(remote\..*\.(url|fetch|gh-resolved)|branch\..*\.(remote|merge))$"
_READER_SETTINGS = {
    "GIT_ALLOW_PROTOCOL": "http:https:ssh",
    "GIT_PROXY_COMMAND": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "GH_PAGER": "cat",
    "GH_PROMPT_DISABLED": "1",
    "GH_BROWSER": "false",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "PYTHONPATH": "",
    "PYTHONSAFEPATH": "1",
    "PIP_NO_INPUT": "1",
    "RUSTC_WRAPPER": "",
    "npm_config_git": "/bin/false",
    "npm_config_ignore_scripts": "true",
}
"""Variables with which remote readers start no other program that a directory could name."""


def record_question(home: Path, host: str, conversation: str, command: str) -> None:
    """Record that the user is asked whether this command may reach out.

    Raises:
        OSError: it cannot be written.
    """
    now_ms = SystemClock().now_ms()
    for subject in _subjects(home, host, conversation, command)[1]:
        user_questions.record(home, host, conversation, subject, now_ms=now_ms)


def accept_run(home: Path, host: str, conversation: str, command: str) -> Reach:
    """How far a command that runs now may reach. What the user was asked is agreed by that."""
    use, subjects = _subjects(home, host, conversation, command)
    now_ms = SystemClock().now_ms()
    where = (home, host, conversation)
    if use is None:
        return "inside"
    for subject in subjects:
        if not user_questions.consume(*where, subject, now_ms=now_ms):
            return "inside"
    for subject in subjects if use.kind == "remote" else ():
        user_questions.record(*where, subject, now_ms=now_ms, directory=AGREED)
    return use.kind


def _subjects(
    home: Path, host: str, conversation: str, command: str
) -> tuple[NetworkUse | None, list[str]]:
    """How the command reaches out, and about what the user has to be asked first."""
    use = network_use(analyse(command)) if may_reach_out(command) else None
    if use is None:
        return None, []
    try:
        listed: Iterable[str] = settings.user_policy_in(home / "config.toml").network_commands
    except SettingsBroken:
        listed = ()
    now_ms = SystemClock().now_ms()
    agreed = user_questions.agreed_readers(home, host, conversation, now_ms=now_ms)
    programs = use.programs_to_ask(listed, agreed)
    if use.kind == "remote" or not programs:
        return use, programs
    # Not the text: a client may add `< /dev/null` to it, or cut blanks off.
    return use, [f"daemon\0{use.commands}"]


def reach_of(text: str, home: Path, host: str, conversation: str) -> Reach:
    """How far the command in a client's shell text may reach, which runs now.

    One simple command of ours runs outside, because it asks itself who runs it.
    """
    if own_arguments(text):
        return "outside"
    command_text = _evaluated_command(text)
    if command_text is None:
        return "inside"
    return accept_run(home, host, conversation, command_text)


def own_arguments(text: str) -> tuple[str, ...]:
    """The arguments of the command in a client's shell text, if it is ours and runs outside."""
    analysis = analyse(_evaluated_command(text) or "")
    command = analysis.commands[0] if analysis.is_simple else None
    is_ours = command and command.program == "interlock" and needs_no_sandbox(command)
    return command.arguments if command and is_ours else ()


def _evaluated_command(text: str) -> str | None:
    evaluated = _EVALUATED.search(text)
    return first_literal_word(text[evaluated.end() :]) if evaluated else None


def prepare_reader(
    home: Path, conversation: str, directory: Path, port: int
) -> tuple[str, dict[str, str]]:
    """Make an empty directory for a remote reader. Returns it, and the variables for the reader.

    Git and gh find a repository there that has the remotes and the branch of the one around
    `directory`, and none of its other settings. `port` is that of the sandbox's proxy.
    """
    place = Path(mkdtemp(dir=scratch.scratch_directory(str(home), f"{conversation}-network")))
    repository, empty = place / "repository", place / "empty"
    for folder in (empty, repository / "objects", repository / "refs"):
        folder.mkdir(parents=True)
    head = run_git(directory, "symbolic-ref", "HEAD").output.strip()
    (repository / "HEAD").write_text(f"ref: {head or 'refs/heads/main'}\n")
    listed = run_git(directory, "config", "-z", "--get-regexp", _REMOTES).output.split("\0")
    pairs = (entry.partition("\n") for entry in listed if entry.count("\n") == 1)
    remotes = {key: value for key, _, value in pairs}
    proxies = network_proxy.proxy_variables(port)
    variables = {
        **_READER_SETTINGS,
        **proxies,
        **setting_variables({**remotes, "http.proxy": proxies["https_proxy"]}),
        "GIT_DIR": str(repository),
        "GIT_SSH_VARIANT": "ssh",
        "GIT_SSH_COMMAND": shlex.join(
            (sys.executable, "-I", "-S", ssh_tunnel.__file__, "ssh", str(port))
        ),
    }
    return str(empty), variables
