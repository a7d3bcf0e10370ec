"""Tell who runs a command: a person at a terminal, something else of the user's, or an agent.

This stops an agent that errs, not one that attacks: a variable can be unset, and a process that
was left by its parents has no ancestors that tell.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from interlock.agents.hosts import recognition
from interlock.agents.hosts.host import Host
from interlock.agents.hosts.registry import NAMES, all_hosts, host_named
from interlock.workspace.machine import clients, processes
from interlock.workspace.machine.processes import Process, ancestors

_LAUNCHERS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "timeout", "uv", "uvx")
"""Programs that may stand between a client and the commands that it runs."""
_INIT_PROGRAMS = ("init", "systemd", "launchd", "tini", "dumb-init", "docker-init")
"""Programs that adopt orphaned processes."""


def evidence_of_agent(home: Path, environment: Mapping[str, str], process: int) -> str:
    """The evidence that an agent runs a process, as words after "and"; empty if none does."""
    for variable in recognition.AGENT_VARIABLES:
        if environment.get(variable):
            return f"{variable} is set"
    lineage = (*processes.running_processes([process]), *ancestors(process))
    client = next(filter(None, (_client_name(home, member) for member in lineage)), "")
    return f"it was started by {client}" if client else ""


def evidence_against_person(home: Path, environment: Mapping[str, str], process: int) -> str:
    """The evidence that no person runs this command; empty if one does, at a terminal."""
    if evidence := evidence_of_agent(home, environment, process):
        return evidence
    return "" if processes.can_open_terminal() else "no terminal could be opened"


def evidence_against_typing(
    host: Host, home: Path, environment: Mapping[str, str], process: int
) -> str:
    """In a hook: the evidence that no person typed the prompt into the client; empty if one did."""
    lineage = ancestors(process)
    if recognition.is_agents_shell(environment) or environment.get("INTERLOCK_SANDBOX"):
        return "a command of an agent runs this hook"
    client = client_among(lineage)
    if other := _other_client(home, lineage, client):
        return f"the client was started by {other}"
    return "" if _is_attended(host, environment, client) else "nobody attends this client"


def evidence_against_elicitation(home: Path, environment: Mapping[str, str], process: int) -> str:
    """In a server of a client: the evidence that no user can answer a question."""
    client = client_among(ancestors(process))
    name = _client_name(home, client) if client else ""
    host = host_named(name) if name in NAMES else Host()
    return evidence_against_typing(host, home, environment, process)


def can_ask(host: Host, environment: Mapping[str, str], process: int) -> bool:
    """In a hook: whether the client puts a question to somebody. If not, a question denies."""
    if not host.asks or recognition.is_agents_shell(environment):
        return False
    is_told = host.attended_variable in environment
    client = None if is_told else client_among(ancestors(process))
    # Without a terminal to read from, some would wait for an answer for ever.
    is_heard = client is None or processes.reads_terminal(client)
    return is_heard and _is_attended(host, environment, client)


def can_elicit(host: Host, environment: Mapping[str, str], process: int) -> bool:
    """In a hook: whether our server in the client can ask the user."""
    return host.elicits and _is_attended(host, environment, client_among(ancestors(process)))


def _is_attended(host: Host, environment: Mapping[str, str], client: Process | None) -> bool:
    has_terminal, words = processes.terminal_and_words(client) if client else (False, ())
    return recognition.is_attended(host, environment, words, has_terminal=has_terminal)


def client_among(lineage: Sequence[Process]) -> Process | None:
    """The client that runs a hook, among the processes that led to the hook, nearest first.

    Not by its name: many clients are a `node`. A process above the client (a terminal, say) is
    not taken, because other clients may have been started there too.
    """
    # A login shell has a dash before its name.
    client = next((p for p in lineage if p.name.lstrip("-") not in _LAUNCHERS), None)
    return None if client is None or client.name in _INIT_PROGRAMS else client


def client_title(home: Path, process: int) -> str:
    """The client that a process works for, for people; its program if it is none that is known."""
    client = client_among(ancestors(process))
    if client is None:
        return ""
    name = _client_name(home, client)
    titles = (
        host.title for host in all_hosts() if name in (host.name, host.program, *host.packages)
    )
    return next(titles, client.name)


def _other_client(home: Path, lineage: Sequence[Process], client: Process | None) -> str:
    """The name of the client above the nearest one; empty if there is none.

    Neighbours are one client: some begin with a process that starts the real one.
    """
    names = ["client" if p == client else _client_name(home, p) for p in lineage]
    nearest_of_each = [next(group) for is_client, group in groupby(names, bool) if is_client]
    return next(iter(nearest_of_each[1:]), "")


def _client_name(home: Path, process: Process) -> str:
    """The name of the client that a process is, or that a hook recorded it to be; else empty."""
    if recorded := clients.recall(home, process):
        return recorded[0].host
    return recognition.client_name(process.name, processes.terminal_and_words(process)[1])
