"""Programs that reach beyond the files of this machine: remote readers and clients of daemons.

The fast hook and the sandboxed shell import it before every call, so it imports nothing.
"""

REMOTE_READERS = {
    "curl": (),
    "wget": (),
    "gh": (),
    "git": ("ls-remote",),
    "npm": ("view", "info", "show", "search", "ping", "whoami"),
    **dict.fromkeys(("pip", "pip3"), ("index", "--outdated", "-o")),
    "cargo": ("search",),
}
"""Programs that read from public hosts, and the words of which one makes them do so."""
DAEMON_CLIENTS = frozenset(
    (
        *("docker", "podman", "kubectl", "systemctl", "psql", "pg_isready", "redis-cli", "aws"),
        *("dig", "host", "nslookup", "ping"),
    )
)
"""Programs that a proxy cannot serve: they need sockets of this machine, or datagrams."""
_TRACES = (
    *("curl", "wget", "gh ", "ls-remote", "npm ", "pip ", "pip3 ", "cargo search"),
    *("docker", "podman", "kubectl", "systemctl", "psql", "pg_isready", "redis-cli", "aws "),
    *("dig ", "host ", "nslookup", "ping "),
)
"""Parts of which one is in every command that reaches out with one of the programs."""


def may_reach_out(text: str) -> bool:
    """Whether a command may run one of the programs. One that hides their names has no network."""
    folded = text.replace("\t", " ").replace("\n", " ")
    return any(trace in f"{folded} " for trace in _TRACES)


def reaches_out(program: str, words: tuple[str, ...]) -> bool:
    """Whether a command needs a network or a daemon."""
    if program in DAEMON_CLIENTS:
        return True
    marks = REMOTE_READERS.get(program)
    return marks is not None and (not marks or not set(marks).isdisjoint(words))
