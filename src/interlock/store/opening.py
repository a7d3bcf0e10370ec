"""Which store there is: the file in the data home, or a PostgreSQL database."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.store.failures import StoreUnusable
from interlock.store.keyring import FileKeyring, Keyring
from interlock.store.log import Log, LogReader

FILE = "interlock.db"
_SCHEMES = ("postgresql://", "postgres://")


class Store(msgspec.Struct, frozen=True):
    log: Log
    reader: LogReader
    """The same log, through a connection that cannot write."""
    keyring: Keyring
    place: str
    """The file, or the database without its password."""


def open_store(home: Path, url: str, entropy: Callable[[int], bytes]) -> Store:
    """The store at `url`; the file in `home` where that is empty.

    Raises:
        StoreFailure: it cannot be used; the message says why and what to do.
    """
    if not url:
        return _file(home, entropy)
    if not url.startswith(_SCHEMES):
        raise StoreUnusable(
            "The URL of the store is of no kind that Interlock knows",
            "It begins with postgresql://. Without one, the store is a file in the data home.",
        )
    try:
        return _postgres(url, entropy)
    except ImportError as error:
        raise StoreUnusable(
            f"A store in PostgreSQL needs a package that is not installed: {error}",
            "Install it: pip install 'interlock[postgres]'",
        ) from error


def _file(home: Path, entropy: Callable[[int], bytes]) -> Store:
    from interlock.store.sqlite.database import Database  # noqa: PLC0415 (one of the two is used)
    from interlock.store.sqlite.reader import SqliteReader  # noqa: PLC0415
    from interlock.store.sqlite.writer import SqliteLog  # noqa: PLC0415

    path = home / FILE
    log = SqliteLog(path)
    reader = SqliteReader(Database.read_only(path))
    return Store(log, reader, FileKeyring(home / "keyring", entropy), str(path))


def _postgres(url: str, entropy: Callable[[int], bytes]) -> Store:
    from interlock.store.postgres.address import address  # noqa: PLC0415 (its driver is optional)
    from interlock.store.postgres.keyring import PostgresKeyring  # noqa: PLC0415
    from interlock.store.postgres.reader import PostgresReader  # noqa: PLC0415
    from interlock.store.postgres.writer import PostgresLog  # noqa: PLC0415

    at = address(url)
    log = PostgresLog(at)
    return Store(log, PostgresReader.at(at), PostgresKeyring(log.db, entropy), at.name)
