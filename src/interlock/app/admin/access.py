"""Access to the server: a secret for programs, a code and then a cookie for browsers.

The data home has the secret itself, and digests of codes and cookies. So users stay signed in after
a restart, and an agent that has read the whole directory cannot sign in: that takes writing to it.
"""

import hashlib
import hmac
import os
from pathlib import Path
from typing import Literal

import msgspec

from interlock.store.failures import StoreUnusable
from interlock.workspace.files.private_file import write_private_file

SECRET_FILE = "secret"
AGENT_SECRET_FILE = "agent-secret"
SECRET_BYTES = 32
LOGINS = "logins"
COOKIE_MS = 30 * 86_400_000
LIFETIME_MS = {"code": 5 * 60_000, "cookie": COOKIE_MS}
LoginKind = Literal["code", "cookie"]


class Secret(msgspec.Struct, frozen=True):
    value: bytes

    def __repr__(self) -> str:
        return "Secret(***)"

    @property
    def bearer(self) -> str:
        """The token that a program sends in `Authorization: Bearer …`."""
        return self.value.hex()

    def is_bearer(self, candidate: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self.bearer.encode())

    @property
    def agent_bearer(self) -> str:
        """The token of an agent's client. It opens `/mcp` and nothing that is the user's."""
        return self._sign("agent")

    def is_agent_bearer(self, candidate: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self.agent_bearer.encode())

    def csrf(self, cookie: str) -> str:
        """The token that a page sends back with every change, to show that it is ours."""
        return self._sign(f"csrf:{cookie}")

    def is_csrf(self, candidate: str, cookie: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self.csrf(cookie).encode())

    def _sign(self, text: str) -> str:
        return hmac.new(self.value, text.encode(), hashlib.sha256).hexdigest()


class LoginStore(msgspec.Struct, frozen=True):
    """The login codes and cookies that are valid: a file for each, named by its digest.

    A code is made for a person at a terminal, and becomes a cookie. So every cookie is a person's.
    """

    home: Path

    def issue(self, kind: LoginKind, *, now_ms: int) -> str:
        """Return a new code for one login, or the cookie of a browser.

        Raises:
            StoreFailure: it cannot be recorded.
        """
        value = os.urandom(SECRET_BYTES).hex()
        try:
            (self.home / LOGINS).mkdir(mode=0o700, exist_ok=True)
            for path in (self.home / LOGINS).glob("c*"):
                if not _is_current(path, now_ms):
                    path.unlink(missing_ok=True)
            expiry_ms = now_ms + LIFETIME_MS[kind]
            write_private_file(self._path(kind, value), str(expiry_ms).encode())
        except OSError as error:
            raise StoreUnusable(
                f"`{self.home / LOGINS}` cannot be written: {error.strerror}",
                "Check that the directory belongs to you and has room.",
            ) from error
        return value

    def is_valid(self, kind: LoginKind, value: str, *, now_ms: int) -> bool:
        return _is_current(self._path(kind, value), now_ms)

    def withdraw(self, kind: LoginKind, value: str, *, now_ms: int) -> bool:
        """End its validity; True if it was valid. Only one of several callers is answered so."""
        was_valid = self.is_valid(kind, value, now_ms=now_ms)
        try:
            self._path(kind, value).unlink()
        except OSError:
            return False
        return was_valid

    def _path(self, kind: LoginKind, value: str) -> Path:
        return self.home / LOGINS / f"{kind}-{hashlib.sha256(value.encode()).hexdigest()}"


def _is_current(path: Path, now_ms: int) -> bool:
    try:
        return now_ms < int(path.read_bytes())
    except (OSError, ValueError):
        return False


def secret_file(home: Path) -> Path:
    return home / SECRET_FILE


def agent_secret_file(home: Path) -> Path:
    return home / AGENT_SECRET_FILE


def publish_agent_bearer(home: Path, secret: Secret) -> None:
    """Write the agents' token to the file that the config of an agent's client reads it from."""
    path = agent_secret_file(home)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret.agent_bearer)


def load_secret(home: Path) -> Secret:
    """Return the secret of a data home; it is made on first use.

    Raises:
        StoreFailure: it cannot be read or made, or others can read it.
    """
    path = secret_file(home)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return _read_secret(path)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(os.urandom(SECRET_BYTES).hex())
        return _read_secret(path)
    except OSError as error:
        raise StoreUnusable(
            f"`{path}` cannot be used: {error.strerror}",
            "Check that the directory exists, belongs to you and can be written.",
        ) from error


def _read_secret(path: Path) -> Secret:
    if path.stat().st_mode & 0o077:
        raise StoreUnusable(
            f"`{path}` can be read by others", f"Delete it: `rm {path}`. A new one is made."
        )
    try:
        value = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except ValueError:
        value = b""
    if len(value) != SECRET_BYTES:
        raise StoreUnusable(
            f"`{path}` does not hold a secret", f"Delete it: `rm {path}`. A new one is made."
        )
    return Secret(value)
