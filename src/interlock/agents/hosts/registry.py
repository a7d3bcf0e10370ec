"""The hosts that there are. It stands alone, as they do."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.agents.hosts.host import Host

PLAIN_NAMES = ("claude-code", "codex", "gemini", "opencode")
"""Hosts whose payloads have the usual names, so that the fast hook can read them."""
NAMES = (*PLAIN_NAMES, "cursor", "copilot")


def host_named(name: str) -> "Host":
    """The host of this name, which is one of `NAMES`."""
    assert name in NAMES, name
    module = f"interlock.agents.hosts.{name.replace('-', '_')}"
    return __import__(module, fromlist=["HOST"]).HOST


def all_hosts() -> "list[Host]":
    return [host_named(name) for name in NAMES]
