"""A forwarding proxy: http (plain and CONNECT, RFC 9110 9.3.6), https and SOCKS5 (RFC 1928, 1929).

    with ProxyServer(user="joe", password="word") as proxy:
        proxy.url("http")     # http://127.0.0.1:<port>; socks5, socks5h: the same port
        proxy.log             # what it was asked: ("GET", "http://h/"), ("CONNECT", "h:443"), ...
        proxy.heads           # the whole heads of http requests

``names`` maps host names to addresses: those that only the proxy can resolve.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.support.servers.scripted import DigestGuard
from tests.support.servers.threaded import ThreadedServer


class ProxyServer(ThreadedServer):
    """Asks for ``user`` and ``password`` where they are not empty, or has ``guard`` ask those that
    speak http. With ``tls`` it speaks https."""

    def __init__(
        self,
        user: str = "",
        password: str = "",
        *,
        host: str = "127.0.0.1",
        names: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        guard: DigestGuard | None = None,
    ) -> None:
        super().__init__()
        self.user, self.password, self.host, self.tls = user, password, host, tls
        self.guard = guard
        self.names = dict(names or {})
        self.port = 0
        self.log: list[tuple[str, str]] = []
        self.heads: list[str] = []

    def url(self, scheme: str) -> str:
        return f"{scheme}://{self.host}:{self.port}"

    async def listen(self) -> list[asyncio.Server]:
        server = await asyncio.start_server(self.accept, self.host, 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        return [server]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(1)
        if first == b"\x05":
            await self._socks(reader, writer)
        else:
            await self._http(first, reader, writer)

    async def _http(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first = b""
            self.heads.append(head)
            line, *fields = head.rstrip("\r\n").split("\r\n")
            method, target, _ = line.split(" ")
            self.log.append((method, target))
            challenge = self._challenge(fields, method, target)
            if challenge:
                writer.write(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                    b"Proxy-Authenticate: %b\r\nContent-Length: 0\r\n\r\n" % challenge.encode()
                )
                await writer.drain()
                continue
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
                upstream = await asyncio.open_connection(self._address(host), int(port))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _relay(reader, writer, *upstream)
                return
            url = urlsplit(target)
            upstream = await asyncio.open_connection(self._address(url.hostname or ""), url.port)
            kept = [f for f in fields if not f.lower().startswith(("proxy-", "connection:"))]
            request = [f"{method} {_path(target)} HTTP/1.1", *kept, "Connection: close", "", ""]
            upstream[1].write("\r\n".join(request).encode("latin-1"))
            await _relay(reader, writer, *upstream)
            return

    def _challenge(self, fields: list[str], method: str, target: str) -> str:
        """The missing proof, as a challenge; "" if it is there."""
        named = dict(field.split(": ", 1) for field in fields if ": " in field)
        sent = named.get("Proxy-Authorization", "")
        if self.guard is not None:
            # libcurl names path and query where RFC 7616 3.4 has what stands in the request's line
            named_target = target if method == "CONNECT" else _path(target)
            return self.guard.challenge(sent, method, named_target)
        word = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return "" if not self.user or sent == f"Basic {word}" else 'Basic realm="gate"'

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        method = 2 if self.user else 0
        if method not in methods:
            writer.write(b"\x05\xff")
            await writer.drain()
            return
        writer.write(bytes((5, method)))
        if method == 2:
            await reader.readexactly(1)
            user = await reader.readexactly((await reader.readexactly(1))[0])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            known = (user, password) == (self.user.encode(), self.password.encode())
            writer.write(bytes((1, 0 if known else 1)))
            if not known:
                await writer.drain()
                return
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(str(byte) for byte in await reader.readexactly(4))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.log.append(("SOCKS5", f"{host}:{port}"))
        upstream = await asyncio.open_connection(self._address(host), port)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await _relay(reader, writer, *upstream)

    def _address(self, host: str) -> str:
        return self.names.get(host, host)


def _path(target: str) -> str:
    """The path of an absolute URL, with its query."""
    url = urlsplit(target)
    return f"{url.path}?{url.query}" if url.query else url.path


async def _relay(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Bytes both ways, until either side ends."""

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()

    copies = {
        asyncio.ensure_future(copy(reader, far_writer)),
        asyncio.ensure_future(copy(far_reader, writer)),
    }
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        await writer.drain()
    finally:
        far_writer.transport.abort()  # first: the server may end while the copies do
        for one in copies:
            one.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
