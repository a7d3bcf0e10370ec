"""The address of a PostgreSQL store: its URL, and the part of it that may be shown."""

import re

import msgspec
from psycopg import ProgrammingError, conninfo, pq

from interlock.store.failures import StoreUnusable

SCHEMA = "interlock"
CONNECT_SECONDS = 10
LOCK_MS = 10_000
IDLE_MS = 8_000
"""A process that begins a transaction and then stalls is disconnected before others have waited for
`LOCK_MS`: they go on, and it learns that nothing was written."""
STATEMENT_MS = 60_000
_SEARCH_PATH = re.compile(r"search_path\s*=\s*\"?([^\s,\"]+)")
_PORTS = re.compile(r"[0-9,]*")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PARAMETER = re.compile("[A-Za-z][A-Za-z0-9_]*")
_SECRET = re.compile("password|secret|_key")
"""In the names of parameters whose values nobody else may read."""


class PostgresAddress(msgspec.Struct, frozen=True):
    name: str
    """The URL as it may be shown: who, where, which database. Never the password."""
    schema: str
    settings: dict[str, str]
    """The parameters for libpq. May hold a password."""

    @property
    def quoted_schema(self) -> str:
        """The schema for SQL, where some words need quotes to be names: `user`, `order`."""
        return f'"{self.schema}"'

    def __repr__(self) -> str:
        return f"PostgresAddress({self.name})"


def parse_address(url: str, *, idle_ms: int = IDLE_MS) -> PostgresAddress:
    """Parse the URL of a store. Raises `StoreUnusable` if it is not one.

    Never with the message of libpq, which may quote a password.
    """
    try:
        parameters = _parse_url(url)
    except ProgrammingError:
        parameter = _find_unknown_parameter(url)
        raise (
            _unknown_parameter_failure(parameter) if parameter else _unreadable_url_failure()
        ) from None
    options = parameters.get("options", "")
    match = _SEARCH_PATH.search(options)
    schema = match[1] if match else SCHEMA
    if not _IDENTIFIER.fullmatch(schema):
        raise StoreUnusable(
            f"`{schema}` cannot be the schema of a store",
            "Use lower-case letters, digits and underscores for search_path in the store's URL.",
        )
    server_settings = {
        "search_path": schema,
        "lock_timeout": LOCK_MS,
        "statement_timeout": STATEMENT_MS,
        "idle_in_transaction_session_timeout": idle_ms,
        # A statement that meets a row just changed waits for it and goes on, rather than failing.
        "default_transaction_isolation": r"read\ committed",
        # A commit is on the disk before the agent is told of it, whatever the server's default.
        "synchronous_commit": "on",
        "jit": "off",  # our statements are short, and compiling them costs 50 ms
    }
    # The parameters of the URL come last and win.
    settings = {
        "application_name": "interlock",
        "connect_timeout": str(CONNECT_SECONDS),
        # A peer that silently disappears is noticed in ten seconds rather than in hours.
        "tcp_user_timeout": str(LOCK_MS),
        "keepalives_idle": "30",
        "client_encoding": "UTF8",
        **parameters,
        "options": " ".join(
            [*(f"-c {name}={value}" for name, value in server_settings.items()), options]
        ),
    }
    return PostgresAddress(_displayed_url(parameters), schema, settings)


def _parse_url(url: str) -> dict[str, str]:
    parameters = {name: str(value) for name, value in conninfo.conninfo_to_dict(url).items()}
    # A password with a slash in it is taken for a port, and what follows for a database. With an
    # @ in it, what follows is taken for the host.
    database_and_host = parameters.get("dbname", "") + parameters.get("host", "")
    if not _PORTS.fullmatch(parameters.get("port", "")) or "@" in database_and_host:
        raise _unreadable_url_failure()
    return parameters


def _find_unknown_parameter(url: str) -> str:
    """Return the parameter that libpq does not know; empty if it may be part of a password.

    What follows a question mark in a password looks like one, but has an @ after it. What follows
    an & in a password that is a parameter itself looks like the next one.
    """
    base_url, _, query = url.partition("?")
    try:
        _parse_url(base_url)
    except ProgrammingError:
        return ""
    known_names = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    for part in query.split("&"):
        name, equals, _ = part.partition("=")
        if "@" in query or not equals or not _PARAMETER.fullmatch(name) or _SECRET.search(name):
            return ""
        if name not in known_names:
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


def _displayed_url(parameters: dict[str, str]) -> str:
    user = f"{parameters['user']}@" if "user" in parameters else ""
    host = parameters.get("host", parameters.get("hostaddr", ""))
    port = f":{parameters['port']}" if "port" in parameters else ""
    authority = f"{user}{port}" if host.startswith("/") else f"{user}{host}{port}"
    socket = f"?host={host}" if host.startswith("/") else ""
    return f"postgresql://{authority}/{parameters.get('dbname', '')}{socket}"
