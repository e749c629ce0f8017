"""A real PostgreSQL for tests, on a free loopback port, in a folder of its own.

    with PostgresServer() as server:
        server.url                          # postgresql://larm:secret@127.0.0.1:<port>/larm
        server.kill(); server.start()       # kill -9, and up again with what it had

It runs as Debian's user postgres where the tests run as root, and ends with its context by its pid.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from tests.support.servers.processes import end, free_port, wait_for

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), Path("none"))
HOST, PASSWORD = "127.0.0.1", "s3cr3t"
_CONFIG = """
listen_addresses = '{host}'
port = {port}
unix_socket_directories = ''
fsync = off
shared_buffers = 16MB
max_connections = 20
"""


class PostgresServer:
    def __init__(self, parent: str | Path = "/tmp") -> None:
        self.port = 0
        self._parent = parent
        self._folder = Path()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://larm:{PASSWORD}@{HOST}:{self.port}/larm"

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        own: dict[str, Any] = {}
        if os.getuid() == 0:
            own = {"user": "postgres", "group": "postgres", "extra_groups": []}
        with (self._folder / "output").open("ab") as output:
            return subprocess.Popen(
                [str(PROGRAMS / program), *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"], "TZ": "UTC"},
                **own,
            )

    def start(self) -> None:
        """Up again on its port, with its data. The children of a killed one end by themselves."""
        for _ in range(50):
            self._child = self._run("postgres", "-D", "data")
            try:
                wait_for(self._child, self._folder / "output", self._answers, 60)
                return
            except RuntimeError as error:
                if "in use" not in str(error)[-500:]:
                    raise
        raise RuntimeError("postgres does not come up again")

    def _answers(self) -> bool:
        with suppress(psycopg.Error):
            psycopg.connect(self.url, connect_timeout=5).close()
            return True
        return False

    def kill(self) -> None:
        """SIGKILL of the server; its children have that, too."""
        if self._child is not None:
            end(self._child, signal.SIGKILL)
            self._child = None

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            yield connection

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=self._parent))
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        (self._folder / "password").write_text(PASSWORD)
        (self._folder / "password").chmod(0o644)
        options = ["-A", "scram-sha-256", "-U", "larm", "--pwfile=password", "-E", "UTF8"]
        made = self._run("initdb", "-D", "data", "--no-sync", *options)
        if made.wait(120):
            raise RuntimeError((self._folder / "output").read_text())
        self.port = free_port(HOST)
        config = self._folder / "data" / "postgresql.conf"
        config.write_text(_CONFIG.format(host=HOST, port=self.port))
        self._child = self._run("postgres", "-D", "data")
        admin = self.url.rpartition("/")[0] + "/postgres"

        def up() -> bool:
            with suppress(psycopg.Error), psycopg.connect(admin, autocommit=True) as connection:
                connection.execute("CREATE DATABASE larm")
                return True
            return False

        wait_for(self._child, self._folder / "output", up, 60)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
