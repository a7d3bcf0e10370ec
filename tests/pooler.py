"""pgbouncer for tests: between clients and a cluster, on a socket of its own."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.child_process import end_with_parent
from tests.postgres import USER, Cluster, as_nobody

MISSING = "NOT TESTED: pgbouncer is not here, so the store is not tried behind a pooler"
_PORT = 6432


def program() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


class Pooler:
    def __init__(
        self,
        cluster: Cluster,
        mode: Literal["session", "transaction", "statement"],
        *,
        connections: int = 20,
    ) -> None:
        """`connections`: to the server, for all clients together."""
        found = program()
        assert found is not None, MISSING
        # Short: the path of a socket has at most 107 characters.
        self.directory = Path(tempfile.mkdtemp(prefix="pool-"))
        settings = self.directory / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={cluster.directory} user={USER}\n"
            f"[pgbouncer]\nlisten_addr =\nlisten_port = {_PORT}\n"
            f"unix_socket_dir = {self.directory}\n"
            f"auth_type = any\npool_mode = {mode}\ndefault_pool_size = {connections}\n"
            "max_client_conn = 500\nserver_idle_timeout = 1\n"
        )
        if os.geteuid() == 0:
            os.chown(self.directory, pwd.getpwnam("nobody").pw_uid, -1)
        self._process = subprocess.Popen(
            [found, "-q", str(settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent,  # noqa: PLW1509 (it takes no lock)
            **as_nobody(),
        )
        deadline = time.monotonic() + 30
        while not self._listens():
            assert self._process.poll() is None, "pgbouncer has ended"
            assert time.monotonic() < deadline, "pgbouncer listens"
            time.sleep(0.01)

    def _listens(self) -> bool:
        """The socket is there a moment before it takes connections."""
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(f"{self.directory}/.s.PGSQL.{_PORT}") == 0

    def url_of(self, url: str) -> str:
        """The way to a database of the cluster that leads through the pooler."""
        name = url.partition("@/")[2].partition("?")[0]
        return f"postgresql://{USER}@/{name}?host={self.directory}&port={_PORT}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.directory)
