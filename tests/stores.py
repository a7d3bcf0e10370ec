"""A store that a test may open as often as it likes, in as many processes as it likes."""

import os
from pathlib import Path

import msgspec

from interlock.store.keyring import Keyring
from interlock.store.log import Log
from interlock.store.log_reader import LogReader
from interlock.store.open_store import STORE_FILE, Store, open_store
from interlock.store.sqlite.database import SqliteDatabase


class Place(msgspec.Struct, frozen=True):
    home: Path
    url: str = ""
    """Empty: the file in `home`."""

    def open(self) -> Store:
        return open_store(self.home, self.url, os.urandom)

    def log(self) -> Log:
        return self.open().log

    def reader(self) -> LogReader:
        return self.open().reader

    def run(self, sql: str, *values: bytes) -> None:
        """Behind Interlock's back."""
        if self.url:
            import psycopg  # noqa: PLC0415 (only where there is a PostgreSQL)

            with psycopg.connect(self.url) as connection:
                connection.execute("SET search_path = interlock")
                connection.execute(sql.replace("?", "%s").encode(), values)
        else:
            db = SqliteDatabase.read_write(self.home / STORE_FILE)
            db.run(sql, values)
            db.close()

    def keyring(self) -> Keyring:
        return self.open().keyring


def place_of(home: Path) -> Place:
    """Where the store of a data home is, as the test chose it."""
    return Place(home, os.environ.get("INTERLOCK_STORE", ""))
