"""Rewrite our commands in a text to the form of a client."""

from interlock.agents.hosts.host import COMMANDS, Host


def as_typed(host: Host, text: str) -> str:
    """Return the text with our commands as they are typed in this client."""
    prefix = host.mode_command.removesuffix("mode")
    for command in COMMANDS:
        for end in (" ", "`"):
            text = text.replace(f"`/{command}{end}", f"`{prefix}{command}{end}")
    return text
