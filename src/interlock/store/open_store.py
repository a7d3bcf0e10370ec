"""Opening the store: the file in the data home, or a PostgreSQL database."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.store.blob_cache import BlobCache
from interlock.store.failures import StoreUnusable
from interlock.store.keyring import FileKeyring, Keyring
from interlock.store.log import Log
from interlock.store.log_reader import LogReader
from interlock.store.private import create_private_directory

STORE_FILE = "interlock.db"
_SCHEMES = ("postgresql://", "postgres://")
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_KEYWORDS = re.compile(r"\b(host|hostaddr|dbname|password|user|service)\s*=")
"""The other form in which libpq takes the address of a database. It may hold a password."""


class Store(msgspec.Struct, frozen=True):
    log: Log
    reader: LogReader
    """The same log, through a connection that cannot write."""
    keyring: Keyring
    label: str
    """The file, or the database without its password."""

    def close(self) -> None:
        self.reader.close()
        self.log.close()


def open_store(
    home: Path, url: str, entropy: Callable[[int], bytes], *, is_kept: bool = False
) -> Store:
    """Open the store at `url`, or the file in `home` if that is empty.

    A database is connected to at its first use: whoever does not need it works while it is away.
    `is_kept`: the connection to it is held even if it is idle.

    Raises:
        StoreFailure: it cannot be used; the message gives the reason and what to do.
    """
    if not url:
        return _open_file_store(home, entropy)
    if not url.startswith(_SCHEMES):
        raise StoreUnusable(
            "The URL of the store is of no kind that Interlock knows",
            "It begins with postgresql://. Without one, the store is a file in the data home.",
        )
    return _open_postgres_store(url, entropy, is_kept=is_kept)


def open_target(to: str, entropy: Callable[[int], bytes]) -> Store:
    """Open the target of a copy: a database, or a directory that is or becomes a data home.

    It is created if it does not exist, and may be a copy that is not finished.

    Raises:
        StoreFailure: it cannot be used; the message gives the reason and what to do.
    """
    home = directory_of(to)
    if home is None:
        return _open_postgres_store(to, entropy, may_be_unfinished=True)
    create_private_directory(home, hint="Name one that you can write.")
    return _open_file_store(home, entropy, may_be_unfinished=True)


def directory_of(to: str) -> Path | None:
    """Return the directory that `to` names as a target; None if it names a database.

    Raises:
        StoreUnusable: it is neither.
    """
    if to.startswith(_SCHEMES):
        return None
    if _SCHEME.match(to) or _KEYWORDS.search(to):
        raise StoreUnusable(
            "A store cannot be copied to that",
            "Give a URL that begins with postgresql://, or a directory (./name, where its name"
            " has a colon).",
        )
    return Path(to).expanduser().absolute()


def holds_foreign_files(directory: Path) -> bool:
    """Whether the directory has something in it that is no store.

    A copy that ended before it had created a store leaves only files named after the store.
    """
    try:
        names = os.listdir(directory)
    except OSError:
        return False  # it does not exist yet, or whoever opens it reports what is wrong
    return STORE_FILE not in names and any(not name.startswith(STORE_FILE) for name in names)


def _open_file_store(
    home: Path, entropy: Callable[[int], bytes], *, may_be_unfinished: bool = False
) -> Store:
    from interlock.store.sqlite.log_database import open_reader  # noqa: PLC0415 (one of the two is used)
    from interlock.store.sqlite.writer import SqliteLog  # noqa: PLC0415

    path, cache = home / STORE_FILE, BlobCache()
    log = SqliteLog(path, may_be_unfinished=may_be_unfinished, cache=cache)
    reader = open_reader(path, may_be_unfinished=may_be_unfinished, cache=cache)
    return Store(log, reader, FileKeyring(home / "keyring", entropy), str(path))


def _open_postgres_store(
    url: str,
    entropy: Callable[[int], bytes],
    *,
    may_be_unfinished: bool = False,
    is_kept: bool = False,
) -> Store:
    from interlock.store.log_reader import LogReader  # noqa: PLC0415 (140 ms, only here)
    from interlock.store.postgres import schema  # noqa: PLC0415
    from interlock.store.postgres.address import IDLE_MS, parse_address  # noqa: PLC0415
    from interlock.store.postgres.keyring import PostgresKeyring  # noqa: PLC0415
    from interlock.store.postgres.writer import PostgresLog  # noqa: PLC0415

    # A copy may read for long before it goes on writing, and keeps nobody else from the target.
    address = parse_address(url, idle_ms=0 if may_be_unfinished else IDLE_MS)
    cache = BlobCache()
    log = PostgresLog(address, may_be_unfinished=may_be_unfinished, is_kept=is_kept, cache=cache)
    reader = LogReader(log.db, schema_version=schema.VERSION, cache=cache)
    return Store(log, reader, PostgresKeyring(log.db, entropy), address.name)
