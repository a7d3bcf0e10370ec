"""Programs that reach beyond the files of this machine: remote readers and clients of daemons.

The fast hook and the sandboxed shell import it before every call, so it imports nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
_BREAKS = str.maketrans(dict.fromkeys("\\'\"`$;|&()<>{}=,/!", " "))


def may_reach_out(text: str) -> bool:
    """Whether a command may run one of the programs. One that hides their names has no network."""
    words = set(text.translate(_BREAKS).split())
    return any(reaches_out(word, words) for word in words)


def reaches_out(program: str, words: "Iterable[str]") -> bool:
    """Whether a command with these words needs a network or a daemon."""
    if program in DAEMON_CLIENTS:
        return True
    marks = REMOTE_READERS.get(program)
    return marks is not None and (not marks or not set(marks).isdisjoint(words))
