"""The keyring: the keys that sign tokens, here in one file that only its owner can read."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from interlock.core.tokens import SigningKey
from interlock.store.failures import StoreUnusable
from interlock.store.lock import WriteLock

_SECRET_BYTES = 32


class _StoredKey(msgspec.Struct, frozen=True):
    id: int
    secret: str
    state: Literal["current", "retired", "revoked"]


class _KeyringFile(msgspec.Struct, frozen=True):
    v: Literal[1]
    keys: tuple[_StoredKey, ...]


class Keyring(Protocol):
    """The signing keys, which all processes that share a store share as well."""

    def keys(self) -> Mapping[int, SigningKey]:
        """All keys that ever existed, by their id, as of the last read from the store."""
        ...

    def refresh(self) -> None:
        """Learn what other processes have changed since then."""
        ...

    def current(self) -> SigningKey: ...

    def rotate(self) -> SigningKey:
        """Sign with a new key from now on. The old one keeps verifying."""
        ...

    def revoke(self, key_id: int) -> bool:
        """Refuse the tokens of a retired key. False if there is no such key."""
        ...

    def adopt(self, keys: Sequence[SigningKey]) -> None:
        """Replace all keys by the keys of another store."""
        ...


class FileKeyring:
    """A keyring in a file, which is read again whenever another process has changed it."""

    def __init__(self, path: Path, entropy: Callable[[int], bytes]) -> None:
        self._path, self._entropy = path, entropy
        self._stamp: tuple[int, int] | None = None
        self._keys: Mapping[int, SigningKey] = {}
        if not path.exists():
            self._create()

    def keys(self) -> Mapping[int, SigningKey]:
        try:
            status = self._path.stat()
        except OSError as error:
            raise StoreUnusable(
                f"The keyring `{self._path}` is gone: {error.strerror}",
                "Restore it from a backup, or restart to make a new one; outstanding tokens are"
                " then unknown, and `resume_session` gives new ones.",
            ) from error
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._keys, self._stamp = self._read(), stamp
        return self._keys

    def refresh(self) -> None:
        """Nothing to do: `keys` looks at the file each time."""

    def current(self) -> SigningKey:
        return next(key for key in self.keys().values() if key.state == "current")

    def rotate(self) -> SigningKey:
        with self._write_locked():
            existing = [
                msgspec.structs.replace(
                    key, state="retired" if key.state == "current" else key.state
                )
                for key in self.keys().values()
            ]
            fresh = fresh_key({key.id for key in existing}, self._entropy)
            self._write([*existing, fresh])
        return fresh

    def revoke(self, key_id: int) -> bool:
        with self._write_locked():
            key = self.keys().get(key_id)
            if key is None or key.state != "retired":
                return False
            others = [other for other in self.keys().values() if other.id != key_id]
            self._write([*others, msgspec.structs.replace(key, state="revoked")])
        return True

    def adopt(self, keys: Sequence[SigningKey]) -> None:
        with self._write_locked():
            self._write(keys)

    def _read(self) -> Mapping[int, SigningKey]:
        try:
            stored = msgspec.json.decode(self._path.read_bytes(), type=_KeyringFile)
            keys = [SigningKey(key.id, bytes.fromhex(key.secret), key.state) for key in stored.keys]
        except (msgspec.MsgspecError, ValueError, OSError) as error:
            raise StoreUnusable(
                f"The keyring `{self._path}` cannot be read: {error}",
                "Restore it from a backup. Removing it makes every outstanding token unknown.",
            ) from error
        return {key.id: key for key in keys}

    def _create(self) -> None:
        with self._write_locked():
            # Two first starts at once: the second finds the first one's key.
            if not self._path.exists():
                self._write([fresh_key(set(), self._entropy)])

    def _write(self, keys: Sequence[SigningKey]) -> None:
        stored = tuple(_StoredKey(key.id, key.secret.hex(), key.state) for key in keys)
        try:
            write_private_file(self._path, msgspec.json.encode(_KeyringFile(1, stored)))
        except OSError as error:
            raise StoreUnusable(
                f"The keyring `{self._path}` cannot be written: {error.strerror}",
                "Nothing was changed. Check the disk and that the directory belongs to you.",
            ) from error

    @contextmanager
    def _write_locked(self) -> Generator[None]:
        lock = WriteLock(self._path.with_name("keyring.lock"))
        try:
            with lock.hold():
                yield
        finally:
            lock.close()


def fresh_key(used_ids: set[int], entropy: Callable[[int], bytes]) -> SigningKey:
    """Return a new current key whose id is not among `used_ids`."""
    key_id = int.from_bytes(entropy(2))
    while key_id in used_ids:
        key_id = (key_id + 1) % 65_536
    return SigningKey(key_id, entropy(_SECRET_BYTES), "current")


def write_private_file(path: Path, content: bytes) -> None:
    """Replace `path` by a file of mode 0600, whole or not at all, even if the power fails."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)  # a disk may be full, and what was written is secret
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
