"""Where a PostgreSQL store is: its URL, without what nobody else may read."""

import re

import msgspec
from psycopg import ProgrammingError, conninfo, pq

from interlock.store.failures import StoreUnusable

SCHEMA = "interlock"
CONNECT_SECONDS = 10
LOCK_MS = 10_000
IDLE_MS = 8_000
"""Who begins a transaction and then stands still is thrown out before others have waited for
`LOCK_MS`: they go on, and it is told that nothing was written."""
STATEMENT_MS = 60_000
_SEARCH_PATH = re.compile(r"search_path\s*=\s*\"?([^\s,\"]+)")
_PORTS = re.compile(r"[0-9,]*")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PARAMETER = re.compile("[A-Za-z][A-Za-z0-9_]*")
_SECRET = re.compile("password|secret|_key")
"""In the name of a parameter whose value nobody else may read."""


class PostgresAddress(msgspec.Struct, frozen=True):
    name: str
    """The URL as it may be shown: who, where, which database. Never the password."""
    schema: str
    settings: dict[str, str]
    """What libpq is given. May hold a password."""

    @property
    def quoted_schema(self) -> str:
        """For SQL, where some words are not names of their own: `user`, `order`."""
        return f'"{self.schema}"'

    def __repr__(self) -> str:
        return f"PostgresAddress({self.name})"


def parse_address(url: str, *, idle_ms: int = IDLE_MS) -> PostgresAddress:
    """Raises `StoreUnusable` where the URL is none. What libpq says of it may quote a password."""
    try:
        given = _parse_url(url)
    except ProgrammingError:
        parameter = _find_unknown_parameter(url)
        raise (
            _unknown_parameter_failure(parameter) if parameter else _unreadable_url_failure()
        ) from None
    options = given.get("options", "")
    found = _SEARCH_PATH.search(options)
    schema = found[1] if found else SCHEMA
    if not _IDENTIFIER.fullmatch(schema):
        raise StoreUnusable(
            f"`{schema}` cannot be the schema of a store",
            "Use lower-case letters, digits and underscores for search_path in the store's URL.",
        )
    ours = {
        "search_path": schema,
        "lock_timeout": LOCK_MS,
        "statement_timeout": STATEMENT_MS,
        "idle_in_transaction_session_timeout": idle_ms,
        # What reads a row that has just changed waits for it and goes on, rather than to fail.
        "default_transaction_isolation": r"read\ committed",
        # A commit is on the disk before the agent is told of it, whatever the server's default.
        "synchronous_commit": "on",
        "jit": "off",  # our statements are short, and compiling them costs 50 ms
    }
    # What the URL says comes last and wins.
    settings = {
        "application_name": "interlock",
        "connect_timeout": str(CONNECT_SECONDS),
        # A peer that is gone without a word is noticed in ten seconds rather than in hours.
        "tcp_user_timeout": str(LOCK_MS),
        "keepalives_idle": "30",
        "client_encoding": "UTF8",
        **given,
        "options": " ".join([*(f"-c {name}={value}" for name, value in ours.items()), options]),
    }
    return PostgresAddress(_displayed_url(given), schema, settings)


def _parse_url(url: str) -> dict[str, str]:
    given = {name: str(value) for name, value in conninfo.conninfo_to_dict(url).items()}
    # So looks a password with a slash in it: taken for a port, and what follows for a database.
    # One with an @ in it: what follows is taken for the host.
    elsewhere = given.get("dbname", "") + given.get("host", "")
    if not _PORTS.fullmatch(given.get("port", "")) or "@" in elsewhere:
        raise _unreadable_url_failure()
    return given


def _find_unknown_parameter(url: str) -> str:
    """The parameter that libpq does not know; empty where it may be a part of a password.

    What follows a question mark in a password looks like one, but has an @ behind it. What follows
    an & in a password that is a parameter itself looks like the next one.
    """
    place, _, query = url.partition("?")
    try:
        _parse_url(place)
    except ProgrammingError:
        return ""
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    for part in query.split("&"):
        name, is_set, _ = part.partition("=")
        if "@" in query or not is_set or not _PARAMETER.fullmatch(name) or _SECRET.search(name):
            return ""
        if name not in known:
            return name
    return ""


def _unknown_parameter_failure(parameter: str) -> StoreUnusable:
    return StoreUnusable(
        f"The URL of the store has a parameter `{parameter}` that PostgreSQL does not know",
        "Correct or remove it. A setting of the server such as search_path is written like this:"
        " ?options=-csearch_path%3Dname",
    )


def _unreadable_url_failure() -> StoreUnusable:
    return StoreUnusable(
        "The URL of the store cannot be read",
        "It looks like this: postgresql://user:password@host:5432/database. In a password"
        " write characters such as @ / : % as %40 %2F %3A %25.",
    )


def _displayed_url(given: dict[str, str]) -> str:
    user = f"{given['user']}@" if "user" in given else ""
    host = given.get("host", given.get("hostaddr", ""))
    port = f":{given['port']}" if "port" in given else ""
    place = f"{user}{port}" if host.startswith("/") else f"{user}{host}{port}"
    socket = f"?host={host}" if host.startswith("/") else ""
    return f"postgresql://{place}/{given.get('dbname', '')}{socket}"
