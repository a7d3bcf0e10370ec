"""How a command that does not write reaches beyond this machine's files, and who lets it."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from interlock.core.gate.command import programs
from interlock.core.gate.command.builtins import BUILTINS
from interlock.core.gate.command.judgement import Command
from interlock.core.gate.command.network_programs import DAEMON_CLIENTS
from interlock.core.gate.shell import Analysis

_TEXT_PROGRAMS = {*programs.READERS, *BUILTINS, "", "sed", "gsed", "awk", "gawk", "mawk", "nawk"}
"""Programs that take no code from the directory in which they run."""
_MOVES = ("cd", "pushd", "popd")


class NetworkUse(msgspec.Struct, frozen=True):
    kind: Literal["remote", "daemon"]
    """Remote readers reach public hosts alone; clients of daemons need the whole network."""
    commands: tuple[tuple[str, ...], ...]
    """The words of each command that reaches out."""
    is_literal: bool
    """Whether all words are literal. A substitution could put the content of any file into one."""

    def programs_to_ask(self, listed: Iterable[str], agreed: Iterable[str]) -> list[str]:
        """The programs with a command that neither begins with listed words nor was agreed to."""
        starts = [tuple(entry.split()) for entry in listed if entry.strip()]
        if self.kind == "remote" and self.is_literal:
            starts += [(program,) for program in agreed]
        asked = (
            words[0]
            for words in self.commands
            if not any(words[: len(start)] == start for start in starts)
        )
        return list(dict.fromkeys(asked))

    def question(self, programs: Iterable[str]) -> tuple[str, str]:
        """The reason and the remedy of the question to the user."""
        names = ", ".join(f"`{name}`" for name in programs)
        if self.kind == "remote":
            return (
                f"This reads from the network with {names}; an address can carry data out",
                f"A yes holds for reading with {names} in this conversation, where the words of"
                " the command are literal.",
            )
        return (
            f"This uses a daemon or the whole network with {names}, and may do more than read",
            "A yes holds for this call. The user can list commands that need no question"
            " (`network_commands` in the user's config).",
        )


def network_use(analysis: Analysis) -> NetworkUse | None:
    """How a command reaches out; None if it does not, or in no way that could be allowed.

    What it does besides must be harmless with a network: with other programs, the settings of a
    repository could run anything.
    """
    if analysis.effect != "asks":
        return None
    asking = [command for command in analysis.commands if command.effect == "asks"]
    others = [command for command in analysis.commands if command.effect != "asks"]
    if not all(command.program in _TEXT_PROGRAMS for command in others):
        return None
    commands = tuple((command.program, *command.arguments) for command in asking)
    is_literal = all(command.is_literal for command in asking)
    if all(command.program in DAEMON_CLIENTS for command in asking):
        return NetworkUse("daemon", commands, is_literal)
    # A remote reader runs in a directory of its own: what leads out of it would not be found.
    is_moving = any(command.program in _MOVES for command in others)
    if is_moving or not all(map(_is_remote, asking)):
        return None
    return NetworkUse("remote", commands, is_literal)


def _is_remote(command: Command) -> bool:
    is_elsewhere = command.program == "git" and command.arguments[:1] != ("ls-remote",)
    return command.program not in DAEMON_CLIENTS and not is_elsewhere
