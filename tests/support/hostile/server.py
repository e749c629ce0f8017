r"""Hosts that misbehave: each case on a loopback address of its own, so that none spoils another's.

    case = Case("short", sends(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), fails("reset"))
    with HostileServer([case]) as server:
        server.url("short")     # http://127.66.0.1:<port>/short
        server.asked("short")   # the requested targets, in order

All of them live in one thread with an event loop of its own. A host answers one request on each
connection, unless its behaviour reads on by itself, and closes; what it sends is up to the case.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import socket
import struct
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING

from tests.support.servers.threaded import ThreadedServer

if TYPE_CHECKING:
    import ssl

    from tests.support.hostile.running import Outcome

NETWORK = "127.66"
_TLS_HANDSHAKE = b"\x16"
_MAX_HEAD_BYTES = 1 << 20


@dataclass
class Wire:
    """One connection: its request, and the way to answer. ``target`` is path and query."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: Host
    target: str = ""
    number: int = 0
    """The number of this connection to its host, from 1."""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def next_request(self) -> None:
        """Read a request; IncompleteReadError where the client has left."""
        head = await self.reader.readexactly(1)
        if head == _TLS_HANDSHAKE:
            await self.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            raise EOFError
        head += await self.reader.readuntil(b"\r\n\r\n")
        self.target = head.split(b" ", 2)[1].decode("latin-1")
        self.host.asked.append(self.target)

    async def until_it_leaves(self) -> None:
        """Say nothing more until the client hangs up."""
        while await self.reader.read(65_536):
            pass

    def reset(self) -> None:
        """End the connection by RST instead of FIN."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Wire], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """A host's name in tests and docs, what it does with each request, and how the crawl ends.

    ``path`` is the seed's, "" stands for ``/name``; None makes it no seed: another case leads
    there. ``also``: outcomes of further paths. ``most``: the most requests that it gets. ``tls``
    makes the context of a host that speaks it. ``name_as``: the host name in its URL, where that is
    not its address; ``scheme``: likewise, where it is not what it speaks. Not ``listens``:
    connections are refused.
    """

    name: str
    behave: Behaviour
    outcome: Outcome
    path: str | None = ""
    also: Mapping[str, Outcome] = field(default_factory=dict)
    most: int | None = None
    tls: Callable[[str], ssl.SSLContext] | None = None
    name_as: str = ""
    scheme: str = ""
    listens: bool = True


@dataclass
class Host:
    """A case while it is served."""

    case: Case
    address: str
    sock: socket.socket
    asked: list[str] = field(default_factory=list)
    connections: int = 0
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.port = self.sock.getsockname()[1]

    @property
    def origin(self) -> str:
        scheme = self.case.scheme or ("https" if self.case.tls else "http")
        return f"{scheme}://{self.case.name_as or self.address}:{self.port}"


class HostileServer(ThreadedServer):
    """Serves cases until the ``with`` block ends; connections that are open then are cut."""

    def __init__(self, cases: Iterable[Case]) -> None:
        super().__init__()
        self.hosts: dict[str, Host] = {}
        for number, case in enumerate(cases, start=1):
            if case.name in self.hosts:
                raise ValueError(f"two cases are called {case.name}")
            address = f"{NETWORK}.{number // 250}.{number % 250 + 1}"
            self.hosts[case.name] = Host(
                case, address, _bound((case.name_as and "127.0.0.1") or address)
            )
        self.open: dict[str, int] = defaultdict(int)
        self._at = {host.sock.getsockname(): host for host in self.hosts.values()}

    def url(self, name: str, path: str | None = None) -> str:
        """The seed of a case, or another path on its host."""
        host = self.hosts[name]
        if path is None:
            path = host.case.path or f"/{name}"
        return host.origin + path

    def seeds(self) -> list[str]:
        return [self.url(name) for name, host in self.hosts.items() if host.case.path is not None]

    def asked(self, name: str) -> list[str]:
        """The targets that the case was requested for so far, in order."""
        return list(self.hosts[name].asked)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        for host in self.hosts.values():
            host.sock.close()

    async def listen(self) -> list[asyncio.Server]:
        # failed handshakes are what some cases are for
        asyncio.get_running_loop().set_exception_handler(_ignore)
        return [
            await asyncio.start_server(
                self.accept,
                sock=host.sock,
                limit=_MAX_HEAD_BYTES,
                ssl=host.case.tls(host.address) if host.case.tls else None,
            )
            for host in self.hosts.values()
            if host.case.listens
        ]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = self._at[writer.get_extra_info("sockname")]
        host.connections += 1
        wire = Wire(reader, writer, host, number=host.connections)
        await wire.next_request()
        await host.case.behave(wire)


def _bound(address: str) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, 0))
    return sock


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    pass


# A host's answers to a request: building blocks for cases, from a whole reply to none at all.


HTML = "Content-Type: text/html; charset=utf-8"
MB = 1 << 20


def head(*lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    """A status line, header lines and the blank line."""
    return "".join(f"{line}\r\n" for line in (status, *lines, "")).encode("latin-1")


def reply(*lines: str, body: bytes = b"", status: str = "HTTP/1.1 200 OK") -> bytes:
    """A whole reply; Content-Length is right unless a line speaks of the length."""
    names = {line.partition(":")[0].lower() for line in lines}
    if not names & {"content-length", "transfer-encoding"}:
        lines = (*lines, f"Content-Length: {len(body)}")
    return head(*lines, status=status) + body


def sends(*parts: bytes) -> Behaviour:
    """These bytes, then the end of the connection."""

    async def behave(wire: Wire) -> None:
        for part in parts:
            await wire.send(part)

    return behave


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def then_hangs(*parts: bytes) -> Behaviour:
    """These bytes, then silence on an open connection."""

    async def behave(wire: Wire) -> None:
        await sends(*parts)(wire)
        await wire.until_it_leaves()

    return behave


def then_resets(*parts: bytes) -> Behaviour:
    """These bytes, then a TCP reset."""

    async def behave(wire: Wire) -> None:
        await sends(*parts)(wire)
        await asyncio.sleep(0.05)  # or they are lost with the connection
        wire.reset()

    return behave


def endless(start: bytes, again: bytes, pause: float = 0.0) -> Behaviour:
    """``start``, then ``again`` for as long as the client listens, ``pause`` seconds apart."""

    async def behave(wire: Wire) -> None:
        await wire.send(start)
        while True:
            await wire.send(again)
            await asyncio.sleep(pause)  # 0: lets the other hosts speak

    return behave


def after_robots(behave: Behaviour) -> Behaviour:
    """There is no robots.txt; then as ``behave``."""

    async def answer(wire: Wire) -> None:
        if wire.target == "/robots.txt":
            await wire.send(reply("Connection: close", status="HTTP/1.1 404 Not Found"))
        else:
            await behave(wire)

    return answer


def site(answer: Callable[[str], bytes]) -> Behaviour:
    """A host with keep-alive whose reply depends on the requested target."""

    async def behave(wire: Wire) -> None:
        while True:
            await wire.send(answer(wire.target))
            await wire.next_request()

    return behave


def html(body: bytes | str, *lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    """A whole reply with a page."""
    return reply(HTML, *lines, body=body.encode() if isinstance(body, str) else body, status=status)


def links_to(targets: Iterable[str]) -> bytes:
    """A page of links."""
    return html("".join(f"<a href='{target}'>on</a>\n" for target in targets))


def pages(answer: Callable[[str], Iterable[str]]) -> Behaviour:
    """A site of pages of links: ``answer`` says for a target where its page leads."""
    return site(lambda target: links_to(answer(target)))


def redirects(location: str, *lines: str, status: str = "HTTP/1.1 302 Found") -> Behaviour:
    return sends(reply(f"Location: {location}", *lines, "Connection: close", status=status))


def count() -> Iterator[int]:
    """Numbers that a server makes up as it goes on."""
    return itertools.count(1)


@cache
def gzip_bomb(size: int) -> bytes:
    return gzip.compress(bytes(size), 9)


def gzipped(body: bytes, times: int = 1) -> bytes:
    for _ in range(times):
        body = gzip.compress(body, 6, mtime=0)
    return body
