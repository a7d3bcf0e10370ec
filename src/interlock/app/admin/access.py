"""Access to the server: for whoever can read the secret in the data home, and their browser.

A browser never holds the secret itself, only values signed with it, and the server remembers
nothing but the login codes of the last minutes. So a restart logs nobody out.
"""

import hashlib
import hmac
import os
from pathlib import Path

import msgspec

from interlock.store.failures import StoreUnusable

SECRET_FILE = "secret"
AGENT_SECRET_FILE = "agent-secret"
SECRET_BYTES = 32
LOGIN_CODE_MS = 5 * 60_000
COOKIE_MS = 30 * 86_400_000


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

    def login_code(self, *, now_ms: int) -> str:
        """A code for one login within minutes. It is in a URL's fragment, which is never sent."""
        return self._sign_with_expiry("login", now_ms + LOGIN_CODE_MS)

    def is_login_code(self, code: str, *, now_ms: int, since_ms: int = 0) -> bool:
        """Whether it was made with this secret, at `since_ms` or later, and is still valid."""
        if not self._is_valid("login", code, now_ms):
            return False
        return int(code.partition(".")[0]) - LOGIN_CODE_MS >= since_ms

    def cookie(self, *, now_ms: int) -> str:
        return self._sign_with_expiry("cookie", now_ms + COOKIE_MS)

    def is_cookie(self, candidate: str, *, now_ms: int) -> bool:
        return self._is_valid("cookie", candidate, now_ms)

    def csrf(self, cookie: str) -> str:
        """The token that a page sends back with every change, to show that it is ours."""
        return self._sign(f"csrf:{cookie}")

    def is_csrf(self, candidate: str, cookie: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self.csrf(cookie).encode())

    def _sign_with_expiry(self, purpose: str, expiry_ms: int) -> str:
        return f"{expiry_ms}.{self._sign(f'{purpose}:{expiry_ms}')}"

    def _is_valid(self, purpose: str, candidate: str, now_ms: int) -> bool:
        expiry, _, _ = candidate.partition(".")
        if not (expiry.isascii() and expiry.isdigit() and len(expiry) < 16):  # noqa: PLR2004
            return False
        expected = self._sign_with_expiry(purpose, int(expiry))
        return hmac.compare_digest(candidate.encode(), expected.encode()) and now_ms < int(expiry)

    def _sign(self, text: str) -> str:
        return hmac.new(self.value, text.encode(), hashlib.sha256).hexdigest()


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
