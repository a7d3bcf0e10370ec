"""The addresses to which a secret may be sent: nobody reads it on its way."""

from urllib.parse import urlsplit

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def is_private_address(address: str) -> bool:
    """Whether this is an https address, or an http one of this machine."""
    if not (address.isascii() and address.isprintable()) or " " in address:
        return False  # whoever refuses it later would quote it
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    is_local = parts.scheme == "http" and host in _THIS_MACHINE
    return bool(host) and (parts.scheme == "https" or is_local)
