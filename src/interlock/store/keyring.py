"""The keyring: the keys that sign tokens, in one file that only its owner can read."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from interlock.core.tokens import Key
from interlock.store.failures import StoreUnusable
from interlock.store.lock import WriteLock

_SECRET_BYTES = 32


class _StoredKey(msgspec.Struct, frozen=True):
    id: int
    secret: str
    state: Literal["current", "retired", "revoked"]


class _Stored(msgspec.Struct, frozen=True):
    v: Literal[1]
    keys: tuple[_StoredKey, ...]


class Keyring:
    """Reads the file again whenever another process has changed it."""

    def __init__(self, path: Path, entropy: Callable[[int], bytes]) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._keys: Mapping[int, Key] = {}
        if not path.exists():
            self._create(entropy)

    def keys(self) -> Mapping[int, Key]:
        found = self._path.stat()
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp != self._stamp:
            self._keys, self._stamp = self._read(), stamp
        return self._keys

    def current(self) -> Key:
        return next(key for key in self.keys().values() if key.state == "current")

    def _read(self) -> Mapping[int, Key]:
        try:
            stored = msgspec.json.decode(self._path.read_bytes(), type=_Stored)
            keys = [Key(key.id, bytes.fromhex(key.secret), key.state) for key in stored.keys]
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreUnusable(
                f"The keyring `{self._path}` cannot be read: {error}",
                "Restore it from a backup. Removing it makes every outstanding token unknown.",
            ) from error
        return {key.id: key for key in keys}

    def _create(self, entropy: Callable[[int], bytes]) -> None:
        lock = WriteLock(self._path.with_name("keyring.lock"))
        with lock.held():
            # Two first starts at once: the second finds the first one's key.
            if not self._path.exists():
                key = _StoredKey(
                    int.from_bytes(entropy(2)), entropy(_SECRET_BYTES).hex(), "current"
                )
                write_private(self._path, msgspec.json.encode(_Stored(1, (key,))))
        lock.close()


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` by a file of mode 0600, whole or not at all, whenever the power fails."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
