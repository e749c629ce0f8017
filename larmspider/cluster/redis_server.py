"""A redis-server for one crawl: on a socket in LARM_DIR, for this user alone, while it runs.

    with PrivateRedis(Path("crawl/redis")) as redis:
        redis.url                         # unix:///home/me/crawl/redis/redis.sock?db=0

The server has no TCP port; folder and socket are the owner's (mode 700). Its data is on disk
(``appendonly yes``, synced once a second), so the next start continues with it. If the data is not
as the last server left it, the server is not started. The next start takes over a server that
outlived the process that started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from larmspider.checksums import SEAL, break_seal, crc_of, read_seal, seal
from larmspider.cluster.redis_client import REBUILD
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError
from larmspider.files import replace_file
from larmspider.workdir.directory import REDIS_SOCKET, locked
from larmspider.workdir.manifest import LOCK

PROGRAM = "redis-server"
LOG = "redis.log"
_DATA = "appendonlydir"
_SEALED = "sealed"
"""An empty file that says that there are checksums: they were not lost."""
START_SECS = 600.0
"""The server reads its file before it answers: some 100 MB/s."""
STOP_SECS = 60.0
RESTARTS = 5
"""How often a server that ended is started again."""
_TRY_SECS = 0.02
_SOCKET_PATH_BYTES = 100  # sockaddr_un has 108, with the final NUL
_CONFIG = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory-policy": "noeviction",
    "daemonize": "no",
    "logfile": LOG,
}


def find_program() -> str:
    """The program's path. Raises ConfigError if it is not installed."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise ConfigError(
            f"{PROGRAM} is not installed, which workers share their queues through: install it"
            " (Debian and Ubuntu: apt install redis-server; Fedora: dnf install redis; macOS: brew"
            " install redis), or name a running one with -s REDIS_URL=redis://HOST:PORT/0"
        )
    return found


class StartStopped(LarmspiderError):  # noqa: N818 - named for what happened
    """The command had to stop before the server answered; the server was stopped, too."""


class PrivateRedis:
    """Runs inside ``with``. ``fresh`` first deletes existing data. ``stopped()`` returns True once
    the command has to stop; then it no longer waits for the start.

    Raises ConfigError, CrawlDirError if the server does not run.
    """

    def __init__(
        self, folder: Path, *, fresh: bool = False, stopped: Callable[[], bool] = bool
    ) -> None:
        self.folder, self.fresh, self.stopped = folder, fresh, stopped
        self.process: subprocess.Popen[bytes] | None = None
        """The server that this run has started."""
        self._taken_over: socket.socket | None = None
        """A connection to a server that an earlier run has started: it ends with the server."""
        self._short: Path | None = None
        self._lock: IO[str] | None = None
        self._restarts = 0
        self._log_begins = 0

    @property
    def socket(self) -> Path:
        """A path that is short enough for a socket."""
        return (self._short or self.folder) / REDIS_SOCKET

    @property
    def url(self) -> str:
        """The value for REDIS_URL."""
        return f"unix://{quote(str(self.socket))}?db=0"

    def __enter__(self) -> Self:
        program = find_program()
        try:
            self._prepare()
            if self.fresh:
                self._clear()
            if not (self._answers() and self._watch()):
                self._open_data()
                self._start(program)
                self._go_on()
                self._wait(program)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        process = self.process
        try:
            self.stop()
            if process is not None and process.returncode == 0:
                files = (self.folder / _DATA).glob("*")
                with suppress(OSError):  # without checksums the next start checks nothing
                    seal(self.folder, [f"{_DATA}/{path.name}" for path in files])
                    replace_file(self.folder / _SEALED, b"")
        finally:
            self._leave()

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError as error:
            raise ConfigError(f"{self.folder} cannot be made: {error.strerror}") from None
        self._lock = locked(self.folder / LOCK)
        if len(os.fsencode(self.folder / REDIS_SOCKET)) > _SOCKET_PATH_BYTES:
            # the path of a socket is limited, the path of a link to its folder is not
            place = Path(tempfile.mkdtemp(prefix="larm-"))
            self._short = place / "redis"
            self._short.symlink_to(self.folder)

    def _leave(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._short is not None:
            shutil.rmtree(self._short.parent, ignore_errors=True)
            self._short = None

    def _open_data(self) -> None:
        with suppress(ValueError):  # `scrapy verify` names damaged checksums
            for path, what in changed_data(self.folder):
                raise CrawlDirError(f"{path} {what}: {rebuilt(self.folder)}")
        (self.folder / _SEALED).unlink(missing_ok=True)
        break_seal(self.folder)

    def _client(self) -> redis.Redis:
        """A client without retries: with them redis-py takes 2 s to find that no server answers."""
        never = Retry(NoBackoff(), 0)
        return redis.Redis(unix_socket_path=str(self.socket), socket_timeout=10.0, retry=never)

    def _answers(self) -> bool:
        """Whether a server runs here. Waits while it reads its file."""
        deadline = time.monotonic() + START_SECS
        while True:
            try:
                with self._client() as client:
                    client.ping()
            except redis.BusyLoadingError:
                if time.monotonic() > deadline:
                    raise CrawlDirError(f"{self.folder}: redis-server does not answer") from None
            except (redis.RedisError, OSError):
                return False
            else:
                return True
            self._go_on()
            time.sleep(_TRY_SECS)

    def _go_on(self) -> None:
        if self.stopped():
            self.stop()
            raise StartStopped(f"stopped while {PROGRAM} was starting in {self.folder}")

    def _watch(self) -> bool:
        """Connect to a server that another process has started: whether that can be done."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.socket))
        except OSError:
            connection.close()
            return False
        connection.setblocking(False)
        self._taken_over = connection
        return True

    def _start(self, program: str) -> None:
        (self.folder / REDIS_SOCKET).unlink(missing_ok=True)
        log = self.folder / LOG
        self._log_begins = log.stat().st_size if log.exists() else 0
        arguments = [word for name, value in _CONFIG.items() for word in (f"--{name}", value)]
        self.process = subprocess.Popen(  # noqa: S603 - the program of find_program(), our arguments
            [program, *arguments, "--unixsocket", REDIS_SOCKET],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # no Ctrl-C: the workers need Redis until they have ended
        )

    def _wait(self, program: str) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECS
        try:
            while not self._answers():
                if self.process.poll() is not None or time.monotonic() > deadline:
                    damaged = (self.folder / _DATA).exists()
                    mend = f". If its data is damaged, {rebuilt(self.folder)}" if damaged else ""
                    raise CrawlDirError(
                        f"{program} did not start in {self.folder}: {self._last_words()}{mend}"
                    )
                self._go_on()
                time.sleep(_TRY_SECS)
        except CrawlDirError:
            self.stop()
            raise

    def tend(self) -> str:
        """Start the server again if it has ended, without waiting until it answers: a message, or
        "". Raises CrawlDirError if it ends again and again."""
        if not (how := self._how_it_ended()):
            return ""
        message = f"{PROGRAM} ended{how}"
        if self._restarts == RESTARTS:
            raise CrawlDirError(
                f"{message}, after {RESTARTS} restarts: {self._last_words()} ({self.folder / LOG})"
            )
        self._restarts += 1
        self._start(find_program())
        return f"{message}: started again"

    def _how_it_ended(self) -> str:
        if self.process is not None:
            if (status := self.process.poll()) is None:
                return ""
            named = signal.Signals(-status).name if status < 0 else ""
            return f" by {named}" if named else f" with status {status}"
        if self._taken_over is None or not _is_closed(self._taken_over):
            return ""
        self._taken_over.close()
        self._taken_over = None
        return "" if self._watch() else ", left by an earlier run"

    def _clear(self) -> None:
        if self._answers():
            self.stop()
            while self._answers():
                time.sleep(_TRY_SECS)
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()

    def _last_words(self) -> str:
        """The last line of its log since it was started."""
        try:
            with (self.folder / LOG).open("rb") as log:
                log.seek(self._log_begins)
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return "it left no log"
        found = [line.strip() for line in lines if line.strip()]
        return found[-1] if found else "its log is empty"

    def stop(self) -> None:
        """Let the server write its data and end. May be called twice."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return
        with suppress(redis.RedisError, OSError), self._client() as client:
            client.shutdown()
        connection, self._taken_over = self._taken_over, None
        if connection is not None:
            with connection, suppress(OSError):
                connection.settimeout(STOP_SECS)
                connection.recv(1)


def changed_data(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files of the server's data that are not as the last server left them, and how. Raises
    ValueError if their checksums are damaged."""
    for name, (size, crc) in (read_seal(folder) or {}).items():
        path = folder / name
        there = path.stat().st_size if path.exists() else None
        if there is None:
            yield path, "is gone"
        elif there != size:
            yield path, f"has {there:,} bytes, the last run left {size:,}"
        elif crc_of(path, 0, size) != crc:
            yield path, "does not match its checksum"


def is_seal_lost(folder: Path) -> bool:
    """Whether the last server has left checksums that are gone."""
    return (folder / _SEALED).exists() and not (folder / SEAL).exists()


def rebuilt(folder: Path) -> str:
    """The advice for damaged data."""
    return f"move {folder} away, then {REBUILD}"


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end of a silent connection is gone."""
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True
