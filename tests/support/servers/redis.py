"""A real redis-server for tests and measurements, on a free loopback port and a unix socket.

    with RedisServer() as server:
        server.url                        # redis://127.31.0.1:<port>/0
        server.client().ping()
        server.kill(); server.start()     # kill -9, and up again on the same port and folder

It runs in the foreground as a child, with its files in a temporary folder, and ends with its
context by that child's id. Each write is on disk before it is answered (``appendonly yes``,
``appendfsync always``), so that a kill loses nothing that was acknowledged.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.crawling import PROJECT
from tests.support.servers.certificate import Authority
from tests.support.servers.processes import end, free_port, listens, wait_for

REDIS_SERVER = shutil.which("redis-server", path="/usr/bin:/usr/local/bin:/usr/sbin")
"""The program, None where it is not installed."""


class RedisServer:
    """``options`` are lines of redis.conf by name (``maxmemory="50mb"``), beside or instead of
    those here; ``password`` is the default user's. Raises RuntimeError with the server's own words
    where it does not come up.
    """

    def __init__(
        self, host: str = "127.31.0.1", *, password: str = "", **options: str | int
    ) -> None:
        self.host, self.password, self.port = host, password, 0
        self.options = {name.replace("_", "-"): str(value) for name, value in options.items()}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._clients: list[redis.Redis] = []
        self._sizes: deque[tuple[float, int]] = deque()  # of the append-only file, and since when

    @property
    def pid(self) -> int:
        """Process id of the server; 0 while it does not run."""
        return self._child.pid if self._child else 0

    @property
    def folder(self) -> Path:
        """Where configuration, log and data are; gone after the context."""
        if self._folder is None:
            raise RuntimeError("this redis-server does not run")
        return Path(self._folder.name)

    @property
    def socket(self) -> Path:
        """The unix socket beside the port."""
        return self.folder / "redis.sock"

    @property
    def url(self) -> str:
        """For REDIS_URL, with the password if there is one."""
        user = f":{self.password}@" if self.password else ""
        return f"redis://{user}{self.host}:{self.port}/0"

    @property
    def unix_url(self) -> str:
        """The same by the unix socket."""
        user = f":{self.password}@" if self.password else ""
        return f"unix://{user}{self.socket}?db=0"

    def client(self, **options: Any) -> redis.Redis:
        """A client that does not try again, closed with the context."""
        options.setdefault("retry", Retry(NoBackoff(), 0))
        client: redis.Redis = redis.Redis.from_url(self.url, **options)
        self._clients.append(client)
        return client

    def start(self) -> None:
        """Bring it up, on the port and with the data that it had before. Waits until it answers."""
        if REDIS_SERVER is None:
            raise RuntimeError("redis-server is not installed (Debian package redis-server)")
        self.port = self.port or free_port(self.host)
        config = self.folder / "redis.conf"
        config.write_text(self._config(), "utf-8")
        with (self.folder / "output").open("ab") as output:
            self._child = subprocess.Popen(
                [REDIS_SERVER, str(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,
            )
        try:
            wait_for(self._child, self.folder / "output", self._answers)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """SIGTERM: it writes what it holds and ends."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    @contextmanager
    def written(self) -> Iterator[None]:
        """Within this block lose() knows what was in the append-only file when."""
        self._sizes = deque([(float("-inf"), 0)], maxlen=10_000)
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.005):
                for file in (self.folder / "appendonlydir").glob("*.incr.aof"):
                    if file.stat().st_size != self._sizes[-1][1]:
                        self._sizes.append((time.monotonic(), file.stat().st_size))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def lose(self, seconds: float) -> None:
        """As when the machine loses power: SIGKILL, and up again without what was written in the
        last ``seconds``."""
        self.kill()
        (file,) = (self.folder / "appendonlydir").glob("*.incr.aof")
        then = time.monotonic() - seconds
        sizes = list(self._sizes)
        first = max(number for number, (at, _) in enumerate(sizes) if at <= then)
        os.truncate(file, min(size for _, size in sizes[first:]))  # it may have been cut since then
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stand and nothing is answered."""
        if self._child is not None:
            self._child.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        if self._child is not None:
            self._child.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        try:
            self.start()
        except BaseException:
            self._folder.cleanup()
            self._folder = None
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        self.kill()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        self.port = 0

    def _end(self, how: signal.Signals) -> None:
        if self._child is None:
            return
        end(self._child, how)
        self._child = None

    def _config(self) -> str:
        lines = {
            "bind": self.host,
            "port": str(self.port),
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "daemonize": "no",
            "save": '""',
            "appendonly": "yes",
            "appendfsync": "always",
            "databases": "16",
        }
        if self.password:
            lines["requirepass"] = self.password
        lines |= self.options
        return "".join(f"{name} {value}\n" for name, value in lines.items())

    def _answers(self) -> bool:
        """By the socket: an option may have taken the port away, or put TLS before it."""
        probe = redis.Redis(
            unix_socket_path=str(self.socket),
            password=self.password or None,
            retry=Retry(NoBackoff(), 0),
        )
        with probe:
            try:
                probe.ping()
            except (redis.AuthenticationError, redis.ResponseError):
                return True  # other users than the default one are set up
            except redis.ConnectionError:
                return False
            return True


@contextmanager
def sentinel(master: RedisServer) -> Iterator[str]:
    """A Sentinel that knows ``master`` as mymaster: its host:port."""
    if REDIS_SERVER is None:
        raise RuntimeError("redis-server is not installed (Debian package redis-server)")
    with tempfile.TemporaryDirectory(prefix="sentinel-") as folder:
        port = free_port(master.host)
        lines = [
            f"bind {master.host}", f"port {port}", f"dir {folder}",
            f"sentinel monitor mymaster {master.host} {master.port} 1",
            "sentinel down-after-milliseconds mymaster 500",
            "sentinel failover-timeout mymaster 3000",
            *([f"sentinel auth-pass mymaster {master.password}"] if master.password else []),
        ]  # fmt: skip
        config, log = Path(folder, "sentinel.conf"), Path(folder, "log")
        config.write_text("\n".join(lines) + "\n", "utf-8")
        with log.open("wb") as output:
            child = subprocess.Popen(
                [REDIS_SERVER, str(config), "--sentinel"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            wait_for(child, log, partial(listens, master.host, port))
            yield f"{master.host}:{port}"
        finally:
            end(child, signal.SIGTERM)


# A real redis-server with deploy/redis.conf and deploy/users.acl.


ADDRESS = "127.34.0.3"
PASSWORDS = {"larm": "worker quay", "seeds": "seed quay", "operator": "operator quay"}
Connect = Callable[..., redis.Redis]


def users() -> str:
    """users.acl with the hashes of PASSWORDS."""
    lines = []
    for line in (PROJECT / "deploy" / "users.acl").read_text("utf-8").splitlines():
        hashed = sha256(PASSWORDS.get(line.split()[1], "").encode()).hexdigest()
        lines.append(line.replace("0" * 64, hashed))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def secured_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """Connects as a user of users.acl: ``secured_redis("larm")``."""
    program = shutil.which("redis-server", path="/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    folder = tmp_path_factory.mktemp("redis")
    authority = Authority(folder)
    certificate, key = authority.issue(ADDRESS)
    (folder / "users.acl").write_text(users(), "utf-8")
    port = free_port(ADDRESS)
    here = {
        "bind": ADDRESS,
        "tls-port": str(port),
        "tls-cert-file": str(certificate),
        "tls-key-file": str(key),
        "tls-ca-cert-file": str(authority.ca),
        "aclfile": str(folder / "users.acl"),
        "dir": str(folder),
        "maxmemory": "64mb",
    }
    arguments = [word for name, value in here.items() for word in (f"--{name}", value)]
    log = (folder / "log").open("wb")
    server = subprocess.Popen(
        [program, str(PROJECT / "deploy" / "redis.conf"), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    clients: list[redis.Redis] = []

    def connect(user: str = "", password: str | None = None, scheme: str = "rediss"):
        secret = PASSWORDS.get(user, "") if password is None else password
        client = redis.Redis.from_url(
            f"{scheme}://{ADDRESS}:{port}/0",
            username=user or None,
            password=secret or None,
            retry=Retry(NoBackoff(), 0),
            **({"ssl_ca_certs": str(authority.ca)} if scheme == "rediss" else {}),
        )
        clients.append(client)
        return client

    try:
        wait_for(server, folder / "log", partial(listens, ADDRESS, port))
        yield connect
    finally:
        for client in clients:
            client.close()
        server.terminate()
        server.wait(60)
        log.close()
