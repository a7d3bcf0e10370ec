"""The part of SQL that both engines share, so that the log is read by the same statements.

A statement has a `?` for each value. `= ANY (?)` takes a list (`Texts`, `Contents`). `FOR UPDATE`
at its end locks rows, where not everything is locked anyway. What the engines do differently is a
method of their databases.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from interlock.core.ids import SessionId


class Texts(list[str | None]):
    """A list of texts as one value."""


class Numbers(list[int]):
    """A list of whole numbers as one value."""


class Contents(list[bytes | None]):
    """A list of byte strings as one value."""


Value: TypeAlias = bool | int | str | bytes | Texts | Numbers | Contents | None
Statement: TypeAlias = tuple[str, Sequence[Value]]
Rows: TypeAlias = Sequence[tuple[Any, ...]]

LEFT_FIRST = "/* left first */ JOIN"
"""A join that begins with its left side: left to itself, SQLite may walk through all of the right
one instead."""

Answer_co = TypeVar("Answer_co", covariant=True)
T = TypeVar("T")
U = TypeVar("U")


class Query(Generic[Answer_co]):
    """A question: the statements that answer it, and what to make of their rows."""

    __slots__ = ("decode", "statements")

    def __init__(
        self, statements: Sequence[Statement], decode: Callable[[Sequence[Rows]], Answer_co]
    ) -> None:
        self.statements, self.decode = statements, decode


def both(first: Query[T], second: Query[U]) -> Query[tuple[T, U]]:
    """Two questions as one."""
    count = len(first.statements)
    return Query(
        (*first.statements, *second.statements),
        lambda results: (first.decode(results[:count]), second.decode(results[count:])),
    )


class SqlDatabase(Protocol):
    """A connection to a database, as the reader of a log needs it."""

    def read(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]: ...

    def read_all(self, statements: Sequence[Statement]) -> list[Rows]:
        """The rows of each statement, all as they were at one moment; in one round trip."""
        ...

    def snapshot(self, *, is_long: bool) -> AbstractContextManager[None]:
        """Everything read inside is of one moment. Inside another snapshot, of that moment."""
        ...

    def runs_with_words(
        self, words: Sequence[str], *, all_of: bool, newest: int | None = None
    ) -> tuple[str, Sequence[Value]]:
        """A statement that selects the ids of runs with these words, and its values.

        `newest`: only so many are needed, the newest of those that are not archived.
        """
        ...

    def change_marker(self) -> int: ...

    def position(self) -> int: ...

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]: ...

    def identity(self) -> str: ...

    def size(self) -> int:
        """The number of bytes on disk."""
        ...

    def engine(self) -> str:
        """The name and the version of the engine."""
        ...

    def close(self) -> None: ...


class WritableSqlDatabase(SqlDatabase, Protocol):
    """One that can be written as well."""

    def write_all(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run the statements as one transaction, on the disk when it returns; return their rows."""
        ...

    @property
    def clock_ms(self) -> str:
        """The time by the clock of the store, as an expression of SQL."""
        ...

    @property
    def does_clock_restart(self) -> bool:
        """Whether it begins anew with the machine."""
        ...
