"""The keyring in PostgreSQL: whoever shares the sessions shares the keys of their tokens."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from interlock.core.tokens import SigningKey
from interlock.store.keyring import fresh_key
from interlock.store.postgres.database import PostgresDatabase

T = TypeVar("T")


class PostgresKeyring:
    """Reads the keys again when their version says that another process has changed them.

    The version is read along with everything that is read from the store, so that it costs nothing.
    The first key is made by whoever connects first. That is never inside a transaction, which
    might be undone, and the key with it.
    """

    def __init__(self, db: PostgresDatabase, entropy: Callable[[int], bytes]) -> None:
        self._db, self._entropy = db, entropy
        self._version = self._seen_version = -1
        self._keys: Mapping[int, SigningKey] = {}
        db.read_along("SELECT version FROM token_key_version", self._see_version)
        db.add_connect_check(self._ensure_first_key)

    def keys(self) -> Mapping[int, SigningKey]:
        if self._version < 0:
            self._db.connect()  # which reads them
        if self._seen_version != self._version:
            self._read()
        return self._keys

    def refresh(self) -> None:
        self._read()

    def current(self) -> SigningKey:
        return next(key for key in self.keys().values() if key.state == "current")

    def rotate(self) -> SigningKey:
        def change() -> SigningKey:
            fresh = fresh_key(set(self._keys), self._entropy)
            self._db.run("UPDATE token_key SET state = 'retired' WHERE state = 'current'")
            self._insert(fresh)
            return fresh

        return self._in_transaction(change)

    def revoke(self, key_id: int) -> bool:
        def change() -> bool:
            revoked = self._db.row(
                "UPDATE token_key SET state = 'revoked' WHERE id = ? AND state = 'retired'"
                " RETURNING id",
                (key_id,),
            )
            return revoked is not None

        return self._in_transaction(change)

    def adopt(self, keys: Sequence[SigningKey]) -> None:
        def change() -> None:
            self._db.run("DELETE FROM token_key")
            for key in keys:
                self._insert(key)

        self._in_transaction(change)

    def _see_version(self, version: int) -> None:
        self._seen_version = version

    def _ensure_first_key(self, _: PostgresDatabase) -> None:
        if self._version < 0:
            self._read()
        if not self._keys:
            self._create()

    def _create(self) -> None:
        def change() -> None:
            if not self._keys:  # two first starts at once: the second finds the first one's key
                self._insert(fresh_key(set(), self._entropy))

        self._in_transaction(change)

    def _insert(self, key: SigningKey) -> None:
        self._db.run(
            "INSERT INTO token_key (id, secret, state) VALUES (?, ?, ?)",
            (key.id, key.secret, key.state),
        )

    def _in_transaction(self, change: Callable[[], T]) -> T:
        """Make one change at a time: the row of the version is locked until it is committed."""
        self._db.begin()
        try:
            self._db.run("UPDATE token_key_version SET version = version + 1")
            self._read()
            result = change()
            self._read()
            self._db.commit()
        except BaseException:
            self._version = -1  # the keys that were read are not the ones that are stored
            self._db.rollback()
            raise
        return result

    def _read(self) -> None:
        rows = list(
            self._db.rows(
                "SELECT v.version, k.id, k.secret, k.state"
                " FROM token_key_version v LEFT JOIN token_key k ON true ORDER BY k.made"
            )
        )
        self._version = self._seen_version = rows[0][0]
        self._keys = {row[1]: SigningKey(*row[1:]) for row in rows if row[1] is not None}
