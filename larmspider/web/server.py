"""The server: where the application listens, by the LARM_WEB settings.

server = await Server.start(app, "127.0.0.1", 6080)
server.url            # http://127.0.0.1:6080/
await server.stop()
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from aiohttp import web
from aiohttp.http import HttpProcessingError

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.files import socket_path
from larmspider.search.curated import Curated
from larmspider.urls.file_urls import NOWHERE, OpenableUrls
from larmspider.web.app import build
from larmspider.web.auth import Guard, checked_token, is_host_name
from larmspider.web.connections import REQUEST_SECS, Connections
from larmspider.web.look import Look
from larmspider.web.query_log import QueryLog
from larmspider.web.readers import Readers
from larmspider.web.site import SITE
from larmspider.web.tries import Tries

if TYPE_CHECKING:
    from larmspider.options import Settings
    from larmspider.status.crawl_view import Source

TRIES = 20
"""Ports that are tried, from the one asked for on."""
SHUTDOWN_SECS = 0.5
"""How long open connections may last when the server stops."""
LINGERING_SECS = 1.0
"""How long the server reads the rest of a body that no page needs."""
MAX_URL_BYTES = 524_288
"""Bytes of a request's URL. The search answers a query of up to 100 KB, blanks sent as ``%20``,
with its own limit."""
AT_ONCE = 64
"""Connections that asyncio accepts before it serves the existing ones."""
ACCEPTED_IN = 3
"""Turns of the event loop until a connection that asyncio has just taken is one of Connections.
Before that, close() would leave its socket open (python/cpython#109564)."""
BACKLOG = 1024
"""Connections that the system accepts before asyncio takes them."""


def _of_ours(record: logging.LogRecord) -> bool:
    """Whether an error is an error of this program. Malformed requests, and bodies that cannot be
    decoded, are not: they are answered with 400 and not logged."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, (HttpProcessingError, web.RequestPayloadError))


logger = logging.getLogger(__name__)
logger.addFilter(_of_ours)
"""aiohttp's own messages go here."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The LARM_WEB settings; ``port`` 0: any free one; ``token`` "": make one."""

    address: str
    port: int
    token: str
    names: Collection[str]
    open_paths: Collection[str]
    readers: Readers = field(default_factory=Readers)
    look: Look = field(default_factory=Look)
    curated: Curated = field(default_factory=Curated)
    query_log: QueryLog = field(default_factory=QueryLog)
    opens: OpenableUrls = NOWHERE
    wrong_tokens: int = 20
    wrong_tokens_in_all: int = 200

    @classmethod
    def from_settings(cls, settings: Settings, *, has_tokens: bool = False) -> Self:
        """Raises ConfigError for bad values, and if other machines could connect without a token.
        ``has_tokens``: there are tokens besides LARM_WEB_TOKEN."""
        token = options.text(settings, "LARM_WEB_TOKEN")
        binding = cls(
            address=options.text(settings, "LARM_WEB_ADDRESS"),
            port=options.integer(settings, "LARM_WEB_PORT", minimum=0, maximum=65_535),
            token=checked_token(token) if token else "",
            names=options.strings(settings, "LARM_WEB_HOSTS"),
            open_paths=options.strings(settings, "LARM_WEB_OPEN"),
            readers=Readers.from_settings(settings),
            look=Look.from_settings(settings),
            curated=Curated.from_settings(settings),
            query_log=QueryLog.from_settings(settings),
            opens=OpenableUrls.from_settings(settings),
            wrong_tokens=options.integer(settings, "LARM_WEB_WRONG_TOKENS", minimum=1),
            wrong_tokens_in_all=options.integer(
                settings, "LARM_WEB_WRONG_TOKENS_IN_ALL", minimum=1
            ),
        )
        for name in binding.names:
            if not is_host_name(name):
                raise ConfigError(
                    f"LARM_WEB_HOSTS={name}: expected names such as wiki.example, without scheme"
                    " and port"
                )
        for path in binding.open_paths:
            if not path.startswith("/"):
                raise ConfigError(f"LARM_WEB_OPEN={path}: expected paths such as /search")
        if not (binding.is_local or token or has_tokens):
            raise ConfigError(
                f"LARM_WEB_ADDRESS={binding.address} lets other machines in: set LARM_WEB_TOKEN too"
            )
        return binding

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect. Raises ConfigError for a bad address."""
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            raise ConfigError(
                f"LARM_WEB_ADDRESS={self.address}: expected an IP address such as 127.0.0.1, ::1,"
                " or 0.0.0.0 for all of this machine's"
            ) from None

    def guard(self, token: str | Callable[[], str], source: Source) -> Guard:
        """Reading needs the token too where other machines can connect, and while the crawl that is
        shown is private; all pages except the search also while pages have access lists."""
        local = self.is_local
        return Guard(
            token,
            self.names,
            closed=lambda: not local or source.is_private,
            closed_pages=lambda: source.has_access_lists,
            open_paths=self.open_paths,
            tries=Tries(self.wrong_tokens, self.wrong_tokens_in_all),
        )

    def app(self, source: Source, guard: Guard, *, ahead: bool = False) -> web.Application:
        """The application that is served (app.py)."""
        parts = self.readers, self.look, self.curated, self.query_log, self.opens
        return build(source, guard, *parts, ahead=ahead)


class Server:
    """Listens until it is stopped."""

    def __init__(
        self, runner: web.AppRunner, server: asyncio.Server, connections: Connections, url: str
    ) -> None:
        self._runner, self._server, self._connections = runner, server, connections
        self.url = url

    @classmethod
    async def start(
        cls, app: web.Application, address: str, port: int, *, exact: bool = False
    ) -> Self:
        """Raises ConfigError if it cannot listen there. ``exact``: at no port other than
        ``port``."""
        listening = listen(address, port, exact=exact)
        return await cls._at(app, listening, _url(address, listening))

    @classmethod
    async def start_at_socket(cls, app: web.Application, path: Path) -> Self:
        """Listen at a Unix socket that only this user may use. An existing socket is replaced.
        Raises OSError."""
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_path(path) as name:
                listening.bind(name)
            path.chmod(0o600)
            listening.listen(BACKLOG)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        return await cls._at(app, listening, "http://localhost/")

    @classmethod
    async def _at(cls, app: web.Application, listening: socket.socket, url: str) -> Self:
        runner = web.AppRunner(
            app,
            logger=logger,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=SHUTDOWN_SECS,
            keepalive_timeout=REQUEST_SECS,
            lingering_time=LINGERING_SECS,
            max_line_size=MAX_URL_BYTES,
        )
        await runner.setup()
        assert runner.server is not None
        connections = app[SITE].connections
        server = await _accepting(runner, connections, listening)
        return cls(runner, server, connections, url)

    async def move(self, address: str) -> None:
        """Listen at another address, with the same port if it is free; connections stay. Raises
        ConfigError, and listens where it did, if it cannot listen there."""
        before = self._server.sockets[0].getsockname()
        await self._stop_listening()
        try:
            listening = listen(address, before[1])
        except ConfigError:
            listening = listen(before[0], before[1])
            self._server = await _accepting(self._runner, self._connections, listening)
            raise
        self._server = await _accepting(self._runner, self._connections, listening)
        self.url = _url(address, listening)

    async def _stop_listening(self) -> None:
        loop = asyncio.get_running_loop()
        for listening in self._server.sockets:
            loop.remove_reader(listening.fileno())
        for _ in range(ACCEPTED_IN):
            await asyncio.sleep(0)
        self._server.close()

    async def stop(self) -> None:
        await self._stop_listening()
        await self._runner.cleanup()
        await self._connections.close()


async def _accepting(
    runner: web.AppRunner, connections: Connections, listening: socket.socket
) -> asyncio.Server:
    assert runner.server is not None
    server = await asyncio.get_running_loop().create_server(
        connections.limit(runner.server), sock=listening, backlog=AT_ONCE
    )
    listening.listen(BACKLOG)
    return server


def _url(address: str, listening: socket.socket) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{listening.getsockname()[1]}/"


def listen(address: str, port: int, *, exact: bool = False) -> socket.socket:
    """A listening socket at ``port``, or at the first free one after it unless ``exact``."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    ports = [port + more for more in range(TRIES if port else 1) if port + more < 65_536]
    for tried in (port,) if exact else (*ports, 0):
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((address, tried))
            bound.listen(BACKLOG)  # two servers that share a port by SO_REUSEADDR differ only here
            bound.setblocking(False)
        except PermissionError:
            bound.close()
            raise ConfigError(
                f"LARM_WEB_PORT={tried} needs a privilege: expected a port above 1023"
            ) from None
        except OSError as error:
            bound.close()
            problem = error
            continue
        return bound
    if exact and problem.errno == errno.EADDRINUSE:
        raise ConfigError(
            f"--port {port}: another program listens there; expected a free port. Without --port,"
            " the first free port from LARM_WEB_PORT on is taken"
        )
    raise ConfigError(
        f"LARM_WEB_ADDRESS={address} cannot be bound: {problem.strerror or problem}"
    ) from None
