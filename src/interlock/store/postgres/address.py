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
_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.-]*)=((?:\\.|\S)*)\s*")
"""A setting of the server, as the parameter `options` has it."""
_PORTS = re.compile(r"[0-9,]*")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PARAMETER = re.compile("[A-Za-z][A-Za-z0-9_]*")
_SECRET = re.compile("password|secret|_key")
"""In the names of parameters whose values nobody else may read."""


class PostgresAddress(msgspec.Struct, frozen=True):
    name: str
    """The URL as it may be shown: who, where, which database. Never the password."""
    parameters: dict[str, str]
    """The parameters for libpq. May hold a password."""
    settings: dict[str, str]
    """The settings of the server for our connection. They are sent after connecting: poolers refuse
    to pass on settings that come with the connection, or drop them."""

    @property
    def schema(self) -> str:
        return self.settings["search_path"]

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
    settings = {
        "search_path": SCHEMA,
        "lock_timeout": str(LOCK_MS),
        "statement_timeout": str(STATEMENT_MS),
        "idle_in_transaction_session_timeout": str(idle_ms),
        # A statement that meets a row just changed waits for it and goes on, rather than failing.
        "default_transaction_isolation": "read committed",
        # A commit is on the disk before the agent is told of it, whatever the server's default.
        "synchronous_commit": "on",
        "jit": "off",  # our statements are short, and compiling them costs 50 ms
        # The settings of the URL come last and win.
        **_parse_options(parameters.pop("options", "")),
    }
    schema = settings["search_path"].partition(",")[0].strip('" ')
    if not _IDENTIFIER.fullmatch(schema):
        raise StoreUnusable(
            f"`{schema}` cannot be the schema of a store",
            "Use lower-case letters, digits and underscores for search_path in the store's URL.",
        )
    name = _displayed_url(parameters)
    parameters = {
        "application_name": "interlock",
        "connect_timeout": str(CONNECT_SECONDS),
        # A peer that silently disappears is noticed in ten seconds rather than in hours.
        "tcp_user_timeout": str(LOCK_MS),
        "keepalives_idle": "30",
        "client_encoding": "UTF8",
        **parameters,
    }
    return PostgresAddress(name, parameters, {**settings, "search_path": schema})


def _parse_options(options: str) -> dict[str, str]:
    """Return the settings in the parameter `options`, which is a command line for the server."""
    settings: dict[str, str] = {}
    at = 0
    while option := _OPTION.match(options, at):
        settings[option[1].replace("-", "_")] = re.sub(r"\\(.)", r"\1", option[2])
        at = option.end()
    if options[at:].strip():
        raise StoreUnusable(
            "The URL of the store has `options` that cannot be used",
            "Each is a setting of the server, written like this:"
            " ?options=-csearch_path%3Dname%20-cstatement_timeout%3D30000",
        )
    return settings


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
